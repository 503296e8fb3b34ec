"""Profiles: exact on linear models, never off by a factor of two, honest where an interval is open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from assessment.lines import METHOD, KnownLine, Line, Saturation, X, line_experiment, line_fit
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, norm

import grisaille as gr
from grisaille.assessment import ProfilePoint, ProfileSide, deviances_of
from grisaille.bound_experiment import Unknown
from grisaille.errors import EstimationError


@pytest.mark.parametrize("level", [0.68, 0.95, 0.999])
def test_linear_model_with_unknown_noise_gives_students_interval(level: float) -> None:
    fit = line_fit()
    found = fit.profile("q", level)
    assert found.shape == "bounded"
    assert np.allclose(found.interval, fit.intervals(level).loc["q"], rtol=1e-6)


def test_linear_model_with_known_noise_gives_the_normal_interval() -> None:
    fit = line_fit(KnownLine)
    found = fit.profile("q")
    half = norm.ppf(0.975) * fit["q"].std_error
    assert np.allclose(found.interval, [fit["q"] - half, fit["q"] + half], rtol=1e-6)
    assert found.threshold == pytest.approx(chi2.ppf(0.95, 1))


def test_the_deviance_is_twice_the_fall_of_the_log_likelihood() -> None:
    """With the threshold of χ², a refit at the limit has a log-likelihood lower by exactly 3.84 / 2."""
    for model in (Line, KnownLine):
        fit = line_fit(model)
        limit = fit.profile("q", threshold="chi2").interval[1]
        refit = gr.fit(model(q=limit), line_experiment(), ["p"], METHOD)
        assert 2 * (fit.log_likelihood - refit.log_likelihood) == pytest.approx(chi2.ppf(0.95, 1), rel=1e-5)


def test_several_unknown_noise_levels_are_profiled_too() -> None:
    class Two(gr.Model):
        p = gr.Parameter(1.0)
        x = gr.Input()
        fine, coarse = gr.Output(p * x), gr.Output(p * x**2)

    random, x = np.random.default_rng(5), np.linspace(0.1, 1, 30)
    outputs = {"fine": 2 * x + 0.05 * random.standard_normal(30), "coarse": 2 * x**2 + random.standard_normal(30)}
    data = gr.Experiment(inputs={"x": x}, outputs=outputs)
    fit = gr.fit(Two(), data, ["p"], METHOD)
    limit = fit.profile("p", threshold="chi2").interval[1]
    held = gr.evaluate(Two(), data, METHOD, {"p": limit})
    assert 2 * (fit.log_likelihood - held.log_likelihood) == pytest.approx(chi2.ppf(0.95, 1), rel=1e-5)


def test_others_follow_and_the_table_tells() -> None:
    fit = line_fit()
    table = fit.profile("q", points=6).table
    best_p = [np.mean(line_experiment().measurements("y").values - q * X) for q in table["value"]]
    assert np.allclose(table["p"], best_p, atol=1e-7)
    assert table["value"].is_monotonic_increasing
    assert np.allclose(table["root"] ** 2, table["deviance"])


def test_steps_aim_at_a_fixed_change_of_the_deviance() -> None:
    found = line_fit().profile("q", points=10)
    changes = np.abs(np.diff(found.table["deviance"]))
    assert changes.max() < 1.5 * np.median(changes)
    assert 20 <= len(found.table) <= 30


def saturation_fit(largest: float, noise: float, **options):
    x = np.linspace(0.05, largest, 25)
    y = 3 * x / (2 + x) + noise * np.random.default_rng(2).standard_normal(25)
    return gr.fit(Saturation(), gr.Experiment(inputs={"x": x}, outputs={"y": y}), ["a", "b"], METHOD, **options)


def test_a_curved_profile_is_bounded_and_skewed() -> None:
    found = saturation_fit(6.0, 0.05).profile("b")
    lower, upper = found.interval
    assert found.shape == "bounded"
    assert upper - found.estimate > 1.1 * (found.estimate - lower)


def test_an_open_side_has_no_limit() -> None:
    """Far from saturation only a/b is determined: b has a lower limit and no upper one."""
    found = saturation_fit(0.4, 0.05).profile("b")
    assert found.shape == "one-sided lower"
    assert found.interval[0] is not None and found.interval[1] is None
    assert any("open above" in note for note in found.notes)
    assert "∞" in str(found)


def test_a_limit_that_comes_from_the_bound_of_another_unknown_is_told() -> None:
    found = saturation_fit(0.4, 0.05, bounds={"a": (0.0, 50.0)}).profile("b")
    assert found.shape == "bounded"
    assert any("limit above is due to the bound of a" in note for note in found.notes)


def test_a_product_is_flat_in_its_factors() -> None:
    class Product(gr.Model):
        a, b = gr.Parameter(1.0), gr.Parameter(1.0)
        x = gr.Input()
        y = gr.Output(a * b * x)

    data = gr.Experiment(inputs={"x": X}, outputs={"y": 2 * X + 0.1 * np.sin(9 * X)})
    found = gr.fit(Product(), data, ["a", "b"], METHOD, bounds={"a": (0.1, 10.0)}).profile("a", points=6)
    assert found.shape == "flat" and found.interval == (None, None)
    assert sum("the bound" in note for note in found.notes) == 2


def test_a_better_minimum_on_the_way_is_announced() -> None:
    class Wave(gr.Model):
        w = gr.Parameter(1.0, bounds=(0.2, 4.0))
        x = gr.Input()
        y = gr.Output(gr.sin(w * x), noise=1.0)

    x = np.linspace(0, 10, 60)
    data = gr.Experiment(inputs={"x": x}, outputs={"y": np.sin(1.0 * x)})
    stuck = gr.fit(Wave(), data, ["w"], METHOD, guess={"w": 2.0})
    assert stuck["w"] > 1.5
    found = stuck.profile("w", level=0.9999999, points=30)
    assert any("a better point was found" in note and "guess=" in note for note in found.notes)


def test_dynamic_models_too() -> None:
    class Decay(gr.Model):
        a = gr.Parameter(1.0, bounds=(0.01, 100.0))
        x = gr.Variable(2.0)
        y = gr.Output(x)
        equations = [gr.der(x) == -a * x]

    t = np.linspace(0, 3, 16)
    y = 2 * np.exp(-0.7 * t) + 0.05 * np.random.default_rng(1).standard_normal(16)
    found = gr.fit(Decay(), gr.Experiment(t, {}, {"y": y}), ["a", "start(x)"], METHOD).profile("a", points=3)

    def squares(a: float) -> float:
        """At the best start for a, which has a closed form."""
        e = np.exp(-a * t)
        return float(np.sum((y - e * (e @ y) / (e @ e)) ** 2))

    least = minimize_scalar(squares, bounds=(0.1, 3.0), method="bounded", options={"xatol": 1e-10}).fun
    assert found.shape == "bounded"
    assert np.allclose([16 * np.log(squares(a) / least) for a in found.interval], found.threshold, rtol=1e-4)


def test_mistakes() -> None:
    fit = line_fit()
    for call, words in (
        (lambda: fit.profile("r"), "'r' was not estimated; choose from p, q"),
        (lambda: fit.profile("q", level=95), "between 0 and 1"),
        (lambda: fit.profile("q", points=1), "at least 2"),
        (lambda: fit.profile("q", points=10**9), "at most 1000"),
    ):
        with pytest.raises(EstimationError, match=words):
            call()
    robust = gr.fit(Line(), line_experiment(), ["p", "q"], gr.OutputError(loss="huber"))
    with pytest.raises(EstimationError, match="need a likelihood"):
        robust.profile("q")


def test_open_levels_of_several_outputs_follow_the_unknowns_that_are_held() -> None:
    """Σ m_k log RSS_k itself, minimised by SciPy; and the same bits whatever was asked in between."""

    class Two(gr.Model):
        a, b = gr.Parameter(1.0, bounds=(0.1, 9.0)), gr.Parameter(1.0, bounds=(0.1, 9.0))
        x = gr.Input()
        y, z = gr.Output(a * x + b * x**2), gr.Output(a + b * x)

    x, rng = np.linspace(0.1, 2.0, 25), np.random.default_rng(3)
    y, z = 1.5 * x + 0.7 * x**2 + 0.3 * rng.standard_normal(25), 1.5 + 0.7 * x + 0.02 * rng.standard_normal(25)
    fit = gr.fit(Two(), gr.Experiment(inputs={"x": x}, outputs={"y": y, "z": z}), ["a", "b"], gr.OutputError())
    deviances, best = deviances_of(fit), fit.estimate.theta

    def total(a: float, b: float) -> float:
        return 25 * float(np.log(np.sum((y - a * x - b * x**2) ** 2)) + np.log(np.sum((z - a - b * x) ** 2)))

    for a in (best[0] + 0.05, best[0] - 0.2):
        found = deviances.minimize({0: a}, best)
        there = minimize_scalar(lambda b, a=a: total(a, b), bounds=(0.1, 3.0), options={"xatol": 1e-10})
        assert found.theta[1] == pytest.approx(there.x, rel=1e-6)
        assert found.deviance == pytest.approx(there.fun - total(*best), rel=1e-6)
        deviances.minimize({1: 0.9}, best)
        assert deviances.minimize({0: a}, best).deviance == found.deviance


class _Steep:
    """Deviances of one unknown around 1, by a formula; no value where that is NaN."""

    theta = np.array([1.0])

    def __init__(self, formula: Callable[[float], float]) -> None:
        self.formula = formula
        self.unknowns = (Unknown("k", "parameter", "k", None, 1.0),)
        self.bounds = np.array([-np.inf]), np.array([np.inf])

    def minimize(self, held: dict[int, float], start: np.ndarray) -> ProfilePoint:
        value = self.formula(held[0])
        return ProfilePoint(
            np.array([held[0]]), value if np.isfinite(value) else np.inf, "" if np.isfinite(value) else "lost."
        )


@pytest.mark.parametrize("points", [2, 12])
def test_a_criterion_that_jumps_has_its_limit_at_the_jump(points: int) -> None:
    """The deviance is that of a standard error of 0.1 up to 1.05, and by thirty more beyond."""
    walk = ProfileSide(_Steep(lambda v: ((v - 1) / 0.1) ** 2 + 30.0 * (v > 1.05)), 0, 0.1, 3.84, points, 1)
    walk.run()
    assert walk.crossing == pytest.approx(1.05, abs=0.01) and walk.jump is not None
    assert walk.jump == (walk.crossing, pytest.approx(30.0, rel=0.05))


@pytest.mark.parametrize("points", [2, 12])
def test_where_nothing_can_be_computed_the_data_are_not_blamed(points: int) -> None:
    walk = ProfileSide(_Steep(lambda v: ((v - 1) / 0.1) ** 2 if v > 0.97 else np.nan), 0, 0.1, 3.84, points, -1)
    walk.run()
    assert walk.crossing is None and walk.ended == "lost."
