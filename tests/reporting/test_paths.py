"""Predictions across gaps are paths of the model, not chords."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.reporting import break_at_gaps, drawn_path, thin

T = np.concatenate([np.arange(0.0, 10.0, 0.5), np.arange(25.0, 30.0, 0.5)])
U = np.sin(0.8 * np.arange(0.0, 30.5, 0.5))


class Lag(gr.Model):
    """x' = u − k x, pushed by noise."""

    k, u, x = gr.Parameter(0.5, bounds=(0.05, 5.0)), gr.Input(), gr.Variable(start=2.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == u - k * x + w]


def data() -> gr.Experiment:
    rng = np.random.default_rng(3)
    grid = np.arange(0.0, 30.5, 0.5)
    x = [2.0]
    for u in U[:-1]:
        x.append(u / 0.5 + (x[-1] - u / 0.5) * np.exp(-0.25) + 0.06 * rng.normal())
    y = np.array(x)[np.searchsorted(grid, T)] + 0.05 * rng.normal(size=len(T))
    return gr.Experiment(T, {"u": (grid, U)}, {"y": y}, name="run")


@pytest.mark.parametrize("method", [gr.OutputError(), gr.KalmanML()], ids=lambda m: type(m).__name__)
def test_the_gap_is_predicted(method: object) -> None:
    fit = gr.fit(Lag(), data(), ["k"], method)
    table = fit.residuals()
    path = drawn_path(fit, "run", "y", table)
    inside = (path.times > 9.5) & (path.times < 25)
    assert inside.sum() == 30 and np.isfinite(path.predicted).all()
    chord = np.interp(path.times[inside], table["time"], table["predicted"])
    assert np.abs(path.predicted[inside] - chord).max() > 0.3, "it follows the input"
    k = float(fit["k"])
    exact = path.predicted[inside][0]
    for t, found in zip(path.times[inside][1:], path.predicted[inside][1:], strict=True):
        u = U[round((t - 0.5) / 0.5)]
        exact = u / k + (exact - u / k) * np.exp(-0.5 * k)
        assert found == pytest.approx(exact, abs=2e-4)
    if isinstance(method, gr.KalmanML):
        spread = path.spread[inside]
        assert (np.diff(spread[:6]) > 0).all() and spread[-1] == pytest.approx(spread[-5], rel=1e-3), (
            "widens, then stays"
        )
    line = fit.plot().axes[0].lines[1]
    assert len(line.get_xdata()) == len(T) + 30


def test_no_gap_no_more_points() -> None:
    fit = gr.fit(
        Lag(), data().replace(outputs={"y": (T[:20], data().outputs["y"].values[:20])}), ["k"], gr.OutputError()
    )
    assert drawn_path(fit, "run", "y", fit.residuals()).times.tolist() == T[:20].tolist()


def test_what_cannot_be_predicted_is_not_drawn() -> None:
    fit = gr.fit(Lag(), data(), ["k"], gr.Collocation(criterion="amle"))
    path = drawn_path(fit, "run", "y", fit.residuals())
    inside = (path.times > 9.5) & (path.times < 25)
    assert np.isnan(path.predicted[inside]).all() and np.isfinite(path.predicted[~inside]).all()


def test_lines_are_broken_where_no_instants_are() -> None:
    t, y = break_at_gaps(T, np.sin(T))
    assert np.isnan(y).sum() == 1 and t[np.isnan(y)] == [(9.5 + 25.0) / 2] and (np.diff(t) > 0).all()
    assert np.array_equal(y[np.isfinite(y)], np.sin(T))
    even = np.arange(40.0)
    assert np.array_equal(break_at_gaps(even, even)[1], even)


def test_thinned_series_keep_their_gaps() -> None:
    y = np.sin(np.arange(2000.0) / 50)
    y[900:1100] = np.nan
    at = thin(np.arange(2000.0), y, 100)
    assert len(at) < 110 and np.isnan(y[at]).sum() == 1
