"""The implicit method through tables with many knots: right, and with no more steps than smooth formulas need."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 9.0, 10)
KNOTS = np.linspace(-1.0, 21.0, 221)
HEIGHTS = np.sin(1.3 * KNOTS) + 0.3 * np.cos(3 * KNOTS)


def track(height):  # type: ignore[no-untyped-def]
    """A damped oscillator on a track of this height, driven along it at a speed of two."""

    class Track(gr.Model):
        s, x, v = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
        equations = [der(s) == 2.0, der(x) == v, der(v) == -9.0 * (x - height(s)) - 0.5 * v]

    return Track()


def exact(height) -> np.ndarray:  # type: ignore[no-untyped-def]
    """From knot to knot, where the track is smooth."""
    ends = np.unique(np.concatenate([TIMES, KNOTS[KNOTS > 0] / 2]))
    y, found = np.zeros(2), [0.0]
    for low, high in pairwise(ends):
        if high > TIMES[-1]:
            break
        rates = lambda t, y: [y[1], -9.0 * (y[0] - height(2.0 * t)) - 0.5 * y[1]]  # noqa: E731
        y = solve_ivp(rates, (low, high), y, "DOP853", rtol=1e-10, atol=1e-13).y[:, -1]
        if high in TIMES:
            found.append(y[0])
    return np.array(found)


@pytest.mark.parametrize("kind", ["cubic", "linear"])
def test_no_step_is_accepted_after_one_iteration_that_another_piece_made_look_enough(kind: str) -> None:
    """Where the last pieces were straight, one iteration was taken for enough on the next: 1.6e-3 at rtol = 1e-6."""
    right = exact(CubicSpline(KNOTS, HEIGHTS) if kind == "cubic" else lambda s: np.interp(s, KNOTS, HEIGHTS))
    model = track(lambda s: gr.table(s, KNOTS, HEIGHTS, kind=kind))
    for rtol in (1e-6, 3e-7, 3e-8):
        run = gr.simulate(model, TIMES, rtol=rtol, method="implicit")
        assert np.abs(run["x"].values - right).max() < 100 * rtol, rtol


def test_smooth_knots_need_no_steps() -> None:
    smooth = gr.simulate(track(lambda s: gr.sin(1.3 * s) + 0.3 * gr.cos(3 * s)), TIMES, rtol=1e-6, method="implicit")
    table = gr.simulate(track(lambda s: gr.table(s, KNOTS, HEIGHTS, kind="cubic")), TIMES, rtol=1e-6, method="implicit")
    assert table.attrs["steps"] < 1.5 * smooth.attrs["steps"]
