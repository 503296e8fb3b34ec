"""Disturbances that output error holds at zero: where they move the mean the table says so."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 6.0, 19)
WAVES = gr.spectra.lowpass(bandwidth=2.0)
"""Of variance scale² b/2: one."""


class _Basin(gr.Model):
    a, x = gr.Parameter(0.8, bounds=(0.1, 5.0)), gr.Variable(1.0)
    w = gr.Disturbance(WAVES, scale=1.0)
    y = gr.Output(x, noise=0.02)


class Squared(_Basin):
    equations = [der(_Basin.x) == 1 - _Basin.a * _Basin.x + _Basin.w**2]


class Rectified(_Basin):
    equations = [der(_Basin.x) == 1 - _Basin.a * _Basin.x + abs(_Basin.w)]


class ByAlgebra(_Basin):
    z = gr.Variable(0.1)
    equations = [der(_Basin.x) == 1 - _Basin.a * _Basin.x + z * _Basin.w, z == 0.5 * _Basin.w]


class Implicit(_Basin):
    """The square of what an equation gives that is solved by iteration: a gain of z at w = 0, none of x."""

    z = gr.Variable(0.1)
    equations = [der(_Basin.x) == 1 - _Basin.a * _Basin.x + z**2, z + 0.1 * z**3 == _Basin.w]


def experiment(values: np.ndarray) -> gr.Experiment:
    return gr.Experiment(TIMES, {}, {"y": values}, name="run")


def mean_path(a: float, gain: float) -> np.ndarray:
    """x' = 1 + gain − a x from one."""
    level = (1 + gain) / a
    return np.asarray(level + (1 - level) * np.exp(-a * TIMES))


MODELS = [Squared(), Rectified(), ByAlgebra(), Implicit()]
CASES = [(m, "single") for m in MODELS] + [(Squared(), "multiple"), (Rectified(), "multiple")]


@pytest.mark.parametrize(("model", "shooting"), CASES, ids=lambda v: v if isinstance(v, str) else type(v).__name__)
def test_without_gain_at_zero_the_table_itself_says_so(model: gr.Model, shooting: str) -> None:
    method = gr.OutputError(shooting=shooting, pieces=2)
    fit = gr.fit(model, experiment(mean_path(1.2, 1.0)), ["a"], method)
    assert fit.notes[0].startswith("shifted mean: w enters nonlinearly") and "gr.SimulatedPEM()" in fit.notes[0]
    assert "std. error*" in str(fit) and "approximate error" in str(fit["a"])


def test_what_a_square_does_is_told_in_numbers() -> None:
    """The estimate is off by what is told: E w² = 0.01."""
    small = Squared(w=gr.Disturbance(WAVES, scale=0.1))
    fit = gr.fit(small, experiment(mean_path(1.2, 0.01)), ["a"], gr.OutputError())
    (note,) = told(fit)
    assert float(re.search(r"by about (\S+),", note).group(1)) == pytest.approx(float(fit["a"]) - 1.2, rel=0.1)


class Exponential(_Basin):
    k = gr.Parameter(1.0)
    equations = [der(_Basin.x) == 1 - _Basin.a * _Basin.x + (gr.exp(k * _Basin.w) - 1)]


def told(fit: gr.Fit) -> list[str]:
    return [n for n in fit.notes if n.startswith("shifted mean")]


def test_the_shift_of_the_mean_is_told_with_what_it_does() -> None:
    """Data are the mean itself: the estimate is off by what the note says, to the order of its theory."""
    gain = np.exp(0.5 * 0.3**2) - 1
    data = experiment(mean_path(1.2, gain))
    fit = gr.fit(Exponential(k=0.3), data, ["a"], gr.OutputError())
    (note,) = told(fit)
    shift, moved = (float(v) for v in re.search(r"y moves by (\S+) .* a with it by about (\S+),", note).groups())
    assert shift == pytest.approx(
        np.abs(mean_path(float(fit["a"]), gain) - mean_path(float(fit["a"]), 0.0)).max(), rel=0.1
    )
    assert moved == pytest.approx(float(fit["a"]) - 1.2, rel=0.1)
    assert "w enters nonlinearly" in note and "gr.SimulatedPEM()" in note


def test_a_shift_below_the_errors_is_not_told() -> None:
    data = experiment(mean_path(1.2, 0.0))
    assert not told(gr.fit(Exponential(k=1e-3), data, ["a"], gr.OutputError()))


class Beside(_Basin):
    """A rate that wanders: the mean of a slow one is an average over constants."""

    slow = gr.Disturbance(gr.spectra.lowpass(bandwidth=1e-3), scale=0.1 * np.sqrt(2 / 1e-3))
    equations = [der(_Basin.x) == 1 + 1e-9 * _Basin.w - (_Basin.a + slow) * _Basin.x]


def test_a_disturbance_beside_a_state_moves_the_mean_as_constants_do() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    mean = sum(q * mean_path(1.2 + 0.1 * n, 0.0) for n, q in zip(nodes, weights / weights.sum(), strict=True))
    fit = gr.fit(Beside(), experiment(mean), ["a"], gr.OutputError())
    (note,) = told(fit)
    moved = float(re.search(r"a with it by about (\S+),", note).group(1))
    assert moved == pytest.approx(float(fit["a"]) - 1.2, rel=0.15) and "slow multiplies what moves" in note


class Ordinary(_Basin):
    """Nonlinear, with a disturbance that adds: no more is said than that it is held."""

    equations = [der(_Basin.x) == 1 - _Basin.a * _Basin.x**2 + 0.1 * _Basin.w]


def test_ordinary_nonlinear_models_are_fitted_as_before() -> None:
    path = solve_ivp(lambda t, x: 1 - 1.2 * x**2, (0, 6), [1.0], t_eval=TIMES, rtol=1e-10, atol=1e-12).y[0]
    noisy = path + 0.02 * np.random.default_rng(1).normal(size=len(TIMES))
    fit = gr.fit(Ordinary(), experiment(noisy), ["a"], gr.OutputError())

    def residuals(a: np.ndarray) -> np.ndarray:
        run = solve_ivp(lambda t, x: 1 - a[0] * x**2, (0, 6), [1.0], t_eval=TIMES, rtol=1e-10, atol=1e-12)
        return np.asarray(noisy - run.y[0])

    assert float(fit["a"]) == pytest.approx(least_squares(residuals, [0.8], xtol=1e-12).x[0], rel=1e-5)
    assert not told(fit) and any("holds the disturbances w at zero" in n for n in fit.notes)
