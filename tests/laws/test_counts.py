"""Laws of counts beside SciPy's, and where SciPy's digits end beside sums and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import grisaille as gr
from grisaille import laws
from grisaille.laws.stirling import digamma_error, log1p_minus, stirling_error, trigamma_error

MEANS = np.array([1e-8, 0.3, 5.0, 40.0, 1e4])
COUNTS = np.array([0.0, 2.0, 9.0, 31.0, 10100.0])
OUT_OF = np.array([1.0, 10.0, 10.0, 50.0, 30000.0])
EVERY = [
    (laws.Poisson().filled({"mean": MEANS}), stats.poisson(MEANS)),
    (laws.NegativeBinomial(size=0.4).filled({"mean": MEANS}), stats.nbinom(0.4, 0.4 / (0.4 + MEANS))),
    (laws.NegativeBinomial(size=6.0).filled({"mean": MEANS}), stats.nbinom(6.0, 6.0 / (6.0 + MEANS))),
    (laws.Binomial(n=3).filled({"mean": MEANS, "n": OUT_OF}), stats.binom(OUT_OF, MEANS / OUT_OF)),
]


@pytest.mark.parametrize(("law", "other"), EVERY, ids=lambda x: type(x).__name__)
def test_a_law_of_counts_is_that_of_scipy(law: laws.Law, other) -> None:
    np.testing.assert_allclose(law.log_density(COUNTS), other.logpmf(COUNTS), rtol=2e-11, atol=1e-13)
    np.testing.assert_allclose(law.distribution(COUNTS), other.cdf(COUNTS), rtol=1e-9)
    np.testing.assert_allclose(law.distribution_below(COUNTS), other.cdf(COUNTS - 1), rtol=1e-9)
    np.testing.assert_allclose(law.deviation[1:], other.std()[1:], rtol=1e-12)
    u = np.random.default_rng(1).uniform(size=(50, 5))
    u[:3] = [[0.0], [1.0], [1e-300]]
    found = law.quantile(u)
    assert (found[3:] == other.ppf(u[3:])).all()
    assert (found[0] == 0).all() and (found[1] == law.support[1]).all() and (found[2, :4] == 0).all()
    assert (law.log_density(COUNTS + 0.5) == -np.inf).all() and (law.log_density(-1.0) == -np.inf).all()


def test_probabilities_of_large_counts_add_up_to_one() -> None:
    """SciPy's are off by 1e-8 here."""
    k = np.arange(9.97e6, 1.003e7)
    for law in (laws.Poisson(1e7), laws.NegativeBinomial(1e7, 1e12), laws.Binomial(1e7, 1e12)):
        assert np.exp(law.log_density(k)).sum() == pytest.approx(1.0, abs=1e-11)
    a, b = laws.NegativeBinomial(40.0, 1e8), laws.Poisson(40.0)
    k = np.arange(100.0)
    np.testing.assert_allclose(a.log_density(k), b.log_density(k), atol=2e-5)
    second = (k - 40.0) ** 2 / 2e8 - k / 2e8  # the next term in 1/size
    np.testing.assert_allclose(a.log_density(k) - b.log_density(k), second, atol=1e-11)
    by_size = a.by_arguments(k, ("size",)).gradient[:, 0]
    np.testing.assert_allclose(by_size, -second / 1e8, rtol=1e-4, atol=1e-20)


def test_no_counts_are_certain_where_none_are_expected() -> None:
    law = laws.Poisson().filled({"mean": np.zeros(2)})
    at = law.by_arguments(np.array([0.0, 1.0]), ("mean",))
    assert at.value.tolist() == [0.0, -np.inf] and at.gradient[:, 0].tolist() == [-1.0, 0.0]
    full = laws.Binomial(n=4).filled({"mean": np.full(2, 4.0)})
    assert full.log_density(np.array([4.0, 3.0])).tolist() == [0.0, -np.inf]


INTERVALS = [
    ([8.0, 60.0, 900.0, 3001.0], [np.inf, np.inf, np.inf, 3010.0]),
    ([0.0, 0.0, 0.0, 0.0], [2.0, 20.0, 700.0, 2800.0]),
    ([5.0, 41.0, 880.0, 0.0], [5.0, 90.0, 1900.0, 9000.0]),
]


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_sums_over_intervals_are_those_of_all_counts(low: list[float], high: list[float]) -> None:
    means = np.array([5.0, 40.0, 900.0, 3000.0])
    for law in (laws.Poisson(), laws.NegativeBinomial(size=0.8), laws.NegativeBinomial(size=50.0)):
        at = law.filled({"mean": means})
        every = np.arange(100000.0)[:, None] if law == laws.NegativeBinomial(size=0.8) else np.arange(8000.0)[:, None]
        is_in = (every >= low) & (every <= high)
        logs = np.where(is_in, at.log_density(every + np.zeros(4)), -np.inf)
        wanted = np.logaddexp.reduce(logs, axis=0)
        np.testing.assert_allclose(at.log_interval(low, high), wanted, rtol=1e-10, atol=2e-11)
        share = np.exp(logs - wanted)[..., None]
        slope = (share * at.by_arguments(every + np.zeros(4), ("mean",)).gradient).sum(axis=0)
        np.testing.assert_allclose(
            at.interval_by_arguments(low, high, ("mean",)).gradient, slope, rtol=1e-8, atol=1e-11
        )


def test_what_stirling_leaves_out_keeps_its_digits() -> None:
    z = np.array([0.01, 0.5, 3.0, 9.9999, 10.0, 40.0, 1e6, 1e12])
    series = 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5) - 1 / (1680 * z**7)
    np.testing.assert_allclose(stirling_error(z)[-3:], series[-3:], rtol=1e-14)
    assert stirling_error(0.5) == pytest.approx(0.5 * math.log(math.pi) + 0.5 - 0.5 * math.log(2 * math.pi), rel=1e-14)
    for error, again, sign in ((stirling_error, digamma_error, 1), (digamma_error, trigamma_error, 1)):
        step = 1e-3 * z
        slope = (8 * (error(z + step) - error(z - step)) - error(z + 2 * step) + error(z - 2 * step)) / (12 * step)
        np.testing.assert_allclose(again(z), sign * slope, rtol=1e-9)
    x = np.array([-0.9, -1e-3, 1e-9, 1e-3, 0.29999, 0.30001, 4.0])
    np.testing.assert_allclose(log1p_minus(x[[1, 3]]), [-5.00333583533500e-7, -4.99666916466833e-7], rtol=2e-12)
    assert log1p_minus(1e-9) == pytest.approx(-5e-19 + 1e-27 / 3, rel=1e-14)
    np.testing.assert_allclose(log1p_minus(x[[0, 4, 5, 6]]), np.log1p(x[[0, 4, 5, 6]]) - x[[0, 4, 5, 6]], rtol=2e-15)


MISTAKES = [
    (lambda: laws.Poisson(-1.0), "Poisson: mean must be positive"),
    (lambda: laws.NegativeBinomial(size=0.0), "size must be positive"),
    (lambda: laws.Binomial(n=2.5), "n must be a whole number, got 2.5"),
    (lambda: laws.Binomial(4.0, 3), "mean is the expected count out of n = 3, got 4.0"),
    (lambda: laws.Poisson().log_density(1.0), r"no mean.*gr.laws.Poisson\(mean\)"),
]


@pytest.mark.parametrize(("make", "said"), MISTAKES)
def test_what_is_no_law_of_counts_is_refused(make, said: str) -> None:
    with pytest.raises(gr.ModelError, match=said):
        make()
