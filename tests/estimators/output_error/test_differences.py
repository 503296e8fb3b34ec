"""Fits whose trajectories cross a switch of their states: derivatives are exact where it is located; where it is not
they are differences, and errors are marked as approximate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

import grisaille as gr
from grisaille import der
from grisaille.structure import held_events

times = np.linspace(0, 6, 61)


class Coulomb(gr.Model):
    k = gr.Parameter(3.9, bounds=(0.5, 20))
    mu = gr.Parameter(0.18, bounds=(0.001, 2))
    x, v = gr.Variable(1.0), gr.Variable(0.0)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == v, der(v) == -k * x - mu * gr.sign(v)]


def ring_down(k: float, mu: float) -> np.ndarray:
    """Half a turn after another about a centre at ±mu/k."""
    w, centre, x0, t0, out = np.sqrt(k), mu / k, 1.0, 0.0, np.zeros_like(times)
    while t0 < times[-1]:
        here = (times >= t0 - 1e-12) & (times <= t0 + np.pi / w + 1e-12)
        out[here] = centre + (x0 - centre) * np.cos(w * (times[here] - t0))
        x0, t0, centre = 2 * centre - x0, t0 + np.pi / w, -centre
    return out


class Leaking(gr.Model):
    """A tank that leaks faster below a level that is unknown."""

    g = gr.Parameter(1.0, bounds=(0.2, 5))
    level = gr.Parameter(1.0, bounds=(0.2, 1.8))
    T = gr.Variable(2.0)
    y = gr.Output(T, noise=0.01)
    equations = [der(T) == -gr.where(T < level, g, 0.3)]


def leaking(g: float, level: float) -> np.ndarray:
    crossing = (2.0 - level) / 0.3
    return np.where(times < crossing, 2.0 - 0.3 * times, level - g * (times - crossing))


@pytest.mark.parametrize(
    "model, formula, truth, seed",
    [(Coulomb, ring_down, (4.0, 0.2), 3), *((Leaking, leaking, (0.7, 1.1), seed) for seed in (3, 4, 5, 6))],
)
def test_estimates_and_errors_are_those_of_the_closed_form(model, formula, truth, seed) -> None:  # type: ignore[no-untyped-def]
    """A threshold bends the prediction at each sample it passes: the criterion has minima on both sides."""
    y = formula(*truth) + 0.01 * np.random.default_rng(seed).standard_normal(times.size)
    fit = gr.fit(model(), gr.Experiment(times, outputs={"y": y}), method=gr.OutputError())
    starts = [truth] if model is Coulomb else [(truth[0], level) for level in np.linspace(1.085, 1.115, 31)]
    own = min(
        (least_squares(lambda q: (y - formula(*q)) / 0.01, q, diff_step=1e-7) for q in starts), key=lambda r: r.cost
    )
    errors = np.sqrt(np.diag(np.linalg.inv(own.jac.T @ own.jac)))
    found = np.array([float(fit[n]) for n in fit.names])
    assert fit.converged and not fit.estimate.caution and "std. error*" not in str(fit)
    assert np.sum((y - formula(*found)) ** 2) / 0.01**2 < 2 * own.cost + 1e-6
    assert np.abs((found - own.x) / errors).max() < 1e-3
    assert np.allclose(fit.std_errors, errors, rtol=1e-4 if model is Coulomb else 0.1)


@pytest.fixture
def unheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """More relations than are held."""
    monkeypatch.setattr(held_events, "MAX_RELATIONS_HELD", 0)


@pytest.mark.filterwarnings("ignore:1 relations jump with states, and at most 0 are located:UserWarning")
def test_fits_take_differences_and_say_so(unheld: None) -> None:
    class Leaking(gr.Model):
        level = gr.Parameter(1.1, bounds=(0.2, 1.8))
        T = gr.Variable(2.0)
        y = gr.Output(T, noise=0.01)
        equations = [der(T) == -gr.where(T < level, 0.7, 0.3)]

    some = slice(0, None, 4)
    y = leaking(0.7, 1.1)[some] + 0.01 * np.random.default_rng(3).standard_normal(times[some].size)
    data = gr.Experiment(times[some], outputs={"y": y})
    fit = gr.fit(Leaking(), data, ["level"], method=gr.OutputError())
    assert "crosses" in fit.notes[0] and "approximate" in fit.notes[0]
    assert "std. error*" in str(fit) and "(approximate error)" in str(fit[fit.names[0]])


def test_a_fit_that_crosses_nothing_is_as_before() -> None:
    early = times[times < 1.4]
    y = ring_down(4.0, 0.2)[: early.size] + 0.01 * np.random.default_rng(3).standard_normal(early.size)
    fit = gr.fit(Coulomb(), gr.Experiment(early, outputs={"y": y}), method=gr.OutputError())
    assert fit.converged and not fit.estimate.caution and "std. error*" not in str(fit)


@pytest.mark.filterwarnings("ignore:1 relations jump with states, and at most 0 are located:UserWarning")
def test_derivatives_of_a_simulation_that_crosses_are_refused(unheld: None) -> None:
    class Rubbing(gr.Model):
        k = gr.Parameter(4.0)
        x, v = gr.Variable(1.0), gr.Variable(0.0)
        equations = [der(x) == v, der(v) == -k * x - 0.18 * gr.sign(v)]

    with pytest.raises(gr.ModelError, match=r"crosses 'sign\(v\)' at t = 1.5"):
        gr.simulate(Rubbing(), times, sensitivities=["k"])
    gr.simulate(Rubbing(), times[times < 1.4], sensitivities=["k"])


class Threshold(gr.Model):
    th = gr.Parameter(1.0, bounds=(0.1, 4))
    u, x = gr.Input(), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.1)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -x + gr.where(u > th, 1.0, 0.0) + w]


@pytest.mark.parametrize("method", [gr.OutputError(), gr.KalmanML(), gr.SimulatedPEM(), gr.Collocation()])
def test_thresholds_that_an_input_passes_are_refused_by_every_estimator(method: object) -> None:
    data = gr.Experiment(times, {"u": 3 * np.sin(times)}, {"y": np.zeros(times.size)})
    with pytest.raises(gr.GrisailleError, match="moves the threshold of 'th<u'"):
        gr.fit(Threshold(), data, ["th"], method=method)
