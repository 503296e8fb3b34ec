"""Every law beside SciPy's: density, distribution, quantile, draws; derivatives beside differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import grisaille as gr
from grisaille import laws

EVERY = [
    (laws.Normal(1.2, 0.4), stats.norm(1.2, 0.4)),
    (laws.LogNormal(2.0, 0.3), stats.lognorm(0.3, scale=2.0)),
    (laws.Student(-1.0, 3.5, 0.7), stats.t(3.5, -1.0, 0.7)),
    (laws.Laplace(0.5, 0.2), stats.laplace(0.5, 0.2)),
    (laws.Gamma(3.0, 0.6), stats.gamma(0.6, scale=5.0)),
    (laws.Gamma(3.0, 7.5), stats.gamma(7.5, scale=0.4)),
    (laws.Beta(0.3, 8.0), stats.beta(2.4, 5.6)),
    (laws.HalfNormal(0.7), stats.halfnorm(scale=0.7)),
    (laws.HalfCauchy(0.7), stats.halfcauchy(scale=0.7)),
    (laws.Uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0)),
    (laws.Truncated(0.5, None, laws.Normal(0.0, 1.0)), stats.truncnorm(0.5, np.inf)),
    (laws.Truncated(-0.3, 0.8, laws.Normal(0.2, 0.5)), stats.truncnorm(-1.0, 1.2, 0.2, 0.5)),
]
WITH_MODES = [law for law, _ in EVERY if not law.is_flat and law != laws.Gamma(3.0, 0.6)]


@pytest.mark.parametrize(("law", "other"), EVERY, ids=lambda x: repr(x)[:30])
def test_a_law_is_that_of_scipy(law: laws.Law, other: stats.rv_continuous) -> None:
    p = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
    x = other.ppf(p)
    assert np.allclose(law.quantile(p), x, rtol=1e-9, atol=1e-12)
    assert np.allclose(law.distribution(x), p, rtol=1e-9)
    assert np.allclose(law.log_density(x), other.logpdf(x), rtol=1e-11, atol=1e-11)
    low, high = law.support
    outside = [v for v in (low - 0.1, high + 0.1) if np.isfinite(v)]
    assert (law.log_density(outside) == -np.inf).all()
    assert (low, high) == pytest.approx(other.support())


@pytest.mark.parametrize(("law", "other"), EVERY, ids=lambda x: repr(x)[:30])
def test_draws_follow_the_law_and_are_functions_of_their_index(law: laws.Law, other: stats.rv_continuous) -> None:
    drawn = law.draw(2000, seed=3, name="k")
    assert stats.kstest(drawn, other.cdf).pvalue > 0.01
    assert (law.draw(10, seed=3, name="k", first=40) == drawn[40:50]).all()
    assert not np.isin(law.draw(10, seed=3, name="other"), drawn).any()


@pytest.mark.parametrize("law", [law for law, _ in EVERY], ids=lambda x: repr(x)[:30])
def test_derivatives_are_those_of_the_log_density(law: laws.Law) -> None:
    x = law.quantile(np.array([0.07, 0.4, 0.85]))
    inner = law.of if isinstance(law, laws.Truncated) else law
    at, values = law.derivatives(x), dict(inner.parameters)
    assert at.names == ("value", *values)
    assert np.allclose(at.value, law.log_density(x), rtol=1e-12, atol=1e-12)
    again = law.derivatives(x)
    assert (again.hessian == at.hessian).all()
    for k, name in enumerate(at.names):
        slope, bend = _differences(law, inner, x, name)
        assert np.allclose(at.gradient[:, k], slope, rtol=1e-7, atol=1e-7)
        assert np.allclose(at.hessian[:, k], bend, rtol=1e-6, atol=1e-6)


def _differences(law: laws.Law, inner: laws.Law, x: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Of log-densities and of their gradients, extrapolated from two steps."""

    def at(h: float) -> tuple[np.ndarray, np.ndarray]:
        if name == "value":
            return law.log_density(x + h), law.derivatives(x + h).gradient
        moved = type(inner)(**{**inner.parameters, name: inner.parameters[name] + h})
        other = laws.Truncated(law.below, law.above, moved) if isinstance(law, laws.Truncated) else moved
        return other.log_density(x), other.derivatives(x).gradient

    def central(h: float) -> tuple[np.ndarray, ...]:
        return tuple((a - b) / (2 * h) for a, b in zip(at(h), at(-h), strict=True))

    (s1, g1), (s2, g2) = central(2e-4), central(1e-4)
    return (4 * s2 - s1) / 3, (4 * g2 - g1) / 3


@pytest.mark.parametrize("law", WITH_MODES, ids=lambda x: repr(x)[:30])
def test_a_mode_is_where_the_density_is_largest_in_the_measure(law: laws.Law) -> None:
    x = law.quantile(np.linspace(1e-4, 1 - 1e-4, 20001))
    ell = law.log_density(x) + (np.log(x) if law.measure == "log" else 0.0)
    at = float(law.log_density(law.mode)) + (np.log(law.mode) if law.measure == "log" else 0.0)
    assert at >= ell.max() - 1e-12
    assert abs(law.mode - x[np.argmax(ell)]) < 0.01 * (x[-1] - x[0])


def test_a_law_of_its_own_needs_a_formula_only() -> None:
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Sigmoid(laws.Law):
        mean: float
        scale: float

        def formula(self, value):
            z = (value - self.mean) / self.scale
            return -z - 2 * np.log1p(np.exp(-z)) - np.log(self.scale)

    law, other = Sigmoid(1.0, 0.3), stats.logistic(1.0, 0.3)
    p = np.array([0.001, 0.2, 0.5, 0.99])
    assert np.allclose(law.quantile(p), other.ppf(p), rtol=1e-8)
    assert np.allclose(law.distribution(other.ppf(p)), p, rtol=1e-8)
    assert law.mode == pytest.approx(1.0, abs=1e-6)
    z = (1.4 - 1.0) / 0.3
    assert law.derivatives(1.4).gradient[0] == pytest.approx(-np.tanh(z / 2) / 0.3, rel=1e-12)
    laws.Law.known.pop("Sigmoid")


def test_locations_may_be_left_open_and_filled_in_by_arrays() -> None:
    law = laws.LogNormal(log_std=0.2)
    assert law.is_open and law.at(3.0) == laws.LogNormal(3.0, 0.2)
    with pytest.raises(gr.ModelError, match=r"no median.*gr.LogNormal\(median, log_std\)"):
        law.log_density(1.0)
    y, level = np.array([1.0, 2.0]), np.array([1.5, 1.8])
    at = law.derivatives(y, median=level)
    assert np.allclose(at.value, stats.lognorm(0.2, scale=level).logpdf(y), rtol=1e-12)
    assert at.gradient[:, 1] == pytest.approx(np.log(y / level) / 0.04 / level)
    spread = laws.Normal(std=1.0).derivatives(y, mean=0.0, std=level)
    assert spread.gradient[:, 2] == pytest.approx(y**2 / level**3 - 1 / level)


MISTAKES = [
    (lambda: laws.Gamma(-1.0, 2.0), "Gamma: mean must be positive"),
    (lambda: laws.Beta(1.2, 3.0), "Beta: mean must be below 1"),
    (lambda: laws.HalfCauchy(0.0), "HalfCauchy: scale must be positive"),
    (lambda: laws.Student(0.0, 3.0, "a"), "Student: scale must be a finite number"),
    (lambda: laws.Truncated(1.0, 0.0, laws.Normal(0.0, 1.0)), "nothing is left"),
    (lambda: laws.Truncated(50.0, None, laws.Normal(0.0, 1.0)), "no probability between 50 and inf"),
    (lambda: laws.Truncated(0.0, None, 3.0), "of must be a law"),
    (lambda: laws.Normal(1.0, 0.1).derivatives(0.0, sd=2.0), "no parameter 'sd'"),
]


@pytest.mark.parametrize(("make", "said"), MISTAKES)
def test_what_is_no_law_is_refused(make, said: str) -> None:
    with pytest.raises(gr.ModelError, match=said):
        make()


def test_the_joint_law_is_that_of_scipy() -> None:
    cov = [[1.0, 0.3], [0.3, 0.5]]
    law, other = laws.MultivariateNormal(["a", "b"], [1.0, 2.0], cov), stats.multivariate_normal([1.0, 2.0], cov)
    x = np.array([[0.0, 1.0], [2.0, 2.5]])
    assert np.allclose(law.log_density(x), other.logpdf(x), rtol=1e-12)
