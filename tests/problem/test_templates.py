"""Templates: their data are what ``make_data.py`` makes, and their fits find what it was made with."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import grisaille as gr
from grisaille.problem import create, templates


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(templates()))
def test_data_can_be_made_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = create(name, tmp_path / name)
    shipped = {path.name: path.read_text() for path in (folder / "data").iterdir()}
    for path in (folder / "data").iterdir():
        path.unlink()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "model", raising=False)
    runpy.run_path(str(folder / "make_data.py"), run_name="__main__")
    monkeypatch.delitem(sys.modules, "model", raising=False)
    assert set(shipped) == {path.name for path in (folder / "data").iterdir()}
    for file, text in shipped.items():
        _same((folder / "data" / file).read_text(), text)


def _same(made: str, shipped: str) -> None:
    """Cell by cell; numbers may differ in the last digit that is written."""
    for mine, theirs in zip(made.splitlines(), shipped.splitlines(), strict=True):
        for a, b in zip(mine.split(","), theirs.split(","), strict=True):
            assert a == b or float(a) == pytest.approx(float(b), abs=2e-3, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("two-tank", {"leak": 1.2e-4, "pipe": 4e-4, "start(lower)@filling": 0.12, "start(lower)@emptying": 0.25}),
        ("reactor", {"k1": 0.08, "k2": 0.03, "E1": 80.0, "E2": 50.0}),
        ("motor", {"R": 1.6, "k": 0.042, "J": 1.8e-4, "b": 4e-5, "c": 3e-3}),
        ("pendulum", {"k": 6.25}),
        ("rc-building", {"Ci": 1.4, "Ce": 6.0, "Rie": 1.5, "Rea": 6.0}),
    ],
)
def test_fits_find_what_the_data_were_made_with(name: str, truth: dict[str, float], tmp_path: Path) -> None:
    """Each within 4.5 of its own standard errors, a priori probability of failure below 2e-4 for all together."""
    fit = gr.load_problem(create(name, tmp_path / name)).fit()
    assert fit.converged
    errors = {n: (float(fit[n]) - v) / fit.parameters.loc[n, "std_error"] for n, v in truth.items()}
    assert np.abs(list(errors.values())).max() < 4.5, errors
