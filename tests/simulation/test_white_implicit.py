"""White noise beside equations that stay implicit: against closed forms and NumPy integrations of explicit twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import lambertw

import grisaille as gr
from grisaille import der, spectra
from grisaille.errors import SimulationError, StructureError

DEVIATIONS = 4.0
"""Standard errors that a Monte Carlo mean may be off; the seeds are fixed."""
REDUCED = ["mean", "variance"]


def cubic(x: np.ndarray) -> np.ndarray:
    """z + z³ = x, by Cardano."""
    q = np.sqrt(x * x / 4 + 1 / 27)
    return np.asarray(np.cbrt(q + x / 2) - np.cbrt(q - x / 2))


def agree(run: object, name: str, sample: np.ndarray, count: int, at: int = -1) -> None:
    """Mean and variance of one quantity against an independent sample; moments up to the fourth from the sample."""
    mean, variance = sample.mean(), sample.var()
    fourth = np.mean((sample - mean) ** 4) / variance**2
    both = 1 / count + 1 / sample.size
    assert abs(float(run[f"{name}_mean"][at]) - mean) < DEVIATIONS * np.sqrt(variance * both)
    assert abs(float(run[f"{name}_variance"][at]) / variance - 1) < DEVIATIONS * np.sqrt((fourth - 1) * both)


class Bent(gr.Model):
    """dx = −a z dt + σ dω with z + z³ = x: a well whose stationary law is known."""

    a = gr.Parameter(1.0, bounds=(0.05, 20.0))
    x, z = gr.Variable(1.0), gr.Variable(0.5)
    w = gr.Disturbance(spectra.white(), scale=0.8)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -a * z + w, z + z**3 == x]


@pytest.mark.parametrize("interval", [0.25, 2.0, 12.0])
def test_stationary_law_whatever_the_outputs(interval: float) -> None:
    """p(x) ∝ exp(−2 V/σ²), V' = z."""
    grid = np.linspace(-6, 6, 4001)
    z = cubic(grid)
    depth = np.cumsum(z) * (grid[1] - grid[0])
    p = np.exp(-2 * (depth - depth.min()) / 0.64)
    p /= p.sum()
    count = 4000
    run = gr.simulate(Bent(), np.arange(0, 12.1, interval), realizations=count, seed=3, reduce=REDUCED)
    for name, value in (("x", grid), ("z", z)):
        variance, fourth = p @ value**2, p @ value**4
        assert abs(float(run[f"{name}_mean"][-1])) < DEVIATIONS * np.sqrt(variance / count)
        margin = DEVIATIONS * np.sqrt((fourth / variance**2 - 1) / count)
        assert abs(float(run[f"{name}_variance"][-1]) / variance - 1) < margin
    assert run.attrs["error_estimate"] <= 1


def test_every_realization_solves_the_equation() -> None:
    run = gr.simulate(Bent(), np.linspace(0, 12, 7), realizations=200, seed=1)
    assert np.abs(run.z + run.z**3 - run.x).max() < 1e-12


def test_paths_do_not_depend_on_how_they_are_made() -> None:
    given = {"realizations": 4, "seed": 2, "step": 0.25}
    one = gr.simulate(Bent(), np.linspace(0, 2, 3), threads=1, **given)
    for other in (
        gr.simulate(Bent(), np.linspace(0, 2, 3), threads=2, **given),
        gr.simulate(Bent(), np.linspace(0, 2, 3), **given),
    ):
        np.testing.assert_allclose(other.x, one.x, rtol=1e-12)


@pytest.mark.parametrize(
    ("reading", "method"),
    [("ito", "auto"), ("stratonovich", "auto"), ("stratonovich", "milstein"), ("ito", "rk4-maruyama")],
)
def test_noise_through_the_implicit_unknown(reading: str, method: str) -> None:
    """dx = −x/2 dt + z dω: the readings differ by ½ z dz/dx = ½ z/(1 + 3z²)."""

    class Factor(gr.Model):
        x, z = gr.Variable(1.0), gr.Variable(0.5)
        w = gr.Disturbance(spectra.white(interpretation=reading), scale=0.8)
        equations = [der(x) == -0.5 * x + z * w, z + z**3 == x]

    random, n, dt, s = np.random.default_rng(5), 20_000, 0.01, 0.8
    x = np.ones(n)
    for _ in range(200):
        dW, z = np.sqrt(dt) * random.standard_normal(n), cubic(x)
        bend = s**2 * z / (1 + 3 * z * z)
        drift = -0.5 * x + (0.5 * bend if reading == "stratonovich" else 0.0)
        x = x + drift * dt + s * z * dW + 0.5 * bend * (dW**2 - dt)
    run = gr.simulate(Factor(), [0.0, 1.0, 2.0], realizations=4000, seed=4, reduce=REDUCED, method=method)
    agree(run, "x", x, 4000)
    agree(run, "z", cubic(x), 4000)


class Diode(gr.Model):
    """A capacitor behind a noisy resistor, with a diode and its series resistance across a held source."""

    Is, VT, Rs = gr.Parameter(1e-6), gr.Parameter(0.05), gr.Parameter(1.0)
    v, i, u = gr.Variable(0.0), gr.Variable(0.0), gr.Input()
    w = gr.Disturbance(spectra.white(), scale=0.15)
    equations = [der(v) == -v - i + w, i == Is * (gr.exp((v + u - Rs * i) / VT) - 1)]


def current(v: np.ndarray, u: float) -> np.ndarray:
    """The diode's current by Lambert's function."""
    return np.asarray(0.05 * lambertw(2e-5 * np.exp((v + u + 1e-6) / 0.05)).real - 1e-6)


@pytest.mark.parametrize("interval", [0.1, 1.0])
def test_a_diode_under_thermal_noise_and_a_source_that_jumps(interval: float) -> None:
    """The source jumps from blocking to conducting, where Newton's method needs many steps, and back."""
    random, n, dt = np.random.default_rng(6), 2000, 0.01
    v, u = np.zeros(n), -1.0
    for k in range(300):
        u = 1.0 if 100 <= k < 200 else -1.0
        dW = 0.15 * np.sqrt(dt) * random.standard_normal(n)
        first = -v - current(v, u)
        ahead = v + dt * first + dW
        v = v + 0.5 * dt * (first - ahead - current(ahead, u)) + dW
        if k == 199:
            middle = v
    times = np.arange(0, 3.01, interval)
    source = np.where((times > 0.999) & (times < 1.999), 1.0, -1.0)
    run = gr.simulate(Diode(), times, inputs={"u": source}, hold="zoh", realizations=1500, seed=8, reduce=REDUCED)
    agree(run, "v", v, 1500)
    at = int(np.argmin(np.abs(times - 2.0)))
    agree(run, "v", middle, 1500, at)
    conducting = int(np.argmin(np.abs(times - 1.0)))
    assert float(run.i_mean[conducting]) == pytest.approx(float(np.mean(current(np.zeros(1), 1.0))), abs=0.05)


class Pendulum(gr.Model):
    """In Cartesian coordinates, with a white torque and a friction that is solved for: index three and implicit."""

    c = gr.Parameter(0.6)
    x, y, vx, vy = gr.Variable(0.6), gr.Variable(-0.8), gr.Variable(0.0), gr.Variable(0.0)
    lam, omega, s = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(spectra.white(), scale=0.5)
    equations = [
        der(x) == vx,
        der(y) == vy,
        der(vx) == -lam * x - y * (w - c * s),
        der(vy) == -lam * y + x * (w - c * s) - 9.81,
        x**2 + y**2 == 1,
        omega == x * vy - y * vx,
        s + s**3 == omega,
    ]


@pytest.mark.parametrize("interval", [0.125, 1.0])
def test_a_mechanism_on_its_constraint_against_its_angle(interval: float) -> None:
    random, n, dt = np.random.default_rng(7), 5000, 0.01
    angle, rate = np.full(n, np.arcsin(0.6)), np.zeros(n)
    for _ in range(200):
        dW = 0.5 * np.sqrt(dt) * random.standard_normal(n)
        first = -9.81 * np.sin(angle) - 0.6 * cubic(rate)
        ahead = angle + dt * rate, rate + dt * first + dW
        second = -9.81 * np.sin(ahead[0]) - 0.6 * cubic(ahead[1])
        angle, rate = angle + 0.5 * dt * (rate + ahead[1]), rate + 0.5 * dt * (first + second) + dW
    run = gr.simulate(Pendulum(), np.arange(0, 2.01, interval), realizations=2000, seed=9, reduce=REDUCED)
    agree(run, "x", np.sin(angle), 2000)
    agree(run, "omega", rate, 2000)
    agree(run, "s", cubic(rate), 2000)
    paths = gr.simulate(Pendulum(), np.arange(0, 2.01, interval), realizations=50, seed=9)
    assert np.abs(paths.x**2 + paths.y**2 - 1).max() < 1e-9
    assert np.abs(paths.x * paths.vx + paths.y * paths.vy).max() < 1e-8


def test_slopes_are_those_of_the_paths() -> None:
    """By parameters and scales, against central differences of the same paths."""
    times, given = np.linspace(0, 3, 4), {"realizations": 30, "seed": 2, "step": 0.25}
    wanted = {"a": 1.0, "scale(w)": 0.8}
    found = gr.simulate(Bent(), times, sensitivities=list(wanted), reduce=REDUCED, **given)
    for name, value in wanted.items():
        h = 1e-5
        ends = [
            gr.simulate(Bent(), times, parameters={name: value + sign * h}, reduce=REDUCED, **given) for sign in (1, -1)
        ]
        for quantity in ("x_mean", "z_mean", "x_variance", "z_variance"):
            slope = (ends[0][quantity] - ends[1][quantity]) / (2 * h)
            told = found[f"d({quantity})"].sel(parameter=name)
            np.testing.assert_allclose(told, slope, rtol=1e-5, atol=1e-8)


def test_a_fold_is_named() -> None:
    """z² = x with x pushed through zero has no solution beyond."""

    class Fold(gr.Model):
        x, z = gr.Variable(0.3), gr.Variable(0.5)
        w = gr.Disturbance(spectra.white(), scale=1.0)
        equations = [der(x) == -z + w, z**2 + 0.1 * z == x]

    with pytest.raises(SimulationError, match=r"Fold: .*z come to a fold in .* realizations"):
        gr.simulate(Fold(), [0.0, 1.0, 2.0], realizations=200)


def test_white_noise_inside_the_equation_has_no_meaning() -> None:
    class Inside(gr.Model):
        x, z = gr.Variable(1.0), gr.Variable(0.5)
        w = gr.Disturbance(spectra.white(), scale=1.0)
        equations = [der(x) == -z, z + z**3 == x + w]

    with pytest.raises(StructureError, match="White noise"):
        gr.simulate(Inside(), [0.0, 1.0], realizations=2)


def test_jumps_inside_the_equation_are_named() -> None:
    class Jumping(gr.Model):
        x, z = gr.Variable(1.0), gr.Variable(0.5)
        w = gr.Disturbance(spectra.white(), scale=1.0)
        equations = [der(x) == -z + w, z + z**3 + gr.where(z > 0.2, 1.0, 0.0) == x + 1]

    with pytest.raises(gr.GrisailleError, match=r"jumps inside.*white noise"):
        gr.simulate(Jumping(), [0.0, 1.0], realizations=2)
