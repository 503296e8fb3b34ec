"""Rounded, censored and truncated laws: probabilities, derivatives, information, distribution functions and words."""

from __future__ import annotations

import numpy as np
import pytest
from laws.measuring import CASES, assert_derivatives_are_differences, filled, free
from scipy import stats

import grisaille as gr
from grisaille import laws

INNER = [name for name in CASES if not name.startswith("na")]
CONTINUOUS = [name for name in INNER if not filled(name).is_discrete]


def inside(law: laws.Law) -> dict[str, object]:
    """Return the arguments of a law as they are called in a law around it."""
    return {f"of.{path}": value for path, value in law.arguments.items() if path != "n"}


def limits_of(law: laws.Law) -> tuple[np.ndarray, np.ndarray]:
    return law.quantile(np.full(3, 0.25)), law.quantile(np.full(3, 0.8)) + law.is_discrete


@pytest.mark.parametrize("name", INNER)
def test_derivatives_are_differences(name: str) -> None:
    law = filled(name)
    below, above = limits_of(law)
    values = np.array([below[0], law.quantile(np.full(3, 0.5))[1], above[2]])
    step = 2.0 if law.is_discrete else 0.4 * law.deviation.min()
    rounded = laws.Rounded(step, CASES[name][0]).filled(inside(law))
    on_grid = np.round(values / step) * step
    assert_derivatives_are_differences(rounded, on_grid)
    for kind in (laws.Censored, laws.Truncated):
        made = kind(0.1, None, CASES[name][0]).filled({**inside(law), "below": below, "above": above})
        assert_derivatives_are_differences(made, values)
    both = laws.Censored(0.1, None, laws.Rounded(step, CASES[name][0]))
    at = both.filled({f"of.{k}": v for k, v in inside(law).items()} | {"below": on_grid - [0, 9 * step, 9 * step]})
    assert_derivatives_are_differences(at, on_grid)


@pytest.mark.parametrize("name", INNER)
def test_information_is_the_sum_over_what_can_be_recorded(name: str) -> None:
    law = filled(name)
    step = 2.0 if law.is_discrete else 0.4 * law.deviation.min()
    rounded = laws.Rounded(step, CASES[name][0]).filled(inside(law))
    below, above = (np.round(limit / step) * step for limit in limits_of(law))
    censored = laws.Censored(0.1, None, laws.Rounded(step, CASES[name][0]))
    censored = censored.filled({f"of.{k}": v for k, v in inside(law).items()} | {"below": below, "above": above + step})
    for made in (rounded, censored):
        names, (low, high) = free(made), np.array([below, above + step])
        values = (
            np.round(law.mean / step) + (np.arange(-20, 60) if law.is_discrete else np.arange(-300, 1000))[:, None]
        ) * step
        if made is censored:
            values = np.where((values > low + 1e-9) & (values < high - 1e-9), values, np.nan)
            values = np.concatenate([values, [low], [high]])
        at = made.by_arguments(np.nan_to_num(values), names)
        share = np.where(np.isnan(values), 0.0, np.exp(at.value))
        is_all = share.sum(axis=0) == pytest.approx(1.0, abs=1e-9)
        assert is_all or name == "student"
        wanted = np.einsum("qn,qni,qnj->nij", share, at.gradient, at.gradient)
        found = made.information(names)
        size = np.sqrt(np.einsum("nii->ni", wanted))
        np.testing.assert_allclose(found, wanted, atol=(2e-6 if is_all else 2e-4) * float((size**2).max()))
        if is_all:
            np.testing.assert_allclose(made.mean, (share * np.nan_to_num(values)).sum(axis=0), rtol=1e-8, atol=1e-8)


def test_a_kink_inside_a_step_counts() -> None:
    law = laws.Rounded(0.7, laws.Laplace(scale=0.5)).filled({"of.mean": np.array([0.2, -0.9, 0.1])})
    assert_derivatives_are_differences(law, np.array([0.0, -0.7, 0.7]))
    assert law.by_arguments(np.zeros(1), ("of.mean",)).hessian[0, 0, 0] < 0


def test_the_information_of_a_cut_law_is_the_mean_of_squares() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(200)
    for name in CONTINUOUS:
        law = filled(name)
        below, above = limits_of(law)
        cut = laws.Truncated(None, None, CASES[name][0]).filled({**inside(law), "below": below, "above": above})
        values = below + 0.5 * (above - below) * (1 + nodes[:, None])
        at = cut.by_arguments(values, free(cut))
        share = np.exp(at.value) * weights[:, None] * 0.5 * (above - below)
        wanted = np.einsum("qn,qni,qnj->nij", share, at.gradient, at.gradient)
        np.testing.assert_allclose(share.sum(axis=0), 1.0, rtol=1e-11)
        np.testing.assert_allclose(cut.information(free(cut)), wanted, atol=2e-6 * np.abs(wanted).max())
        np.testing.assert_allclose(cut.mean, (share * values).sum(axis=0), rtol=1e-9)


def test_far_from_the_mean_probabilities_keep_their_digits() -> None:
    ends = np.array([3.0, 30.0, 299.0, 301.0, 1e5])
    law = laws.Normal(std=1.0).filled({"mean": np.zeros(5)})
    at = law.interval_by_arguments(ends, np.full(5, np.inf), ("mean", "std"))
    np.testing.assert_allclose(at.value, stats.norm.logsf(ends), rtol=1e-14)
    hazard = np.exp(stats.norm.logpdf(ends) - stats.norm.logsf(ends))
    np.testing.assert_allclose(at.gradient[:, 0], hazard, rtol=1e-11 if ends[-1] < 100 else 1e-5)
    small = 1 / ends**2  # variance of what is beyond, less one: −1 + 1/a² − 6/a⁴ …
    np.testing.assert_allclose(at.hessian[2:, 0, 0], (-1 + small - 6 * small**2)[2:], rtol=1e-9)
    for inner in (laws.Student(df=3.5, scale=0.6), laws.LogNormal(log_std=0.3), laws.Gamma(shape=2.0)):
        wide = inner.filled({inner.location: np.ones(2)})
        other = {
            "Student": stats.t(3.5, 1.0, 0.6), "LogNormal": stats.lognorm(0.3), "Gamma": stats.gamma(2.0, scale=0.5),
        }[type(inner).__name__]  # fmt: skip
        np.testing.assert_allclose(wide.log_interval([3.0, 60.0], np.inf), other.logsf([3.0, 60.0]), rtol=1e-11)
    cut = laws.Truncated(None, None, laws.Normal(std=1.0)).filled({"of.mean": np.zeros(2), "below": np.full(2, 30.0)})
    tail = cut.quantile(np.array([0.5, 0.9]))
    np.testing.assert_allclose(cut.distribution(tail), [0.5, 0.9], rtol=1e-11)
    np.testing.assert_allclose(np.exp(stats.norm.logsf(tail) - stats.norm.logsf(30.0)), [0.5, 0.1], rtol=1e-9)


@pytest.mark.parametrize("name", ["normal", "student", "gamma", "log-normal"])
def test_narrow_steps_are_densities_and_wide_ones_are_certain(name: str) -> None:
    law = filled(name)
    offset = law.mean + 1.5 * law.deviation
    narrow = laws.Rounded(1e-6, CASES[name][0]).filled(inside(law))
    y = np.round(offset / 1e-6) * 1e-6
    at, whole = narrow.by_arguments(y, free(narrow)), law.by_arguments(y, free(law))
    np.testing.assert_allclose(at.value, whole.value + np.log(1e-6), rtol=1e-11)
    np.testing.assert_allclose(at.gradient, whole.gradient, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(at.hessian, whole.hessian, rtol=1e-8, atol=1e-8)
    information = law.information(free(law))
    np.testing.assert_allclose(narrow.information(free(narrow)), information, atol=2e-6 * information.max())
    wide = laws.Rounded(1e4, CASES[name][0]).filled(inside(law)).by_arguments(np.zeros(3), ("of." + law.location,))
    np.testing.assert_allclose(wide.value, 0.0, atol=1e-9)
    np.testing.assert_allclose(wide.gradient, 0.0, atol=1e-9)


def test_residuals_by_quantiles_are_uniform() -> None:
    count, draw = 300, np.random.default_rng(7)
    levels, place = draw.uniform(2.0, 9.0, count), draw.uniform(size=count)
    made = [
        laws.Poisson().filled({"mean": levels}),
        laws.NegativeBinomial(size=2.0).filled({"mean": levels}),
        laws.Rounded(0.7, laws.Normal(std=0.5)).filled({"of.mean": levels}),
        laws.Censored(4.0, None, laws.LogNormal(log_std=0.4)).filled({"of.median": levels}),
        laws.Censored(4.0, 8.0, laws.Rounded(2.0, laws.Poisson())).filled({"of.of.mean": levels}),
        laws.Truncated(3.0, None, laws.Poisson()).filled({"of.mean": levels}),
    ]
    for law in made:
        y = law.quantile(draw.uniform(size=count))
        assert law.refused_values(y) is None
        first, last = law.distribution_below(y), law.distribution(y)
        assert (last > first).all() or law.of.location == "median"
        assert stats.kstest(first + place * (last - first), "uniform").pvalue > 1e-3
        atoms = np.abs(last - first) > 0
        np.testing.assert_allclose(np.exp(law.log_density(y))[atoms], (last - first)[atoms], rtol=1e-7, atol=1e-12)


MISTAKES = [
    (lambda: laws.Rounded(0.0, laws.Normal(std=1.0)), "Rounded: step must be positive"),
    (lambda: laws.Rounded(0.1, 3.0), "Rounded: of must be a law such as"),
    (lambda: laws.Rounded(0.1, laws.Censored(0.0, None, laws.Normal(std=1.0))), "rounded first, then censored"),
    (lambda: laws.Rounded(0.1, laws.Rounded(0.2, laws.Normal(std=1.0))), "give the coarser step alone"),
    (lambda: laws.Censored(2.0, 1.0, laws.Normal(std=1.0)), "below = 2 must be smaller than above = 1"),
    (lambda: laws.Truncated(0.0, None, laws.Censored(0.0, None, laws.Normal(std=1.0))), "cut off first, then censored"),
]


@pytest.mark.parametrize(("make", "said"), MISTAKES)
def test_what_means_nothing_is_refused(make, said: str) -> None:
    with pytest.raises(gr.ModelError, match=said):
        make()


def test_without_limits_a_censored_law_is_the_law_inside_and_takes_those_of_samples() -> None:
    law = laws.Censored(of=laws.Normal(std=0.5))
    y = np.array([0.2, 1.0, 1.7])
    free, inner = law.filled({"of.mean": np.ones(3)}), laws.Normal(std=0.5).filled({"mean": np.ones(3)})
    np.testing.assert_array_equal(free.log_density(y), inner.log_density(y))
    np.testing.assert_allclose(free.information(["of.mean"]), inner.information(["mean"]), rtol=1e-12)
    np.testing.assert_array_equal(free.quantile(0.3), inner.quantile(0.3))
    low = law.filled({"of.mean": np.ones(3), "below": np.array([0.2, np.nan, np.nan])})
    assert low.log_density(y)[0] == pytest.approx(stats.norm.logcdf(0.2, 1, 0.5), rel=1e-12)
    np.testing.assert_array_equal(low.log_density(y)[1:], inner.log_density(y)[1:])
