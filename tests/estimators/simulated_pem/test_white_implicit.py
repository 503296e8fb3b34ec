"""Simulated prediction errors of models with white noise beside implicit equations."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, spectra

TIMES = np.linspace(0.0, 15.0, 61)
PUSH = 1.5 * np.sign(np.sin(0.7 * TIMES + 0.1))


class Bent(gr.Model):
    """dx = (b u − a z) dt + σ dω with z + z³ = x."""

    a, b = gr.Parameter(0.7, bounds=(0.05, 20.0)), gr.Parameter(1.4, bounds=(0.05, 20.0))
    x, z, u = gr.Variable(0.2), gr.Variable(0.2), gr.Input()
    w = gr.Disturbance(spectra.white(), scale=0.4)
    y = gr.Output(z, noise=0.05)
    equations = [der(x) == b * u - a * z + w, z + z**3 == x]


class Battery(gr.Model):
    """Constant power from a cell whose charge wanders: (E − R i) i = P."""

    E, R, C = gr.Parameter(4.0), gr.Parameter(0.3, bounds=(0.01, 2.0)), gr.Parameter(20.0, bounds=(1.0, 200.0))
    q, i, P = gr.Variable(1.0), gr.Variable(0.5), gr.Input()
    w = gr.Disturbance(spectra.white(), scale=0.02)
    y = gr.Output(E + 0.5 * q - R * i, noise=0.01)
    equations = [C * der(q) == -i + C * w, (E + 0.5 * q - R * i) * i == P]


def bent(random: np.random.Generator) -> gr.Experiment:
    """Heun's steps of 10 ms with Cardano's root."""
    x, seen, h = 0.2, [], 0.01
    for push in PUSH:
        seen.append(root(x))
        for dW in 0.4 * np.sqrt(h) * random.standard_normal(25):
            first = push - root(x)
            x += 0.5 * h * (first + push - root(x + h * first + dW)) + dW
    return gr.Experiment(TIMES, {"u": PUSH}, {"y": np.array(seen) + 0.05 * random.standard_normal(61)})


def root(x: float) -> float:
    q = np.sqrt(x * x / 4 + 1 / 27)
    return float(np.cbrt(q + x / 2) - np.cbrt(q - x / 2))


def battery(random: np.random.Generator) -> gr.Experiment:
    P, q, seen, h = np.where(PUSH > 0, 4.0, 1.0), 1.0, [], 0.05
    for p in P:
        for _ in range(5):
            E = 4 + 0.5 * q
            i = (E - np.sqrt(E * E - 1.2 * p)) / 0.6
            seen.append(E - 0.3 * i)
            q += -h * i / 20 + 0.02 * np.sqrt(h) * random.standard_normal()
    return gr.Experiment(TIMES, {"P": P}, {"y": np.array(seen[::5]) + 0.01 * random.standard_normal(61)})


@pytest.mark.parametrize(
    ("model", "record", "truth"), [(Bent, bent, {"a": 1.0, "b": 1.0}), (Battery, battery, {"R": 0.3, "C": 20.0})]
)
@pytest.mark.parametrize("match", ["mean", "mean-variance"])
def test_the_truth_is_within_four_errors(model: type[gr.Model], record: object, truth: dict, match: str) -> None:
    method = gr.SimulatedPEM(realizations=50, threads=1, match=match)
    guess = {n: 1.3 * v for n, v in truth.items()}
    fit = gr.fit(model(), record(np.random.default_rng(3)), list(truth), method, guess=guess)
    assert fit.converged, fit.status
    for name, value in truth.items():
        assert abs(float(fit[name]) - value) < 4 * fit[name].std_error < value


@pytest.mark.parametrize("match", ["mean", "mean-variance"])
def test_the_gradient_is_that_of_the_criterion(match: str) -> None:
    """By a parameter, a scale and a start, against central differences."""
    names = ["a", "scale(w)", "start(x)"] if match == "mean" else ["a", "scale(w)", "start(x)", "noise(y)"]
    theta = np.array([0.9, 0.5, 0.3, 0.07])[: len(names)]
    weighting = np.eye(1) if match == "mean" else None
    method = gr.SimulatedPEM(realizations=20, threads=1, match=match, weighting=weighting)
    data = bent(np.random.default_rng(1))

    def at(values: np.ndarray) -> object:
        return gr.evaluate(Bent(), data, method, dict(zip(names, values.tolist(), strict=True)), names)

    gradient = np.array([at(theta).gradient[n] for n in names])
    for k, h in enumerate(1e-5 * theta):
        step = h * np.eye(len(theta))[k]
        slope = (at(theta + step).objective - at(theta - step).objective) / (2 * h)
        assert gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-5 * np.abs(gradient).max())
