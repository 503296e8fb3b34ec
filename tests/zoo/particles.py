"""Models on which particle filters are compared with exact likelihoods, and many estimates of one of these."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem

TIMES = np.concatenate([[0.0], np.cumsum(np.tile([0.3, 0.5, 0.2], 4))])


def measured(scale: float, seed: int, gaps: tuple[int, ...] = (4, 5, 9)) -> np.ndarray:
    """Return a slow wave with noise and gaps."""
    y = scale * np.sin(1.3 * TIMES) + 0.3 * scale * np.random.default_rng(seed).standard_normal(len(TIMES))
    y[list(gaps)] = np.nan
    return y


class Decay(gr.Model):
    """An Ornstein–Uhlenbeck process."""

    a = gr.Parameter(0.8)
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=1.0)
    y = gr.Output(x, noise=0.3)
    equations = [der(x) == -a * x + w]


class Network(gr.Model):
    """Two stores whose flow is an algebraic unknown, under coloured noise: index 1."""

    a = gr.Parameter(0.9)
    x, v, z = gr.Variable(0.5), gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.7)
    y, flow = gr.Output(x, noise=0.2), gr.Output(z, noise=0.3)
    equations = [der(x) == -z + w, der(v) == z - 0.5 * v, z + 0.5 * v == a * x]


class Lever(gr.Model):
    """Two masses on a rigid lever: index 3."""

    c = gr.Parameter(0.6)
    x, v = gr.Variable(0.4), gr.Variable(0.0)
    r, s, force = gr.Variable(0.2), gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.8)
    y = gr.Output(x, noise=0.2)
    equations = [
        der(x) == v, der(v) == -2.0 * x - c * v + force + w, der(r) == s, der(s) == -2 * force - c * s, x == 2 * r,
    ]  # fmt: skip


def posed(model, data, names, method, **guess):
    """Return a problem of one experiment at the model's own values, or those of ``guess``."""
    return build_problem(model, data, list(names), method, guess=guess)


def exact(model, data, names, **options):
    """Return log L by the Kalman filter."""
    problem = posed(model, data, names, gr.KalmanML(**options))
    return float(problem.evaluate(problem.guess).log_likelihood)


def estimates(problem, count: int) -> np.ndarray:
    """Return log L̂ with the random numbers of several seeds."""
    return problem.discretised_problem.repeated(problem.guess, count).values
