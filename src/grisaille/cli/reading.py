"""How the text files of a command are read: options that every command has which reads data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

OPTIONS = ("decimal", "separator", "encoding", "dayfirst")
NAMED = "--decimal, --separator, --encoding and --dayfirst"
TAB = {"tab": "\t", "\\t": "\t"}


def reading_options(of: str, otherwise: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Give a command ``--decimal``, ``--separator``, ``--encoding`` and ``--dayfirst``.

    of : which files they speak of, for the help
    otherwise : what holds where they are not given
    """

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        for option in (
            click.option("--dayfirst/--monthfirst", "dayfirst", default=None,
                         help=f"{of}whether 01/02/2025 is the first of February; {otherwise}."),
            click.option("--encoding", metavar="NAME", help=f"{of}of the text, such as latin-1; {otherwise}."),
            click.option("--separator", metavar="SIGN", help=f"{of}between columns, 'tab' for a tab; {otherwise}."),
            click.option("--decimal", type=click.Choice([".", ","]), help=f"{of}the decimal sign; {otherwise}."),
        ):  # fmt: skip
            function = option(function)
        return function

    return decorate


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, as ``Experiment.from_csv`` takes them."""
    given = {name: options[name] for name in OPTIONS if options.get(name) is not None}
    if "separator" in given:
        given["separator"] = TAB.get(given["separator"], given["separator"])
    return given
