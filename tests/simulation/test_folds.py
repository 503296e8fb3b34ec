"""Algebraic equations with several solutions: one is followed to its end, and then z jumps (hysteresis)."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, where

TIMES = np.linspace(0, 10, 101)


class Switches(gr.Model):
    """An amplifier with positive feedback, smooth and in straight pieces; x sees both."""

    x, y, u = gr.Variable(0.0), gr.Variable(0.0), gr.Input()
    smooth, bent = gr.Variable(start=-1.2), gr.Variable(start=-2.0)
    equations = [
        der(x) == smooth - x, der(y) == bent - y, smooth**3 - smooth == u,
        bent == u + where(100 * bent > 2, 2, where(100 * bent < -2, -2, 100 * bent)),
    ]  # fmt: skip


def drive(t: np.ndarray) -> np.ndarray:
    return np.asarray(2.5 * np.sin(2 * t))


def levels(end: float) -> np.ndarray:
    """−1 until the drive is above ``end``, 1 until it is below −``end``, and so on, at TIMES."""
    fine = np.linspace(0, 10, 200_001)
    level, found = -1, []
    for k, u in enumerate(drive(fine)):
        level = 1 if u > end else -1 if u < -end else level
        if k % 2000 == 0:
            found.append(level)
    return np.array(found)


@pytest.fixture(scope="module", params=["explicit", "implicit"])
def run(request: pytest.FixtureRequest) -> object:
    return gr.simulate(Switches(), TIMES, inputs={"u": drive}, method=request.param)


def test_a_smooth_solution_is_followed_to_its_fold(run) -> None:
    want = []
    for u, level in zip(drive(TIMES), levels(2 / 27**0.5), strict=True):
        real = [r.real for r in np.roots([1, 0, -1, -u]) if abs(r.imag) < 1e-9]
        want.append(max(real) if level > 0 else min(real))
    assert np.abs(run["smooth"].values - want).max() < 1e-6


def test_a_solution_in_pieces_is_followed_to_its_bend(run) -> None:
    assert np.abs(run["bent"].values - (drive(TIMES) + 2 * levels(1.98))).max() < 1e-8
    assert run.attrs["solution_jumps"] == 14
    assert "with 14 jumps to another solution" in run.attrs["status"]


def test_a_static_model_jumps_between_rows() -> None:
    class Static(gr.Model):
        z, u = gr.Variable(start=-2.0), gr.Input()
        equations = [z == u + where(100 * z > 2, 2, where(100 * z < -2, -2, 100 * z))]

    got = gr.simulate(Static(), TIMES, inputs={"u": drive(TIMES)})["z"].values
    level, want = -1, []
    for u in drive(TIMES):
        level = 1 if u > 1.98 else -1 if u < -1.98 else level
        want.append(u + 2 * level)
    assert np.abs(got - want).max() < 1e-9


def test_what_cannot_be_told_is_refused() -> None:
    with pytest.raises(gr.SimulationError, match=r"could not be followed .*derivatives of the instant"):
        gr.simulate(Switches(), TIMES, inputs={"u": drive}, sensitivities=["start(x)"])


class Snapping(gr.Model):
    """Its algebraic solution ends once."""

    a, x, v, s = gr.Parameter(2.5), gr.Variable(0.0), gr.Variable(0.0), gr.Variable(start=-1.0)
    equations = [der(x) == s - x, der(v) == a, s**3 - s == v]


def test_frozen_steps_across_a_jump_have_no_derivatives() -> None:
    """The instant of the jump moves with a, and no equal step ends there."""
    with pytest.raises(gr.SimulationError, match="s could not be followed"):
        gr.simulate(Snapping(), [0.0, 1.0], method="frozen-explicit", step=0.01, sensitivities=["a"])


def test_frozen_steps_count_jumps_and_do_not_become_shorter_without_end() -> None:
    frozen = gr.simulate(Snapping(), [0.0, 0.5, 1.0], method="frozen-explicit")
    exact = gr.simulate(Snapping(), [0.0, 0.5, 1.0], rtol=1e-9)
    assert frozen.attrs["solution_jumps"] == exact.attrs["solution_jumps"] == 1
    assert frozen.attrs["steps"] < 50_000
    np.testing.assert_allclose(frozen.x, exact.x, atol=2e-3)
