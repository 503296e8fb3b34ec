"""The command line: ``grisaille demo | analyze | simulate | reproduce | cache``.

Each command is one function that receives the parsed arguments, prints, and gives the exit status. An error of the
user's is one readable message and status 2; ``--debug`` shows the traceback instead. Heavy imports happen inside the
commands, so that ``grisaille --help`` is quick.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import grisaille
from grisaille.errors import DataError, GrisailleError

if TYPE_CHECKING:
    import xarray as xr


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; gives its exit status."""
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            return int(options.command(options))
    except KeyboardInterrupt:
        return 130
    except (GrisailleError, OSError) as error:
        if options.debug:
            raise
        print(f"grisaille: {error}", file=sys.stderr)
        return 2


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as one line, without the place in our code that gave it."""
    print(f"grisaille: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="grisaille", description=grisaille.__doc__)
    parser.add_argument("--version", action="version", version=f"grisaille {grisaille.__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(required=True, metavar="command")

    demo = commands.add_parser("demo", help="simulate a pendulum written as an index-3 system, and fit it to data")
    demo.add_argument("--output", metavar="DIR", type=Path, default=Path("grisaille-demo"), help="folder for its files")
    demo.set_defaults(command=_demo)

    analyze = commands.add_parser("analyze", help="print the structure of a model")
    analyze.add_argument("model", metavar="FILE.py:Class")
    analyze.set_defaults(command=_analyze)

    simulate = commands.add_parser("simulate", help="simulate a model")
    simulate.add_argument("model", metavar="FILE.py:Class")
    simulate.add_argument("--times", required=True, metavar="FIRST:LAST:STEP", help="for example 0:10:0.1")
    simulate.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a number, or a CSV file whose first column is time: u=1.5, u=data.csv, u=data.csv:column",
    )
    simulate.add_argument("--parameter", action="append", default=[], metavar="NAME=VALUE", help="for example r.R=2e3")
    simulate.add_argument("--output", metavar="FILE", type=Path, help="write the trajectory: .csv or .nc (netCDF)")
    simulate.add_argument("--plot", metavar="FILE", type=Path, help="draw the trajectory: .png, .svg or .pdf")
    simulate.set_defaults(command=_simulate)

    reproduce = commands.add_parser("reproduce", help="compute a published table or figure again")
    reproduce.add_argument(
        "name", nargs="?", metavar="PAPER/TABLE", help="for example fladischer/table-4.3, or a PAPER"
    )
    reproduce.add_argument("--list", action="store_true", help="show what can be reproduced")
    reproduce.add_argument("--size", choices=["small", "full"], default="small", help="full takes minutes")
    reproduce.add_argument("--output", metavar="DIR", type=Path, help="folder for figures")
    reproduce.set_defaults(command=_reproduce)

    cache = commands.add_parser("cache", help="show the cache of compiled models, or clear it")
    cache.add_argument("action", nargs="?", choices=["clear"])
    cache.set_defaults(command=_cache)
    return parser


def _demo(options: argparse.Namespace) -> int:
    from grisaille.demo import run

    run(options.output)
    return 0


def _analyze(options: argparse.Namespace) -> int:
    print(grisaille.analyze(_load(options.model)))
    return 0


def _simulate(options: argparse.Namespace) -> int:
    for path, endings in ((options.output, (".csv", ".nc")), (options.plot, (".png", ".svg", ".pdf"))):
        if path is not None and path.suffix not in endings:
            raise DataError(f"{path}: files end in {' or '.join(endings)} here.")
    result = grisaille.simulate(
        _load(options.model),
        _times(options.times),
        inputs={name: _signal(name, text) for name, text in _assignments("--input", options.input)},
        parameters={name: _number(name, text) for name, text in _assignments("--parameter", options.parameter)},
    )
    if options.output is not None:
        _write(result, options.output)
    if options.plot is not None:
        _plot(result, options.plot)
    if options.output is None and options.plot is None:
        print(result.to_dataframe().to_string(max_rows=20))
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    from grisaille.reproduction import registry

    if options.list or options.name is None:
        print(registry.listing())
        return 0
    for entry in registry.find(options.name):
        folder = None if options.output is None else options.output / entry.name
        entry.run(options.size, folder).show()
    return 0


def _cache(options: argparse.Namespace) -> int:
    from grisaille.compilation import cache

    print(f"Removed from {cache.clear()}" if options.action == "clear" else cache.inspect())
    return 0


def _load(target: str) -> Any:
    from grisaille.loading import load_model

    return load_model(target)


def _times(text: str) -> Any:
    """``FIRST:LAST:STEP`` as an array; the last instant is included when a whole number of steps leads to it."""
    import numpy as np

    try:
        first, last, step = (float(part) for part in text.split(":"))
    except ValueError:
        raise DataError(f"--times {text}: three numbers are needed, FIRST:LAST:STEP, for example 0:10:0.1.") from None
    if not (np.isfinite([first, last, step]).all() and step > 0 and last > first):
        raise DataError(f"--times {text}: LAST must lie after FIRST and STEP must be positive.")
    steps = (last - first) / step
    whole = round(steps)
    return np.linspace(first, last, whole + 1) if abs(steps - whole) < 1e-9 * whole else np.arange(first, last, step)


def _assignments(option: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    for text in texts:
        if "=" not in text:
            raise DataError(f"{option} {text}: write NAME=VALUE.")
    return [(name.strip(), value.strip()) for name, _, value in (text.partition("=") for text in texts)]


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{name}={text}: {text!r} is not a number.") from None


def _signal(name: str, text: str) -> Any:
    """A number, or ``(t, values)`` from a CSV file: the named column, the one called ``name``, or the only one."""
    path, _, column = text.partition(":")
    if not path.endswith(".csv"):
        return _number(name, text)
    import pandas as pd

    table = pd.read_csv(path, index_col=0)
    column = column or (name if name in table.columns else table.columns[0] if len(table.columns) == 1 else "")
    if column not in table.columns:
        wanted = f"no column {column!r}" if column else f"several columns and none is called {name!r}"
        raise DataError(f"--input {name}={text}: {path} has {wanted}. It has: {', '.join(map(str, table.columns))}.")
    return table.index.to_numpy(float), table[column].to_numpy(float)


def _write(result: xr.Dataset, path: Path) -> None:
    if path.suffix == ".nc":
        result.to_netcdf(path, engine="h5netcdf")
    else:
        result.to_dataframe().to_csv(path)
    print(f"Trajectory written to {path}")


def _plot(result: xr.Dataset, path: Path) -> None:
    from grisaille.reporting import plots

    plots.trajectories(result).savefig(path)
    print(f"Plot written to {path}")
