"""The sandwich of robust filters against scores by an independent filter, and against what estimates really do."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

import grisaille as gr
from grisaille import der
from grisaille.estimation import LikelihoodProblem
from grisaille.estimators import score_sandwich


class Wandering(gr.Model):
    a = gr.Parameter(1.0, bounds=(1e-3, 50.0))
    x = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -a * x + w]


def record(seed: int, n: int = 80) -> np.ndarray:
    random, f, x = np.random.default_rng(seed), np.exp(-0.5), np.zeros(n)
    for k in range(1, n):
        x[k] = f * x[k - 1] + 0.5 * np.sqrt((1 - f**2) / 2) * random.standard_normal()
    return x + 0.1 * random.standard_normal(n) * np.where(random.random(n) < 0.1, 6.0, 1.0)


def parts(theta, y, c):
    """½ (ρ(e²/S) + log S) of every sample, by a filter of one state."""
    a, s = theta
    f, m, P, found = np.exp(-0.5 * a), 0.0, s**2 / (2 * a), []
    for value in y:
        S, e = P + 0.01, value - m
        v = e**2 / S
        found.append(0.5 * ((v if v <= c**2 else c * (2 * np.sqrt(v) - c)) + np.log(S)))
        m, P = m + P / S * e, P - P**2 / S
        m, P = f * m, f**2 * P + s**2 * (1 - f**2) / (2 * a)
    return np.array(found)


def fitted(y, **options):
    method = gr.KalmanML(initial_covariance="stationary", **options)
    return gr.fit(Wandering(), gr.Experiment(0.5 * np.arange(len(y)), {}, {"y": y}), ["a", "scale(w)"], method)


def test_scores_are_those_of_an_independent_filter():
    y = record(1)
    fit = fitted(y, robust=1.5)
    theta, h = fit.estimate.theta, 1e-5
    scores = np.stack([(parts(theta + d, y, 1.5) - parts(theta - d, y, 1.5)) / (2 * h) for d in h * np.eye(2)], axis=1)
    np.testing.assert_allclose(scores.sum(axis=0), 0, atol=1e-4)
    H = np.zeros((2, 2))
    for j, d in enumerate(1e-4 * np.eye(2)):
        for i, g in enumerate(1e-4 * np.eye(2)):
            H[i, j] = sum(q * parts(theta + p * d + r * g, y, 1.5).sum() for p, r, q in
                          ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))) / 4e-8  # fmt: skip
    product = scores[1:].T @ scores[:-1]
    B = (scores.T @ scores + 0.5 * (product + product.T)) * 80 / (79 - 2)
    expected = np.linalg.inv(H) @ B @ np.linalg.inv(H)
    np.testing.assert_allclose(fit.covariance, expected, rtol=2e-3)
    size = brentq(lambda s: 2 * quad(lambda e: min((e / s) ** 2, 1.5 * e / s) * norm.pdf(e), 0, 12)[0] - 1, 0.5, 1)
    assert "sandwich" in str(fit) and f"Levels of normal noise come out at about {size:.2g} of" in str(fit)


def test_without_outliers_it_is_the_inverse_hessian_but_for_chance():
    plain = fitted(_clean(400))
    problem = LikelihoodProblem(plain.estimate.unknowns, plain.estimate.cases)
    found = score_sandwich(problem, plain.estimate.theta, plain.estimate.covariance)
    np.testing.assert_allclose(np.sqrt(np.diag(found)), plain.std_errors, rtol=0.25)


def _clean(n: int) -> np.ndarray:
    random, f, x = np.random.default_rng(5), np.exp(-0.5), np.zeros(n)
    for k in range(1, n):
        x[k] = f * x[k - 1] + 0.5 * np.sqrt((1 - f**2) / 2) * random.standard_normal()
    return x + 0.1 * random.standard_normal(n)


def test_errors_say_what_estimates_do_under_outliers():
    """14 records with outliers: the spread of scale(w), and what sandwich and Hessian claim."""
    fits = [fitted(record(100 + k), robust=2.0) for k in range(14)]
    spread = np.std([float(f["scale(w)"]) for f in fits], ddof=1)
    claimed = np.sqrt(np.mean([f["scale(w)"].std_error ** 2 for f in fits]))
    assert 0.55 < claimed / spread < 1.8
