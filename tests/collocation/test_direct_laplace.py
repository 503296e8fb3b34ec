"""Laplace's likelihood: exact for linear models, its gradient exact for all, scales and noise levels free."""

from __future__ import annotations

import numpy as np
import pytest
from collocation.direct_problems import Buffer, Oscillator, Pendulum, buffered, data, program

import grisaille as gr
from grisaille import der
from grisaille.collocation import marginal
from grisaille.collocation.direct import RadauElements, place, simulated_point

TIMES = np.linspace(0.0, 10.0, 41)
PUSH = np.sign(np.sin(TIMES))
ELEMENTS = gr.Collocation(transcription="direct")
KNOWN = gr.KalmanML(initial_covariance={"x": 0.0, "v": 0.0})


def at(problem, theta, pieces=1):
    mesh = problem.transcribe(RadauElements(pieces))
    return marginal(place(mesh, simulated_point(mesh, np.asarray(theta), problem.starts)), 1e-13)


def differences(problem, theta, step=1e-5):
    steps = step * np.eye(len(theta))
    return np.array([(at(problem, theta + d).value - at(problem, theta - d).value) / (2 * step) for d in steps])


def test_linear_model_has_the_likelihood_of_the_filter() -> None:
    record = data(Oscillator(), TIMES, "y", u=PUSH, seed=3)[0]
    found = at(program(Oscillator(), record, ["a", "b", "s"]), [1.1, 0.4, 0.3], 4)
    exact = gr.evaluate(Oscillator(), record, KNOWN, {"a": 1.1, "b": 0.4, "s": 0.3})
    assert -found.value == pytest.approx(exact.log_likelihood, abs=1e-7)
    reference = gr.fit(Oscillator(), record, ["a", "b", "s"], KNOWN)
    ours = gr.fit(Oscillator(), record, ["a", "b", "s"], ELEMENTS)
    assert ours.converged and ours.log_likelihood == pytest.approx(reference.log_likelihood, abs=1e-4)
    np.testing.assert_allclose(ours.parameters["estimate"], reference.parameters["estimate"], rtol=1e-4)
    np.testing.assert_allclose(ours.parameters["std_error"], reference.parameters["std_error"], rtol=1e-3)


class Coloured(gr.Model):
    """Filtered, integrated and correlated disturbances in one linear model."""

    k = gr.Parameter(0.7)
    x, z = gr.Variable(2.0), gr.Variable(0.0)
    slow = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.8), scale=0.3)
    drift = gr.Disturbance(gr.spectra.integrated(), scale=0.2)
    w = gr.Disturbance(gr.spectra.white(), scale=0.2, size=2, correlation=[[1.0, 0.6], [0.6, 1.0]])
    y1, y2 = gr.Output(x, noise=0.1), gr.Output(z, noise=0.2)
    equations = [der(x) == -k * x + slow + drift + w[0], der(z) == x - z + w[1]]


def test_coloured_integrated_and_correlated_disturbances_have_the_likelihood_of_the_filter() -> None:
    times = np.linspace(0.0, 6.0, 25)
    run = gr.simulate(Coloured(), times, realizations=1, seed=4, noise=True)
    record = gr.Experiment(times, {}, {n: run[n].to_numpy().reshape(-1) for n in ("y1", "y2")})
    names = ["k", "scale(slow)", "scale(drift)"]
    values = {"k": 0.6, "scale(slow)": 0.4, "scale(drift)": 0.15}
    found = at(program(Coloured(), record, names, values), list(values.values()), 3)
    known = gr.KalmanML(initial_covariance={"x": 0.0, "z": 0.0})
    exact = gr.evaluate(Coloured(), record, known, values)
    assert -found.value == pytest.approx(exact.log_likelihood, abs=1e-6)
    # gradients are of the objective here
    np.testing.assert_allclose(found.slope, [exact.gradient[n] for n in names], atol=1e-4)


def test_scale_and_noise_are_free_together() -> None:
    record = data(Oscillator(), TIMES, "y", u=PUSH, seed=6)[0]
    names = ["a", "scale(w)", "noise(y)"]
    guess = {"scale(w)": 0.3, "noise(y)": 0.2}
    ours = gr.fit(Oscillator(), record, names, ELEMENTS, guess=guess)
    reference = gr.fit(Oscillator(), record, names, KNOWN, guess=guess)
    np.testing.assert_allclose(ours.parameters["estimate"], reference.parameters["estimate"], rtol=2e-4)


@pytest.mark.parametrize("estimate", [["k", "s"], ["k", "start(x)"]])
def test_gradient_is_exact_for_a_pendulum(estimate) -> None:
    times = np.linspace(0.0, 3.0, 16)
    record = data(Pendulum(), times, "phi", u=0.3 * np.sign(np.sin(1.3 * times)), seed=5)[0]
    problem = program(Pendulum(), record, estimate)
    theta = np.array([0.12, 0.22 if "s" in estimate else 0.52])
    np.testing.assert_allclose(at(problem, theta).slope, differences(problem, theta), rtol=1e-4, atol=1e-4)


def test_gradient_is_exact_with_implicit_equations() -> None:
    record = buffered(np.linspace(0.0, 4.0, 11))
    problem = program(Buffer(), record, ["c", "scale(w)"], {"scale(w)": 0.06})
    theta = np.array([0.7, 0.06])
    np.testing.assert_allclose(at(problem, theta).slope, differences(problem, theta), rtol=1e-4, atol=1e-4)


def test_guesses_must_be_finite() -> None:
    record = data(Oscillator(), TIMES, "y", u=PUSH, seed=3)[0]
    with pytest.raises(gr.EstimationError, match="'a' starts from nan"):
        program(Oscillator(), record, ["a"]).solve([np.nan])
