"""Where starts lie: inside their ranges, evenly, and refused with a remedy where there is no range."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille.bound_experiment import Unknown
from grisaille.errors import EstimationError
from grisaille.study import make_starts


def unknown(name: str, lower: float = -np.inf, upper: float = np.inf, **more: object) -> Unknown:
    return Unknown(name, "parameter", name, None, np.nan, lower, upper, **more)


BOX = [unknown("a", 0.0, 4.0), unknown("b", 1e-3, 10.0, logarithmic=True)]


@pytest.mark.parametrize("sampling", ["sobol", "latin", "grid"])
def test_ranges_are_filled_evenly(sampling: str) -> None:
    points = make_starts(BOX, sampling, 64, 1, {}).points
    assert points.shape == (64, 2)
    for share in (points[:, 0] / 4, np.log10(points[:, 1] / 1e-3) / 4):
        counts = np.histogram(share, bins=8, range=(0, 1))[0]
        assert counts.min() >= 7 and counts.max() <= 9


def test_sobol_goes_on_where_it_stopped() -> None:
    few, many = (make_starts(BOX, "sobol", n, 5, {}) for n in (10, 100))
    assert np.array_equal(few.points, many.points[:10])
    assert few.header() == many.header()
    latin = [make_starts(BOX, "latin", n, 5, {}).header() for n in (10, 100)]
    assert latin[0] != latin[1]


def test_seed_moves_the_points() -> None:
    for sampling in ("sobol", "latin"):
        a, b = (make_starts(BOX, sampling, 8, seed, {}).points for seed in (0, 1))
        assert not np.allclose(a, b)


def test_given_points() -> None:
    grid = make_starts(BOX, {"a": [1.0, 2.0, 3.0], "b": [0.1, 1.0]}, 0, 0, {}).points
    assert grid.tolist() == [[a, b] for a in (1.0, 2.0, 3.0) for b in (0.1, 1.0)]
    partial = make_starts(BOX, {"b": [0.1, 1.0]}, 0, 0, {}).points
    assert np.isnan(partial[:, 0]).all() and partial[:, 1].tolist() == [0.1, 1.0]
    frame = make_starts(BOX, pd.DataFrame({"b": [0.5], "a": [2.0]}), 0, 0, {}).points
    assert frame.tolist() == [[2.0, 0.5]]


def test_ranges_come_from_calls_bounds_and_priors() -> None:
    priors = [unknown("n", prior=gr.Normal(5.0, 1.0)), unknown("l", prior=gr.LogNormal(1.0, 0.5), logarithmic=True)]
    points = make_starts(priors, "sobol", 64, 0, {}).points
    assert 3 <= points[:, 0].min() < 3.2 and 6.8 < points[:, 0].max() <= 7
    assert np.exp(-1) <= points[:, 1].min() and points[:, 1].max() <= np.exp(1)
    narrow = make_starts([unknown("a")], "sobol", 16, 0, {"a": (2.0, 3.0)}).points
    assert narrow.min() >= 2 and narrow.max() <= 3


@pytest.mark.parametrize(
    ("unknowns", "sampling", "ranges", "words"),
    [
        ([unknown("a")], "sobol", {}, "Starts of 'a' need a finite range: give bounds="),
        ([unknown("a", 0.0, 9.0, logarithmic=True)], "sobol", {}, "finite range above zero"),
        (BOX, "sobol", {"c": (0, 1)}, "ranges= names 'c', which is not estimated"),
        (BOX, "sobol", {"a": (7, 9)}, "nothing lies in it"),
        (BOX, "random", {}, "sampling is 'random'; give 'sobol'"),
        (BOX, np.zeros((3, 5)), {}, "one column for each of a, b"),
        (BOX, np.array([[1.0, 1.0], [5.0, 1.0]]), {}, r"start 1 has a = 5, outside \(0, 4\)"),
        (BOX, {"z": [1.0]}, {}, "sampling= names 'z'"),
    ],
)
def test_mistakes(unknowns: list[Unknown], sampling: object, ranges: dict, words: str) -> None:
    with pytest.raises(EstimationError, match=words):
        make_starts(unknowns, sampling, 8, 0, ranges)


def test_number_of_starts_is_checked() -> None:
    for starts in (0, 2.5, True):
        with pytest.raises(EstimationError, match="whole number above zero"):
            make_starts(BOX, "sobol", starts, 0, {})
