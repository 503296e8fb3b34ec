"""Stochastic steps: closed forms, limits, measured strong orders, constraints, choice of the scheme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from compilation.systems import PENDULUM, implicit_decay, pendulum
from scipy.linalg import expm
from scipy.optimize import brentq
from zoo.brownian import BrownianPath, draw_brownian, noise_root, simulate_sde

import grisaille as gr
from grisaille import der
from grisaille.compilation import (
    StepFormula,
    WhiteNoiseInfo,
    choose_scheme,
    formulate_step,
    formulate_stochastic_step,
    step_sensitivity,
    white_step,
)
from grisaille.errors import CompilationError
from grisaille.structure import Signal, evaluate_parameters, structure_of
from grisaille.structure.stochastic import find_diffusion

W = gr.spectra.white
MARGIN = 0.15
"""Of measured strong orders: a few hundred paths leave a deviation of about 0.05."""


class Geometric(gr.Model):
    mu, sigma = gr.Parameter(0.3), gr.Parameter(0.6)
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(W(), scale=sigma)
    equations = [der(x) == mu * x + x * w]


class Arsinh(gr.Model):
    """x = sinh(y), y = y₀ + μt + aW."""

    x = gr.Variable(start=np.sinh(0.2))
    w = gr.Disturbance(W(), scale=0.7)
    equations = [der(x) == 0.4 * gr.sqrt(1 + x**2) + 0.245 * x + gr.sqrt(1 + x**2) * w]


class Cooling(gr.Model):
    """y = arsinh x obeys y' = −2 tanh y + noise: drift and noise do not commute."""

    x = gr.Variable(start=1.0)
    w = gr.Disturbance(W(interpretation="stratonovich"), scale=0.7)
    equations = [der(x) == -2 * x + gr.sqrt(1 + x**2) * w]


class Oscillator(gr.Model):
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
    w, q = gr.Disturbance(W(), scale=0.5), gr.Disturbance(W(), scale=0.8)
    equations = [der(x) == v + 0.2 * q, der(v) == -4 * x - 0.3 * v + w + q]


class LogVerhulst(gr.Model):
    """e^x grows logistically: x = Y − log(1 + ∫e^Y ds), Y = x₀ + 1.5 t + W."""

    x = gr.Variable(start=0.5)
    w = gr.Disturbance(W(), scale=1.0)
    equations = [der(x) == 1.5 - gr.exp(x) + w]


class Fading(gr.Model):
    """x = (x₀ + t + aW)/√(1 + t): additive noise that fades with time."""

    x = gr.Variable(start=1.0)
    w = gr.Disturbance(W(), scale=0.8)
    equations = [der(x) == 1 / gr.sqrt(1 + gr.time) - x / (2 * (1 + gr.time)) + w / gr.sqrt(1 + gr.time)]


class Matrices(gr.Model):
    """x ± y are geometric Brownian motions; the noises commute, but no state has a transform of its own."""

    x, y = gr.Variable(start=1.0), gr.Variable(start=0.5)
    v, w = gr.Disturbance(W(), scale=0.5), gr.Disturbance(W(), scale=0.4)
    equations = [der(x) == -x + y * v + x * w, der(y) == -y + x * v + y * w]


class Area(gr.Model):
    """y = ∫x dW₂ with x = W₁ does not commute."""

    x, y = gr.Variable(start=0.0), gr.Variable(start=0.0)
    v, w = gr.Disturbance(W()), gr.Disturbance(W())
    equations = [der(x) == v, der(y) == x * w]


class Turning(gr.Model):
    """On the unit circle under one noise: tan(φ/2) = tan(φ₀/2) e^{−V}, in the sense of Stratonovich."""

    a, b, f = gr.Variable(start=0.6), gr.Variable(start=0.8), gr.Variable()
    w = gr.Disturbance(W(interpretation="stratonovich"), scale=0.8)
    equations = [der(a) == f * a + w, der(b) == f * b, a**2 + b**2 == 1]


def prepared(model: gr.Model, scheme: str = "auto") -> tuple[StepFormula, WhiteNoiseInfo, np.ndarray, np.ndarray]:
    """Step, info, x0, and parameters with D."""
    structure = structure_of(model)
    values = evaluate_parameters(structure.model)
    step, info = white_step(structure, scheme)
    D, _ = noise_root(structure.model, info.names, values)
    x0 = np.array([structure.model.variables[n].start.value for n in structure.system.state_names])
    return step, info, x0, np.concatenate([values.values, D.ravel(order="F")])


def strong_order(
    model: gr.Model,
    scheme: str,
    exact: Callable[[BrownianPath], np.ndarray],
    levels: tuple[int, ...] = (128, 64, 32, 16),
    cells: int = 1024,
    realizations: int = 400,
) -> float:
    """Slope of the root mean square error at t = 1 over steps of ``levels`` fine cells."""
    step, info, x0, p = prepared(model, scheme)
    path = draw_brownian(np.linspace(0, 1, cells + 1), len(info.names), 5, realizations)
    wanted = exact(path)
    errors = []
    for factor in levels:
        coarse = path.coarsen(factor)
        found = simulate_sde(step, x0, coarse.grid, coarse.normals(), p)[:, -1]
        errors.append(np.sqrt(np.mean((found - wanted) ** 2)))
    return float(np.polyfit(np.log(levels), np.log(errors), 1)[0])


def geometric(path: BrownianPath) -> np.ndarray:
    return np.exp(0.3 - 0.18 + 0.6 * path.value[:, -1])


def arsinh(path: BrownianPath) -> np.ndarray:
    return np.sinh(0.2 + 0.4 + 0.7 * path.value[:, -1])


def cooling(path: BrownianPath) -> np.ndarray:
    """By the additive equation on the fine grid, whose error is of order h^{1.5} of it."""
    h, y = path.grid[1], np.full(path.dW.shape[0], np.arcsinh(1.0))
    for k in range(path.dW.shape[1]):
        dW, dZ = 0.7 * path.dW[:, k, 0], 0.7 * path.dZ[:, k, 0]
        f, slope = -2 * np.tanh(y), -2 / np.cosh(y) ** 2
        bend = -2 * slope * np.tanh(y)
        y = y + h * f + dW + slope * dZ + 0.5 * h**2 * (slope * f + 0.245 * bend)
    return np.sinh(y)[:, None]


def fading(path: BrownianPath) -> np.ndarray:
    return (1.0 + 1.0 + 0.8 * path.value[:, -1]) / np.sqrt(2.0)


def oscillator(path: BrownianPath) -> np.ndarray:
    """Exact but for terms of order h^{2.5} per cell of the fine grid."""
    A, B = np.array([[0, 1], [-4, -0.3]]), np.array([[0, 0.16], [0.5, 0.8]])
    F, x = expm(A * path.grid[1]), np.broadcast_to([1.0, 0.0], (path.dW.shape[0], 2))
    for k in range(path.dW.shape[1]):
        x = x @ F.T + path.dW[:, k] @ B.T + path.dZ[:, k] @ (A @ B).T
    return x


def log_verhulst(path: BrownianPath) -> np.ndarray:
    h, drift = path.grid[1], 1.5
    Y = 0.5 + drift * path.grid[:, None] + path.value
    cell = h + 0.5 * drift * h**2 + path.dZ + 0.25 * h**2
    return Y[:, -1] - np.log1p(np.sum(np.exp(Y[:, :-1]) * cell, axis=1))


def matrices(path: BrownianPath) -> np.ndarray:
    v, w = 0.5 * path.value[:, -1, 0], 0.4 * path.value[:, -1, 1]
    total, difference = (c * np.exp(-1 - 0.5 * 0.41 + sign * v + w) for c, sign in ((1.5, 1), (0.5, -1)))
    return 0.5 * np.stack([total + difference, total - difference], axis=1)


def turning(path: BrownianPath) -> np.ndarray:
    half = np.arctan(np.tan(0.5 * np.arctan2(0.8, 0.6)) * np.exp(-0.8 * path.value[:, -1, 0]))
    return np.stack([np.cos(2 * half), np.sin(2 * half)], axis=1)


def area(path: BrownianPath) -> np.ndarray:
    """∫W₁ dW₂ on the fine grid: what is missing there is an eighth of what the finest level misses."""
    start = path.value[:, :-1, 0]
    return np.stack([path.value[:, -1, 0], np.sum(start * path.dW[..., 1], axis=1)], axis=1)


@pytest.mark.parametrize(
    ("model", "scheme", "exact", "order"),
    [
        (Geometric, "euler-maruyama", geometric, 0.5),
        (Geometric, "rk4-maruyama", geometric, 0.5),
        (Geometric, "milstein", geometric, 1.0),
        (Arsinh, "euler-maruyama", arsinh, 0.5),
        (Arsinh, "milstein", arsinh, 1.0),
        (Matrices, "milstein", matrices, 1.0),
        (Area, "rk4-maruyama", area, 0.5),
        (Turning, "milstein", turning, 1.0),
        (Area, "strang-rk4", area, 0.5),
        (Cooling, "strang-rk4", cooling, 1.5),
        (Oscillator, "euler-maruyama", oscillator, 1.0),
        (LogVerhulst, "euler-maruyama", log_verhulst, 1.0),
        (LogVerhulst, "additive-rk4", log_verhulst, 1.5),
    ],
)
def test_strong_order(model, scheme, exact, order):
    assert strong_order(model(), scheme, exact) == pytest.approx(order, abs=MARGIN)


@pytest.mark.parametrize(("model", "exact"), [(Oscillator, oscillator), (Fading, fading)])
def test_linear_equations_with_additive_noise_gain_half_an_order(model, exact):
    assert strong_order(model(), "additive-rk4", exact) > 2.0 - MARGIN


def test_geometric_brownian_motion_is_exact_by_the_transform():
    step, info, x0, p = prepared(Geometric())
    assert info.choice.name == "lamperti" and info.choice.strong_order == 1.5
    path = draw_brownian(np.linspace(0, 1, 5), 1, 1, 50)
    found = simulate_sde(step, x0, path.grid, path.normals(), p)
    exact = np.exp(0.12 * path.grid[:, None] + 0.6 * path.value)
    np.testing.assert_allclose(found, exact, rtol=1e-13)
    negative = simulate_sde(step, -x0, path.grid, path.normals(), p)
    np.testing.assert_allclose(negative, -exact, rtol=1e-13)


@pytest.mark.parametrize("power", [0.5, 0.75])
def test_the_transform_agrees_with_milstein_and_converges_faster(power):
    class Reverting(gr.Model):
        x = gr.Variable(start=1.0)
        w = gr.Disturbance(W(), scale=0.5)
        equations = [der(x) == 2 * (1 - x) + x**power * w]

    transformed, _, x0, p = prepared(Reverting(), "lamperti")
    plain, _, _, _ = prepared(Reverting(), "milstein")
    path = draw_brownian(np.linspace(0, 1, 257), 1, 2, 200)
    fine = [simulate_sde(s, x0, path.grid, path.normals(), p)[:, -1] for s in (transformed, plain)]
    assert np.sqrt(np.mean((fine[0] - fine[1]) ** 2)) < 2e-3
    errors = []
    for factor in (64, 32, 16):
        coarse = path.coarsen(factor)
        errors.append(np.abs(simulate_sde(transformed, x0, coarse.grid, coarse.normals(), p)[:, -1] - fine[0]).mean())
    assert errors[0] < 5e-3 and np.log2(errors[0] / errors[2]) / 2 > 1.5 - MARGIN


def test_without_noise_the_drift_is_integrated_to_fourth_order():
    class Decay(gr.Model):
        x, y = gr.Variable(start=1.0), gr.Variable(start=1.0)
        w = gr.Disturbance(W(), scale=0.0)
        equations = [der(x) == -(x**3), der(y) == -y + y * w]

    step, _, x0, p = prepared(Decay(), "milstein")
    exact = np.array([1 / np.sqrt(3.0), np.exp(-1.0)])
    errors = []
    for n in (8, 16):
        found = simulate_sde(step, x0, np.linspace(0, 1, n + 1), np.ones((1, n, 1)), p)[0, -1]
        errors.append(np.abs(found - exact).max())
    assert errors[0] < 1e-5 and np.log2(errors[0] / errors[1]) > 3.8


def white_pendulum() -> Any:
    """The compiled tests' pendulum with its input read as white noise: u[0] is the force, u[1] stays a signal."""
    return replace(pendulum(), signals=(Signal("w", 0, "disturbance"), Signal("u", 0, "input")))


def test_zero_normals_give_the_frozen_runge_kutta_step():
    system = white_pendulum()
    noisy, plain = formulate_stochastic_step(system, [0]), formulate_step(system)
    assert noisy.noise.numel() == 2 and noisy.p.numel() == system.np + 1
    x, u = [3.75, -5.0, 0.5, 0.375], [np.array([0.0, v]) for v in (0.1, 0.2, 0.3)]
    arguments = [*noisy.arguments, noisy.noise]
    left = ca.Function("n", arguments, [noisy.after])(0.0, 0.02, x, *u, [*PENDULUM, 0.4], np.ones(4), [0.0, 0.0])
    right = ca.Function("p", plain.arguments, [plain.after])(0.0, 0.02, x, *u, PENDULUM, np.ones(4))
    np.testing.assert_allclose(np.array(left), np.array(right), rtol=1e-12)


def test_the_constrained_pendulum_follows_the_angle():
    """Positions on the circle, projected, against φ'' = −(g/L) sin φ + cos φ w/(mL) on the same path."""
    m, g, length = 0.3, 9.81, 2.0

    class Angle(gr.Model):
        phi, omega = gr.Variable(start=0.4), gr.Variable(start=0.0)
        w = gr.Disturbance(W(), scale=0.8)
        equations = [der(phi) == omega, der(omega) == -g / length * gr.sin(phi) + gr.cos(phi) * w / (m * length)]

    class Rod(gr.Model):
        x, y, f = gr.Variable(start=length * np.sin(0.4)), gr.Variable(start=-length * np.cos(0.4)), gr.Variable()
        w = gr.Disturbance(W(), scale=0.8)
        equations = [m * der(x, 2) == f * x + w, m * der(y, 2) == f * y - m * g, x**2 + y**2 == length**2]

    angle, _, a0, pa = prepared(Angle())
    structure = structure_of(Rod())
    rod, info = white_step(structure)
    start = {"x": length * np.sin(0.4), "y": -length * np.cos(0.4)}
    x0 = [start.get(n, 0.0) for n in structure.system.state_names]
    path = draw_brownian(np.linspace(0, 2, 129), 1, 4, 20)
    assert info.choice.name == "additive-rk4" and "does not depend on what it drives" in info.status
    gaps = []
    for factor in (4, 1):
        c = path.coarsen(factor)
        phi = simulate_sde(angle, a0, c.grid, c.normals(), pa)[..., 0]
        x = simulate_sde(rod, x0, c.grid, c.normals(), [0.8])
        px, py = (x[..., structure.system.state_names.index(n)] for n in "xy")
        gaps.append(np.sqrt(np.mean((np.arctan2(px, -py) - phi)[:, -1] ** 2)))
        assert np.abs(px**2 + py**2 - length**2).max() < 1e-9
    assert gaps[1] < 2e-4 and np.log(gaps[0] / gaps[1]) / np.log(4) > 1.5 - MARGIN


def test_coloured_and_white_disturbances_together():
    """x' = s + w with a signal s linear in time: x = ∫s + W exactly."""

    class Mixed(gr.Model):
        x = gr.Variable(start=0.0)
        s, w = gr.Disturbance(gr.spectra.lowpass(1.0)), gr.Disturbance(W(), scale=2.0)
        equations = [der(x) == s + w]

    step, info, x0, p = prepared(Mixed())
    assert info.names == ("w",) and info.white == (1,)
    path = draw_brownian(np.linspace(0, 1, 9), 1, 1, 3)
    signals = np.stack([3.0 * path.grid, np.full(9, 99.0)], axis=1)  # what stands in the white one's place is ignored
    found = simulate_sde(step, x0, path.grid, path.normals(), p, signals[None])
    np.testing.assert_allclose(found[..., 0], 1.5 * path.grid**2 + 2.0 * path.value[..., 0], atol=1e-13)


def test_splitting_keeps_what_the_noise_keeps():
    """A rotation by noise in the sense of Stratonovich: the radius is that of RK4, whose error is h³/72·E C⁶/h³."""

    class Rotation(gr.Model):
        x, y = gr.Variable(start=1.0), gr.Variable(start=0.0)
        w = gr.Disturbance(W(interpretation="stratonovich"))
        equations = [der(x) == y * w, der(y) == -x * w]

    step, info, x0, p = prepared(Rotation())
    assert info.choice.name == "strang-rk4"
    path = draw_brownian(np.linspace(0, 1, 33), 1, 1, 50)
    found = simulate_sde(step, x0, path.grid, path.normals(), p)
    assert np.abs(np.sum(found**2, axis=2) - 1).max() < 1e-3
    angle = path.value[..., 0]
    np.testing.assert_allclose(found, np.stack([np.cos(angle), -np.sin(angle)], axis=2), atol=2e-2)


@pytest.mark.parametrize("scheme", ["euler-maruyama", "milstein", "strang-rk4", "lamperti"])
def test_the_derivative_of_a_step_is_that_of_its_formula(scheme):
    step, _, x0, p = prepared(Geometric(), scheme)
    sx, dp = ca.SX.sym("sx"), ca.SX.sym("dp", step.p.numel())
    arguments = [*step.arguments, step.noise]
    slope = ca.Function("slope", [*arguments, sx, dp], [step_sensitivity(step, sx, dp)])
    value = ca.Function("value", arguments, [step.after])
    z = np.full(step.noise.numel(), 0.7)
    seeds = np.array([0.3, -0.2, 0.5])

    def at(e: float) -> float:
        return float(value(0.0, 0.1, x0 + e * 1.3, 0.0, 0.0, 0.0, p + e * seeds, 1.0, z))

    found = float(slope(0.0, 0.1, x0, 0.0, 0.0, 0.0, p, 1.0, z, 1.3, seeds))
    assert found == pytest.approx((at(1e-5) - at(-1e-5)) / 2e-5, rel=1e-8)


class TestChoice:
    @pytest.mark.parametrize(
        ("model", "name", "words"),
        [
            (Oscillator, "additive-rk4", "strong order 1.5: the noise is additive"),
            (Geometric, "lamperti", "additive in log(x), x not zero"),
            (Arsinh, "strang-rk4", "strong order 1.5: the noise depends on what it drives, and commutes"),
            (Area, "strang-rk4", "strong order 0.5: the noise does not commute"),
            (Turning, "strang-rk4", "read as Stratonovich"),
        ],
    )
    def test_auto_takes_the_highest_order(self, model, name, words):
        _, info = white_step(structure_of(model()))
        assert info.choice.name == name
        assert words in info.status

    def test_a_boundary_that_may_be_reached(self):
        class Wet(gr.Model):
            x = gr.Variable(start=0.1)
            w = gr.Disturbance(W())
            equations = [der(x) == 0.2 - x + gr.sqrt(x) * w]

        choice = choose_scheme(find_diffusion(structure_of(Wet())))
        assert choice.name == "milstein" and "not known to hold" in choice.reason

    @pytest.mark.parametrize(
        ("model", "scheme", "words"),
        [
            (Area, "milstein", "does not commute. Use scheme='auto', which takes strang-rk4 here"),
            (Geometric, "additive-rk4", "depends on states that it drives"),
            (Oscillator, "lamperti", "none is needed"),
            (Oscillator, "heun", "must be one of 'auto', 'euler-maruyama'"),
        ],
    )
    def test_schemes_that_do_not_fit(self, model, scheme, words):
        with pytest.raises(CompilationError, match=words):
            white_step(structure_of(model()), scheme)

    def test_implicit_unknowns(self):
        """They are states of the step, with corrections and sizes; without noise it is that of Runge and Kutta."""
        step = formulate_stochastic_step(implicit_decay(), [])
        after = ca.Function("after", [*step.arguments, step.noise], [step.after])
        x, z, h, p = 1.0, 0.6823278038280193, 0.1, 1.0

        def rate(x: float) -> float:
            return -brentq(lambda z: z + z**3 - x, -5, 5, xtol=1e-15)

        k1 = rate(x)
        k2 = rate(x + h / 2 * k1)
        k3 = rate(x + h / 2 * k2)
        k4 = rate(x + h * k3)
        expected = x + h / 6 * (k1 + 2 * (k2 + k3) + k4)
        found = after(0.0, h, [x, z, 0, 0], 0, 0, 0, p, np.ones(4), []).full().ravel()
        np.testing.assert_allclose(found[:2], [expected, -rate(expected)], rtol=1e-12)
        assert found[2] < 1e-5 and found[3] == pytest.approx(abs(found[1]))
