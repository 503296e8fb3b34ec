"""``grisaille cache``."""

from __future__ import annotations

import click

from grisaille.cli.output import Output, answering


@click.command("cache")
@click.argument("action", required=False, type=click.Choice(["show", "clear"]), default="show")
@answering
def command(output: Output, action: str) -> int:
    """Show the cache of compiled models, or clear it."""
    from grisaille.compilation import cache

    found = cache.clear() if action == "clear" else cache.inspect()
    output.say(f"Removed from {found}" if action == "clear" else found)
    output.answer({
        "folder": str(found.folder), "files": found.files, "bytes": found.bytes, "limit": found.limit,
        "removed": action == "clear",
    })  # fmt: skip
    return 0
