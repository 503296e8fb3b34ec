"""Saved fits on the command line: ``FIT.nc``, or a folder that holds ``fit.nc``. Loading one executes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grisaille.errors import DataError

if TYPE_CHECKING:
    from grisaille.results.fit import Fit


def saved_fit(target: Path) -> tuple[Path, Fit]:
    """The file and the fit in it."""
    from grisaille.results.fit import Fit
    from grisaille.results.loading import load

    path = target / "fit.nc" if target.is_dir() else target
    if not path.is_file():
        begun = f"'grisaille fit {target}' writes it" if target.is_dir() else "fit.save and 'grisaille fit' write them"
        raise DataError(f"There is no saved fit {str(path)!r}: {begun}.")
    found = load(path)
    if not isinstance(found, Fit):
        raise DataError(f"{str(path)!r} holds a posterior, not a fit: gr.load(path).fit is the fit, and can be saved.")
    return path, found


def label_of(path: Path) -> str:
    """How a fit is called beside others: its file, or its folder when the file is just ``fit.nc``."""
    return path.resolve().parent.name if path.name == "fit.nc" else path.stem
