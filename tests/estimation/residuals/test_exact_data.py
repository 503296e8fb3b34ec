"""Levels of noise on data that a model explains exactly: bounded work that ends in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

T = np.linspace(0.0, 12.0, 41)


class Tank(gr.Model):
    """Nothing is known of its noise."""

    k = gr.Parameter(0.3, bounds=(0.01, 5.0))
    h = gr.Variable(0.5)
    w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.05)
    y = gr.Output(h)
    equations = [der(h) == 2.0 + w - k * h]


class Orifice(Tank):
    equations = [der(Tank.h) == 2.0 + Tank.w - Tank.k * Tank.h**2]


class Two(Orifice):
    g = gr.Variable(0.1)
    z = gr.Output(g)
    equations = [*Orifice.equations, der(g) == Tank.h - Tank.k * g]


class Sigma(Orifice):
    """Its noise is a parameter of the model."""

    s = gr.Parameter(0.1, bounds=(0.0, 1.0))
    y = gr.Output(Tank.h, noise=s)


class Declared(Orifice):
    y = gr.Output(Tank.h, noise=0.01)


def record(model: gr.Model, noise: float = 0.0) -> gr.Experiment:
    run = gr.simulate(model, T, parameters={"k": 0.5}, rtol=1e-11)
    random = np.random.default_rng(1)
    outputs = [n for n in ("y", "z") if n in run]
    return gr.Experiment(T, {}, {n: run[n].to_numpy() + noise * random.normal(size=41) for n in outputs})


@pytest.mark.parametrize(
    ("model", "method", "named"),
    [
        (Tank(), gr.Collocation(), "noise(y)"),
        (Orifice(), gr.Collocation(intensities="estimate"), "scale(w), noise(y)"),
        (Two(), gr.Collocation(), "noise("),
        (Tank(), gr.KalmanML(), "scale(w), noise(y)"),
        (Orifice(), gr.KalmanML(), "scale(w), noise(y)"),
        (Sigma(), gr.KalmanML(), "scale(w), s"),
    ],
)  # fmt: skip
def test_searches_end_in_words(model: Any, method: Any, named: str) -> None:
    wanted = ["k"] if isinstance(method, gr.Collocation) else ["k", "scale(w)", *(["s"] if hasattr(model, "s") else [])]
    wanted += [] if isinstance(method, gr.Collocation) or "s" in wanted else ["noise(y)"]
    found = gr.fit(model, record(model), wanted, method)
    assert not found.converged and "are explained exactly, to " in found.status and named in found.status
    assert "gr.OutputError()" in found.status and found.estimate.evaluations < 250
    assert abs(float(found["k"]) - 0.5) < 1e-3


@pytest.mark.parametrize("method", [gr.KalmanML(), gr.Collocation(criterion="laplace")])
def test_a_scale_beside_declared_noise_is_zero_and_an_answer(method: Any) -> None:
    found = gr.fit(Declared(), record(Declared()), ["k", "scale(w)"], method)
    assert found.converged and "explained exactly" not in found.status
    assert float(found["scale(w)"]) < 0.01


def test_ordinary_noise_is_no_exact_explanation() -> None:
    found = gr.fit(Orifice(), record(Orifice(), 0.01), ["k"], gr.Collocation())
    assert found.converged and 0.003 < float(found["noise(y)"]) < 0.02
