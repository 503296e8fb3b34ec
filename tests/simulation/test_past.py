"""Delayed unknowns: the method of steps against its polynomials, and derivatives by dead times and all others."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import InsufficientMemoryError
from grisaille.simulation import require_points

ROWS = np.linspace(0.0, 5.0, 14)


class Decay(gr.Model):
    """x' = −k x(t − tau), x = x0 up to the start."""

    tau = gr.Parameter(1.0, bounds=(0.2, 3))
    k = gr.Parameter(1.0)
    x0 = gr.Parameter(1.0)
    x = gr.Variable(start=x0)
    equations = [gr.der(x) == -k * gr.delay(x, tau)]
    y = gr.Output(x, noise=0.01)


def polynomials(t: np.ndarray, tau: float = 1.0, k: float = 1.0) -> np.ndarray:
    """Σ_n (−k)ⁿ (t − (n − 1) tau)ⁿ/n! over the stretches that t has reached."""
    return np.array(
        [
            1 + sum((-k) ** n * max(s - (n - 1) * tau, 0.0) ** n / factorial(n) for n in range(1, int(s / tau) + 2))
            for s in t
        ]
    )


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen-explicit"])
def test_method_of_steps_is_that_of_its_polynomials(method: str) -> None:
    run = gr.simulate(Decay(), ROWS, method=method, rtol=1e-10, sensitivities=["tau", "k", "x0"])
    assert run["x"].values == pytest.approx(polynomials(ROWS), abs=1e-9)
    h = 1e-5
    by_tau = (polynomials(ROWS, 1 + h) - polynomials(ROWS, 1 - h)) / (2 * h)
    by_k = (polynomials(ROWS, 1, 1 + h) - polynomials(ROWS, 1, 1 - h)) / (2 * h)
    expected = np.stack([by_tau, by_k, polynomials(ROWS)], axis=1)
    assert run["d(x)"].values == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("tau", [0.04, 2.0, 30.0])
def test_dead_times_short_and_long(tau: float) -> None:
    """Shorter than the steps that the motion would allow, and longer than the run."""
    run = gr.simulate(Decay(), ROWS, parameters={"tau": tau}, rtol=1e-9)
    assert run["x"].values == pytest.approx(polynomials(ROWS, tau), abs=1e-7)


class Oscillator(gr.Model):
    """Two dead times, a held input, an algebraic unknown and a past of its own."""

    a = gr.Parameter(0.43, bounds=(0.1, 2))
    b = gr.Parameter(1.31, bounds=(0.1, 3))
    c = gr.Parameter(2.0)
    u = gr.Input()
    x = gr.Variable(start=1.0)
    v = gr.Variable(start=0.0)
    F = gr.Variable()
    equations = [
        gr.der(x) == v,
        gr.der(v) == -F - 0.3 * v + u,
        F + 0.1 * F**3 == c * gr.delay(x, a, before=0.5) - 0.5 * gr.delay(v * x, b),
    ]
    y = gr.Output(x, noise=0.01)


def test_two_dead_times_a_held_input_and_implicit_unknowns() -> None:
    """Derivatives are those of tightly solved runs, jumps at a and what returns of them included."""
    t = np.arange(0.0, 6.0, 0.25)
    u = {"u": np.sign(np.sin(1.3 * t + 0.1))}
    run = gr.simulate(Oscillator(), t, inputs=u, rtol=1e-9, sensitivities=["a", "b", "c"])
    h = 1e-4
    for k, (name, value) in enumerate({"a": 0.43, "b": 1.31, "c": 2.0}.items()):
        ends = [
            gr.simulate(Oscillator(), t, inputs=u, rtol=1e-11, parameters={name: value + s * h})["x"].values
            for s in (-1, 1)
        ]
        assert run["d(x)"].values[:, k] == pytest.approx((ends[1] - ends[0]) / (2 * h), abs=2e-5), name
    other = gr.simulate(Oscillator(), t, inputs=u, rtol=1e-9, method="implicit")
    assert other["F"].values == pytest.approx(run["F"].values, abs=1e-6)


def test_output_error_finds_the_dead_time_of_a_state() -> None:
    t = np.linspace(0.2, 6.0, 30)
    y = polynomials(t, 0.8, 1.2) + 0.01 * np.random.default_rng(2).normal(size=t.size)
    data = gr.Experiment(np.append(0.0, t), outputs={"y": np.append(np.nan, y)})
    fit = gr.fit(
        Decay(), data, estimate=["tau", "k"], guess={"tau": 1.6}, bounds={"tau": (0.4, 2)}, method="OutputError"
    )
    assert fit.converged
    for name, truth in {"tau": 0.8, "k": 1.2}.items():
        assert abs(fit.parameters.loc[name, "estimate"] - truth) < 3.5 * fit.parameters.loc[name, "std_error"]


class Relay(gr.Model):
    """x = 1 − k t until x(t − 1) falls below 0.1, then up again: at t = 1 + 0.9/k."""

    k = gr.Parameter(1.0)
    x = gr.Variable(start=1.0)
    equations = [gr.der(x) == -k * gr.sign(gr.delay(x, 1.0) - 0.1)]


class Bent(gr.Model):
    """A delayed unknown that bends with the state it is made of."""

    k = gr.Parameter(1.0)
    x = gr.Variable(start=1.0)
    z = gr.Variable()
    equations = [gr.der(x) == -k * gr.delay(z, 1.0), z == gr.maximum(x, 0.2)]


class Jumping(Bent):
    equations = [
        gr.der(Bent.x) == -Bent.k * gr.delay(Bent.z, 1.0),
        Bent.z == gr.where(Bent.x > 0.43, 2 * Bent.x, Bent.x),
    ]


def test_relations_of_what_is_delayed_have_instants_and_derivatives() -> None:
    t = np.array([0.0, 1.5, 1.85, 1.95, 2.5, 3.2, 3.5])
    run = gr.simulate(Relay(), t, rtol=1e-9, sensitivities=["k"])
    assert run["x"].values == pytest.approx(np.where(t < 1.9, 1 - t, t - 2.8), abs=1e-10)
    assert run["d(x)"].values[:, 0] == pytest.approx(np.where(t < 1.9, -t, t - 2.0), abs=1e-7)


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen"])
def test_switches_at_multiples_of_a_dead_time_are_in_derivatives(method: str) -> None:
    class Coincident(gr.Model):
        a = gr.Parameter(0.5)
        x, z, q = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
        equations = [
            gr.der(x) == 1.0,
            gr.der(z) == gr.where(x > a, 3.0, 1.0),
            gr.der(q) == gr.delay(z, 0.1, before=0.0),
        ]

    run = gr.simulate(Coincident(), [0.0, 0.9], sensitivities=["a"], method=method)
    assert [float(run[f"d({v})"][-1, 0]) for v in "zq"] == pytest.approx([-2.0, -0.6], abs=1e-6)


@pytest.mark.parametrize(
    ("model", "formula"), [(Bent, lambda x: max(x, 0.2)), (Jumping, lambda x: x * (1 + (x > 0.43)))]
)
def test_what_bends_or_jumps_with_states_comes_back(model: type[gr.Model], formula: Callable[[float], float]) -> None:
    """Against lines between the instants of a fine grid, on which a jump is known to half a step."""
    h, n = 2e-4, 5000
    x = np.ones(3 * n + 1)
    for i in range(3 * n):
        ends = [formula(x[max(j - n, 0)]) for j in (i, i + 1)]
        x[i + 1] = x[i] - h * 0.5 * sum(ends)
    t = np.linspace(0.0, 3.0, 31)
    for method in ("explicit", "frozen-explicit"):
        run = gr.simulate(model(), t, rtol=1e-8, method=method)
        assert run["x"].values == pytest.approx(x[:: n // 10], abs=1e-7 if model is Bent else 2 * h)


class Disturbed(gr.Model):
    tau = gr.Parameter(1.0, bounds=(0.2, 3))
    k = gr.Parameter(1.0)
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.1)
    equations = [gr.der(x) == -k * gr.delay(x, tau) + w]
    y = gr.Output(x, noise=0.01)


@pytest.mark.parametrize("method", [gr.KalmanML(), gr.Collocation()])
def test_methods_without_a_memory_say_so(method: gr.KalmanML) -> None:
    data = gr.Experiment(ROWS, outputs={"y": polynomials(ROWS)})
    with pytest.raises(gr.GrisailleError, match=r"delay\(x, tau\), the past of an unknown.*gr.OutputError"):
        gr.fit(Disturbed(), data, estimate=["k"], method=method)


class Rough(gr.Model):
    u = gr.Input()
    k = gr.Parameter(1.0)
    x = gr.Variable(start=1.0)
    z = gr.Variable()
    equations = [gr.der(x) == -k * gr.delay(z, 1.0), z == x + u]


def test_derivatives_through_unknowns_that_jump_are_refused() -> None:
    u = {"u": np.sin(ROWS)}
    assert gr.simulate(Rough(), ROWS, inputs=u)["x"].values[0] == 1.0
    for model, given in ((Rough(), {"inputs": u}), (Jumping(), {})):
        with pytest.raises(gr.EstimationError, match="may jump, and its jumps come back"):
            gr.simulate(model, ROWS, **given, sensitivities=["k"])


def test_derivatives_of_a_start_that_is_solved_from_the_past_are_refused() -> None:
    class Steady(gr.Model):
        a = gr.Parameter(1.0)
        x = gr.Variable(0.0)
        equations = [gr.der(x) == -x - 0.5 * gr.delay(x, 0.5) + a]

    times = np.linspace(0.0, 2.0, 5)
    assert gr.simulate(Steady(), times, start="steady")["x"].values == pytest.approx(2 / 3)
    with pytest.raises(gr.StructureError, match="its derivatives are not known there"):
        gr.simulate(Steady(), times, start="steady", sensitivities=["a"])


def test_the_past_of_unknowns_in_a_model_without_states() -> None:
    class Static(gr.Model):
        y, z, w = gr.Variable(), gr.Variable(), gr.Variable()
        equations = [y**3 + y == gr.time**3 + gr.time, z == gr.delay(y, 0.5), w == 1 + 0.5 * gr.delay(z + w, 0.7)]

    t = np.linspace(0.0, 4.0, 9)
    result = gr.simulate(Static(), t, rtol=1e-9)  # y = t
    assert np.allclose(result["z"], np.maximum(t - 0.5, 0.0), atol=1e-8)
    assert np.allclose(
        result["w"][t <= 1.2], 2.0, atol=1e-8
    )  # the value at the start, which the delayed z leaves at 1.2
    assert float(result["w"][3]) == pytest.approx(1 + 0.5 * (0.3 + 2.0), abs=1e-8)


def test_pieces_that_do_not_fit_into_memory_are_refused() -> None:
    with pytest.raises(InsufficientMemoryError, match=r"The past of delayed unknowns from t = 0 to 1 .* TiB of memory"):
        require_points(0.0, 1.0, 10**9, 10**5)
