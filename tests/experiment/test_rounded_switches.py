"""Changes of a relation that are rounding are none; all others are kept where they are."""

from __future__ import annotations

import casadi as ca
import numpy as np

import grisaille as gr
from grisaille import der
from grisaille.experiment import without_rounded_changes

GRID = np.linspace(0.0, 10.0, 2001)


def kept(formula: ca.SX, t: ca.SX) -> tuple[np.ndarray, np.ndarray]:
    values = np.array(ca.Function("f", [t], [formula])(GRID[None, :]).full()).ravel()
    return values, without_rounded_changes(formula, t, GRID, values)


def test_the_sign_of_rounding_is_one_value() -> None:
    t = ca.SX.sym("t")
    a = 2 + ca.sin(t)
    before, after = kept(ca.sign(ca.exp(ca.log(a)) - a), t)
    assert np.count_nonzero(np.diff(before)) > 100
    assert np.count_nonzero(np.diff(after)) == 0


def test_real_changes_stay_where_they_are() -> None:
    """Also where a gap is exactly zero for a while, or passes zero at an instant of the grid."""
    t = ca.SX.sym("t")
    for formula in (ca.sin(20 * t) > 0, 0 < ca.fmax(0, ca.sin(3 * t)), 5 <= t, ca.sign(ca.sin(np.pi * t)), ca.floor(t)):
        before, after = kept(formula, t)
        assert np.array_equal(before, after)


def test_a_loop_that_has_converged_does_not_cut_steps() -> None:
    """Heron's root of a formula of time, which stops at 1e-12: the sign of what is left changed ten thousand times."""

    class Root(gr.Model):
        x = gr.Variable(start=0.0)
        a = 2 + gr.sin(gr.time)
        y = gr.Variable()

        def equations(self):  # type: ignore[no-untyped-def]
            y = 1.0
            for _ in range(6):
                y = gr.where(abs(y * y - self.a) > 1e-12, 0.5 * (y + self.a / y), y)
            yield self.y == y
            yield der(self.x) == self.y

    times = np.linspace(0.0, 4.0, 5)
    run = gr.simulate(Root(), times)
    np.testing.assert_allclose(run["y"].values, np.sqrt(2 + np.sin(times)), rtol=1e-12)
    assert run.attrs["steps"] < 200
