"""Randomised quantile residuals: their law, their tails, and what unknowns take from them, against SciPy and sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from grisaille import laws
from grisaille.estimation import quantile_residuals
from grisaille.estimation.measurements import scores_along
from grisaille.laws.random import uniforms

N = 3000
MEANS = np.linspace(0.2, 6.0, N)
RANDOM = np.random.default_rng(5)
DRAWN: list[tuple[str, Any, np.ndarray]] = [
    ("few counts", laws.Poisson().filled({"mean": MEANS}), RANDOM.poisson(MEANS)),
    (
        "counts that scatter more",
        laws.NegativeBinomial(size=2.0).filled({"mean": MEANS}),
        RANDOM.negative_binomial(2.0, 2.0 / (2.0 + MEANS)),
    ),
    ("heavy tails", laws.Student(df=3.0, scale=0.5).filled({"mean": MEANS}), MEANS + 0.5 * RANDOM.standard_t(3.0, N)),
    (
        "limits of detection",
        laws.Censored(below=1.0, above=5.0, of=laws.Normal(std=0.8)).filled({"of.mean": MEANS}),
        np.clip(MEANS + 0.8 * RANDOM.standard_normal(N), 1.0, 5.0),
    ),
    (
        "an encoder",
        laws.Rounded(step=1.0, of=laws.Normal(std=0.3)).filled({"of.mean": MEANS}),
        np.round(MEANS + 0.3 * RANDOM.standard_normal(N)),
    ),
]


@pytest.mark.parametrize(("law", "values"), [case[1:] for case in DRAWN], ids=[case[0] for case in DRAWN])
def test_of_true_laws_they_are_standard_normal_and_independent(law: Any, values: np.ndarray) -> None:
    r = quantile_residuals(law, values.astype(float), "y", "A")
    assert stats.kstest(r, "norm").pvalue > 0.001
    assert abs(np.mean(r[1:] * r[:-1])) < 3.3 / np.sqrt(N)
    assert abs(np.corrcoef(r, MEANS)[0, 1]) < 3.3 / np.sqrt(N)


def test_they_are_a_function_of_seed_output_experiment_and_sample() -> None:
    law, y = DRAWN[0][1], DRAWN[0][2].astype(float)
    r = quantile_residuals(law, y, "y", "A")
    u = uniforms(N, 0, "residuals of y in A")
    expected = stats.norm.ppf(stats.poisson.cdf(y - 1, MEANS) + u * stats.poisson.pmf(y, MEANS))
    assert np.allclose(r, expected, rtol=1e-9)
    assert np.array_equal(r, quantile_residuals(law, y, "y", "A"))
    others = [quantile_residuals(law, y, *names) for names in (("z", "A"), ("y", "B"), ("y", "A", 1))]
    assert all(abs(np.corrcoef(r, other)[0, 1]) < 0.999 for other in others)


def test_of_normal_laws_they_are_errors_over_noise() -> None:
    law = laws.Normal(std=0.5).filled({"mean": MEANS, "std": np.full(N, 0.5)})
    assert np.array_equal(quantile_residuals(law, MEANS + 40.0, "y", "A"), (MEANS + 40.0 - MEANS) / 0.5)


def test_far_tails_go_on_where_distribution_functions_end() -> None:
    mean, y = np.full(3, 3.0), np.array([40.0, 60.0, 200.0])
    r = quantile_residuals(laws.Poisson().filled({"mean": mean}), y, "y", "A")
    exact = -stats.norm.ppf(np.exp(stats.poisson.logsf(y[:2] - 1, 3.0)))
    assert np.allclose(r[:2], exact, rtol=0.02) and (np.diff(r) > 1).all() and np.isfinite(r).all()
    heavy = laws.Laplace(scale=1.0).filled({"mean": np.zeros(2)})
    low, high = quantile_residuals(heavy, np.array([-60.0, 60.0]), "y", "A")
    assert low == pytest.approx(-high, rel=0.02)


def test_what_scores_share_with_residuals_of_counts_is_a_sum() -> None:
    mean = np.array([0.3, 2.0, 400.0])
    found = scores_along(laws.Poisson().filled({"mean": mean}), ["mean"])[:, 0]
    for mu, value in zip(mean, found, strict=True):
        k = np.arange(0, 2000)
        edges = stats.norm.pdf(stats.norm.ppf(np.clip(stats.poisson.cdf(np.arange(-1, 2000), mu), 0, 1)))
        exact = np.sum((k / mu - 1) * -np.diff(edges))
        assert value == pytest.approx(exact, rel=0.01)


def test_what_scores_share_with_residuals_of_continuous_laws_is_an_integral() -> None:
    law: Any = laws.Student(df=3.0, scale=0.5).filled({"mean": np.zeros(1)})
    found = scores_along(law, ["mean", "scale"])[0]

    def shared(z: float) -> float:
        y = 0.5 * stats.t.ppf(stats.norm.cdf(z), 3.0)
        return float(z * stats.norm.pdf(z) * 4.0 * y / (0.25 * 3.0 + y**2))

    assert found[0] == pytest.approx(integrate.quad(shared, -8, 8)[0], rel=0.01)
    assert found[1] == pytest.approx(0.0, abs=1e-9)


def test_what_scores_share_with_censored_residuals() -> None:
    """E[r s] by draws of the law itself, with an atom at the limit."""
    law: Any = laws.Censored(below=0.0, of=laws.Normal(std=1.0)).filled({"of.mean": np.full(400_000, 0.4)})
    y = np.maximum(0.4 + np.random.default_rng(1).standard_normal(400_000), 0.0)
    r, s = quantile_residuals(law, y, "y", "A"), law.by_arguments(y, ["of.mean"]).gradient[:, 0]
    one: Any = laws.Censored(below=0.0, of=laws.Normal(std=1.0)).filled({"of.mean": np.full(1, 0.4)})
    error = 4 * np.std(r * s) / np.sqrt(len(r))
    assert scores_along(one, ["of.mean"])[0, 0] == pytest.approx(np.mean(r * s), abs=error)
