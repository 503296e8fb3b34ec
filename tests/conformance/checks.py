"""What must hold for every pair of an animal and an estimator, one function each.

    fit        the truth lies within four standard errors, and these are smaller than half of it; the search converged
    gradient   the criterion's slope along one direction agrees with differences of its values
    save       a fit that is read from its file has the same estimates and errors and predicts the same
    predict    the prediction is finite, at every instant, and near what was measured
    profile    the interval holds the estimate; the table with its intervals is the same in a file
    bootstrap  a data set is drawn and fitted

Data of a disturbed model lie away from the simulation that output error compares with: its standard errors know nothing
of that. It must say so, and come as near as ``ROUGH``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from conformance.entry import Entry
from conformance.estimators import ESTIMATORS, Estimator, is_disturbed
from conformance.zoo import ZOO

ERRORS = 4.0
"""Standard errors between an estimate and the truth."""
SHARP = 0.5
"""Standard errors in parts of an unknown's size: wider ones would agree with anything."""
NEAR = 0.8
"""Parts of the scatter of the data that a prediction may leave: a mean of many paths leaves the path itself."""
ROUGH = 0.3
"""Parts of the size between the truth and an estimate that holds disturbances at zero."""
ACROSS_JUMPS = (0.01, 0.03)
"""Relative step by which averages over paths that jump are differenced, and how well few paths then agree."""
ROUGH_STEP, ROUGH_SCORE, ROUGH_SLOPE = 0.03, 1.0, 0.1
"""The same where random numbers leave a criterion rough: two slopes scatter by what one standard error adds, or less:
they agree to that, and a part of themselves."""


@dataclass(frozen=True)
class Pair:
    """An animal and an estimator, by their names."""

    animal: str
    method: str

    @property
    def entry(self) -> Entry:
        return ZOO[self.animal]

    @property
    def estimator(self) -> Estimator:
        return ESTIMATORS[self.method]

    @property
    def refusal(self) -> str:
        return self.estimator.refusal(self.entry)

    @property
    def fit(self) -> gr.Fit:
        return _fitted(self)

    def __str__(self) -> str:
        return f"{self.animal}-{self.method}"


@cache
def _fitted(pair: Pair) -> gr.Fit:
    """Once per process: the checks of one pair follow each other."""
    return pair.entry.fit(pair.estimator.method)


def refused(pair: Pair, _: Path) -> None:
    with pytest.raises(gr.GrisailleError, match=re.escape(pair.refusal)):
        pair.entry.fit(pair.estimator.method)


def fit(pair: Pair, _: Path) -> None:
    found, entry = pair.fit, pair.entry
    assert found.converged, found.status
    holds = pair.estimator.holds and is_disturbed(entry)
    if holds:
        assert any("output error holds the disturbances" in note for note in found.notes)
        if "squared" in entry.traits:
            assert found.notes[0].startswith("shifted mean: w enters nonlinearly") and "std. error*" in str(found)
            return
    for name, truth in entry.truth.items():
        value, size = found[name], entry.size(name)
        off = abs(float(value) - truth)
        at_bound = off < 1e-9 * size and value.std_error == 0
        assert at_bound or 0 < value.std_error < SHARP * size, f"{name} = {value}"
        assert off <= (ROUGH * size if holds else ERRORS * value.std_error), f"{name} = {value}, truth {truth:g}"


def gradient(pair: Pair, _: Path) -> None:
    entry, method = pair.entry, pair.estimator.criterion(pair.entry)
    names = list(entry.truth)
    turns = np.where(np.arange(len(names)) % 2 == 0, 1.0, 0.6)
    direction = turns * [entry.size(n) for n in names]
    centre = np.array(list(entry.truth.values())) + 0.03 * direction

    def at(step: float) -> Any:
        point = dict(zip(names, (centre + step * direction).tolist(), strict=True))
        return gr.evaluate(*entry.made, method, point)

    def slope(h: float) -> float:
        return float(at(h).objective - at(-h).objective) / (2 * h)

    h, within = ACROSS_JUMPS if "jump" in entry.traits and pair.estimator.averages else (1e-3, 1e-3)
    if pair.estimator.rough:
        h = ROUGH_STEP
    told = float(np.dot([at(0.0).gradient[n] for n in names], direction))
    if pair.estimator.rough:
        information = np.linalg.pinv(pair.fit.covariance.loc[names, names].to_numpy())
        # an estimate at its bound has no standard error, and a slope that is large against what random numbers do
        scatter = ROUGH_SCORE * np.sqrt(direction @ information @ direction)
        assert abs(told - slope(h)) < scatter + ROUGH_SLOPE * abs(told)
        return
    assert told == pytest.approx(slope(h), rel=within)


@cache
def _predicted(pair: Pair, experiment: int) -> Any:
    return pair.fit.predict(pair.fit.experiments[experiment])


def save(pair: Pair, folder: Path) -> None:
    path = folder / "fit.nc"
    pair.fit.save(path)
    again = gr.load(path)
    for name in pair.entry.truth:
        assert (float(again[name]), again[name].std_error) == (float(pair.fit[name]), pair.fit[name].std_error)
    pd.testing.assert_frame_equal(again.covariance, pair.fit.covariance, check_exact=True)
    assert (again.status, again.notes, again.method) == (pair.fit.status, pair.fit.notes, pair.fit.method)
    before, after = _predicted(pair, 0), again.predict()
    for name in pair.fit.experiments[0].outputs:
        np.testing.assert_array_equal(after[name].values, before[name].values)


def predict(pair: Pair, _: Path) -> None:
    for k, experiment in enumerate(pair.fit.experiments):
        predicted = _predicted(pair, k)
        for name in experiment.outputs:
            times, seen, _weights = experiment.measurements(name)
            values = predicted[name].values
            assert values.shape == experiment.grid().shape and np.isfinite(values).all()
            rows = np.searchsorted(experiment.grid(), times) if times is not None else np.arange(len(seen))
            left = np.nanstd(seen - values[rows]) / np.nanstd(seen)
            assert left < NEAR


def profile(pair: Pair, folder: Path) -> None:
    """The table with its intervals, some of which are profiles, is the same in a file."""
    table = pair.fit.parameters
    pair.fit.save(folder / "fit.nc")
    pd.testing.assert_frame_equal(gr.load(folder / "fit.nc").parameters, table, check_exact=True)
    name = next(iter(pair.entry.truth))
    found = pair.fit.profile(name, points=2)
    lower, upper = found.interval
    assert (lower is None or lower <= found.estimate) and (upper is None or found.estimate <= upper)
    assert lower is not None or upper is not None


def bootstrap(pair: Pair, _: Path) -> None:
    found = gr.bootstrap(pair.fit, runs=1, executor="serial")
    assert len(found.table) == 1
    assert np.isfinite(found.table[list(pair.entry.truth)].to_numpy()).all()


Check = Callable[[Pair, Path], None]
EVERYWHERE: dict[str, Check] = {"fit": fit, "gradient": gradient, "save": save, "predict": predict}
IN_TURN: dict[str, Check] = {"profile": profile, "bootstrap": bootstrap}
