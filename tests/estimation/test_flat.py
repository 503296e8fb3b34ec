"""Unknowns that are seen together only: infinite errors from every estimator, and the error of what is seen."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

T = np.linspace(0.0, 20.0, 201)


class Gain(gr.Model):
    """Only g·scale(w) is seen."""

    k = gr.Parameter(1.0, bounds=(0.01, 10.0))
    g = gr.Parameter(2.0, bounds=(0.01, 10.0))
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -k * x + g * w]


class Sum(gr.Model):
    """Only a + b is seen."""

    a, b = gr.Parameter(0.6), gr.Parameter(0.4)
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -(a + b) * x + w]


class Ratio(gr.Model):
    """Only a/b**2 is seen, in an equation that is not linear."""

    a, b = gr.Parameter(1.0, bounds=(0.1, 10.0)), gr.Parameter(1.0)
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -a / b**2 * x * gr.sqrt(0.5 + x**2) + w]


class Smooth(gr.Model):
    """Only g·scale(w) is seen; direct collocation takes this one."""

    k = gr.Parameter(1.0, bounds=(0.01, 10.0))
    g = gr.Parameter(2.0, bounds=(0.01, 10.0))
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.5)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -k * x * gr.sqrt(0.5 + x**2) + g * w]


@cache
def record(model: type[gr.Model]) -> Any:
    run = gr.simulate(model(), T, realizations=1, noise=True, seed=2)
    return gr.Experiment(T, {}, {"y": run["y"].values[0]})


CASES = [
    (Gain, gr.KalmanML(), ["k", "g", "scale(w)"], ["g", "scale(w)"], "g * scale(w)"),
    (Gain, gr.KalmanML("unscented"), ["k", "g", "scale(w)"], ["g", "scale(w)"], "g * scale(w)"),
    (Sum, gr.KalmanML(), ["a", "b", "scale(w)"], ["a", "b"], "a + b"),
    (Sum, gr.Collocation("laplace"), ["a", "b"], ["a", "b"], "a + b"),
    (Sum, gr.OutputError(), ["a", "b"], ["a", "b"], "a + b"),
    (Ratio, gr.KalmanML(), ["a", "b", "scale(w)"], ["a", "b"], "a / b**2"),
    (Smooth, gr.Collocation("laplace"), ["k", "g", "scale(w)"], ["g", "scale(w)"], ""),
]


@pytest.mark.parametrize(("model", "method", "names", "lost", "text"), CASES)
def test_what_is_not_seen_has_no_error(
    model: type[gr.Model], method: Any, names: list[str], lost: list[str], text: str
) -> None:
    fit = gr.fit(model(), record(model), names, method, guess={"g": 1.0, "scale(w)": 1.0} if "g" in names else None)
    assert fit.converged
    for name in names:
        assert np.isinf(fit[name].std_error) == (name in lost), name
    assert all(any(n in note for note in fit.notes) for n in lost)
    if not text:
        return
    (note,) = [n for n in fit.notes if n.startswith("determined: ")]
    assert f"{text} = " in note
    value, error = map(float, note.split(" = ")[1].split(",")[0].split(" ± "))
    # with one of the two held, the error of the other says what that of the combination must be
    first, second = lost
    shared = {n: float(fit[n]) for n in ("b",) if n in lost}
    held = gr.fit(model().replace(shared), record(model), [n for n in names if n != second], method)
    if "+" in text:
        assert value == pytest.approx(float(held["a"]) + shared["b"], rel=1e-3)
        assert error == pytest.approx(held["a"].std_error, rel=0.1)
    else:
        assert error / value == pytest.approx(held[first].std_error / float(held[first]), rel=0.1)


def test_a_formula_is_not_guessed_at_equal_values() -> None:
    """At a = b product and sum have the same derivative: the criterion further away decides."""
    guess = {"a": 0.5, "b": 0.5}
    fit = gr.fit(Sum(), record(Sum), ["a", "b", "scale(w)"], gr.KalmanML(), guess=guess)
    assert float(fit["a"]) == pytest.approx(float(fit["b"]), rel=1e-6)
    assert any("determined: a + b = " in n for n in fit.notes)


def test_a_dead_unknown_has_no_error_either() -> None:
    class Dead(gr.Model):
        k, idle = gr.Parameter(1.0, bounds=(0.01, 10.0)), gr.Parameter(2.0, bounds=(1.0, 3.0))
        x, z = gr.Variable(start=1.0), gr.Variable(start=0.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.1)
        y = gr.Output(x, noise=0.01)
        equations = [der(x) == -k * x + w, der(z) == idle - z]

    data = gr.Experiment(T, {}, {"y": record(Sum).outputs["y"].values})
    fit = gr.fit(Dead(), data, ["k", "idle"], gr.KalmanML())
    assert np.isinf(fit["idle"].std_error) and np.isfinite(fit["k"].std_error)
    assert any(n.startswith("dead: no output depends on idle") for n in fit.notes)


class Hysteresis(gr.Model):
    """Only beta·gamma and beta·delta are seen: z has no unit of its own."""

    beta, gamma = gr.Parameter(900.0, bounds=(1.0, 1e5)), gr.Parameter(0.9, bounds=(0.01, 10.0))
    delta = gr.Parameter(-1.0, bounds=(-5.0, 5.0))
    u = gr.Input()
    y, v, z = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    out = gr.Output(1e4 * y, noise=0.02)
    equations = [
        der(y) == v,
        2 * der(v) == u - 5e4 * y - 10 * v - z,
        der(z) == 5e4 * v - beta * (gamma * abs(v) * z + delta * v * abs(z)),
    ]


def test_products_of_three_unknowns_of_one_open_scale() -> None:
    """The errors are those of a fit in which one of the three is known."""
    t = np.arange(0, 0.6, 1 / 750)
    u = 80 * np.sin(2 * np.pi * (5 + 20 * t) * t)
    path = gr.simulate(Hysteresis(beta=1000.0, gamma=0.8, delta=-1.1), t, {"u": u})["out"].values
    data = gr.Experiment(t, {"u": u}, {"out": path + 0.02 * np.random.default_rng(0).normal(size=t.size)})
    fit = gr.fit(Hysteresis(), data, ["beta", "gamma", "delta"])
    beta = float(fit["beta"])
    held = gr.fit(Hysteresis(beta=beta), data, ["gamma", "delta"], guess={"gamma": float(fit["gamma"])})
    for name, truth in (("gamma", 800.0), ("delta", -1100.0)):
        (note,) = [n for n in fit.notes if n.startswith(f"determined: beta * {name} = ")]
        value, error = (float(x) for x in note.split(" = ")[1].split(",")[0].split(" ± "))
        assert value == pytest.approx(beta * float(held[name]), rel=1e-4)
        assert error == pytest.approx(beta * held[name].std_error, rel=0.05)
        assert abs(value - truth) < 4 * error
    assert any("flat direction: the outputs hardly see" in n and "+1 gamma" in n for n in fit.notes)
    assert str(fit).count("not determined") == 3 and "1.000" not in str(fit).split("rms")[0]
