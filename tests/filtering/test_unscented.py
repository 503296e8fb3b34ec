"""The unscented filter where linearisation is blind, and the square roots it rests on."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from zoo.filtered import Squared

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem
from grisaille.filtering import SigmaPoints, square_root

TIMES = np.linspace(0.0, 10.0, 51)


@pytest.mark.parametrize("update", ["unscented", "extended"])
def test_a_squared_disturbance_is_refused(update: str) -> None:
    """Sigma points are drawn anew at every step; the scatter of the states would go to zero with the steps."""
    data = gr.Experiment(TIMES, {}, {"y": np.zeros(TIMES.size)})
    with pytest.raises(gr.EstimationError, match=r"w has no linear effect where it is zero.*SimulatedPEM"):
        build_problem(Squared(), data, ["scale(w)"], gr.KalmanML(filter=update))


def test_averages_of_squares():
    """Three points on each axis give the mean of a square exactly, whatever the parameters."""
    P = np.array([[0.5, 0.1], [0.1, 0.3]])
    for sigma in (SigmaPoints(), SigmaPoints(1.0, 0.0, 0.0), SigmaPoints(0.5, 2.0, 1.0)):
        points, means, covariances = sigma.around(ca.SX([1.0, -2.0]), ca.SX(P))
        at = np.column_stack([np.array(ca.DM(p)).ravel() for p in points])
        w, v = np.array(means).ravel(), np.array(covariances).ravel()
        mean = at @ w
        assert np.allclose(mean, [1.0, -2.0])
        assert np.allclose((at - mean[:, None]) * v @ (at - mean[:, None]).T, P)
        assert (at[0] ** 2) @ w == pytest.approx(1.0 + 0.5)


def test_square_root_of_singular_matrices():
    """Zero columns where there is no uncertainty, with derivatives that exist there."""
    b = np.array([[1.0, 0.0], [2.0, 0.0], [0.5, 0.3]])
    P = ca.SX.sym("P", 3, 3)
    function = ca.Function("root", [P], [square_root(P), ca.jacobian(square_root(P), P)])
    for value in (b @ b.T, np.zeros((3, 3)), np.diag([0.0, 2.0, 0.0]), np.eye(3)):
        L, slopes = (np.array(f) for f in function(value))
        assert np.allclose(L @ L.T, value, atol=1e-12)
        assert np.isfinite(slopes).all()


def test_the_default_weights_are_positive():
    for n in (1, 3, 10):
        _, means, covariances = SigmaPoints().weights(n)
        assert np.array(means).min() > 0 and np.array(covariances).min() > 0
        assert float(ca.sum1(means)) == pytest.approx(1.0)


class Swinging(gr.Model):
    """A mass on a circle in its redundant coordinates, pushed by white noise: P has rank two of four."""

    d = gr.Parameter(0.3, bounds=(0.0, 5.0))
    x, y = gr.Variable(0.6), gr.Variable(-0.8)
    vx, vy = gr.Variable(0.0), gr.Variable(0.0)
    tension = gr.Variable()
    w = gr.Disturbance(gr.spectra.white(), scale=2.0)
    s = gr.Output(x, noise=0.05)
    equations = [
        der(x) == vx, der(y) == vy, der(vx) == tension * x - d * vx + w, der(vy) == tension * y - d * vy - 9.81,
        x**2 + y**2 == 1.0,
    ]  # fmt: skip


@pytest.mark.parametrize(("propagation", "order", "finest"), [("moments", 4, 1e-4), ("linearize", 2, 1e-2)])
def test_steps_on_a_circle_converge_at_their_order(propagation, order, finest):
    """The mean of sigma points leaves the circle at a rate that no step may take for its own error."""
    times = 0.1 * np.arange(9)
    data = gr.Experiment(times, outputs={"s": 0.6 * np.cos(3.1 * times) + 0.03 * np.cos(40 * times)})
    method = {n: gr.KalmanML(filter="unscented", propagation=propagation, substeps=n) for n in (2, 4, 8)}
    found = [float(gr.evaluate(Swinging(), data, m).log_likelihood) for m in method.values()]
    first, second = found[0] - found[1], found[1] - found[2]
    assert abs(second) < abs(first) / 2 ** (order - 0.7)
    assert abs(second) < finest
