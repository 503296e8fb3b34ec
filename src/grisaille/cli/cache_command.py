"""``grisaille cache``."""

from __future__ import annotations

import click

from grisaille.cli.output import CommandOutput, with_output_options


@click.command("cache")
@click.argument("action", required=False, type=click.Choice(["show", "clear"]), default="show")
@with_output_options
def command(output: CommandOutput, action: str) -> int:
    """Show the cache of compiled models, or clear it."""
    from grisaille.compilation import build_cache

    found = build_cache.clear() if action == "clear" else build_cache.cache_contents()
    output.say(f"Removed from {found}" if action == "clear" else found)
    output.answer({
        "folder": str(found.folder), "files": found.files, "bytes": found.bytes, "limit": found.limit,
        "removed": action == "clear",
    })  # fmt: skip
    return 0
