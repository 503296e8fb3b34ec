"""One nonlinear state with every kind of law of its output, against the likelihood on a grid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from zoo import density_on_a_grid
from zoo.particles import Decay, estimates, exact, posed

import grisaille as gr
from grisaille import der, exp, laws

TIMES = np.arange(12) * 0.5
START = (0.6, 0.2)


def walls(p, step):
    return lambda y, x: stats.norm.cdf((y + step / 2 - x) / p) - stats.norm.cdf((y - step / 2 - x) / p)


def censored(y, x):
    return np.where(y <= 0.2, stats.norm.cdf((0.2 - x) / 0.3), stats.norm.pdf(y, x, 0.3))


def counted(y, x):
    return stats.poisson.pmf(y, 4 * np.exp(x))


def dispersed(y, x):
    return stats.nbinom.pmf(y, 3.0, 3 / (3 + 4 * np.exp(x)))


SENSORS = {
    "noise": (lambda x: gr.Output(x, noise=0.3), lambda y, x: stats.norm.pdf(y, x, 0.3)),
    "Normal": (lambda x: gr.Output(x, distribution=laws.Normal(std=0.3)), lambda y, x: stats.norm.pdf(y, x, 0.3)),
    "Poisson": (lambda x: gr.Output(4 * exp(x), distribution=laws.Poisson()), counted),
    "NegativeBinomial": (lambda x: gr.Output(4 * exp(x), distribution=laws.NegativeBinomial(size=3.0)), dispersed),
    "Rounded": (lambda x: gr.Output(x, distribution=laws.Rounded(step=0.5, of=laws.Normal(std=0.2))), walls(0.2, 0.5)),
    "Censored": (
        lambda x: gr.Output(x, distribution=laws.Censored(below=0.2, of=laws.Normal(std=0.3))),
        censored,
    ),
}


def well(sensor):
    """A particle in a double well."""

    class Well(gr.Model):
        a = gr.Parameter(1.0)
        x = gr.Variable(START[0])
        w = gr.Disturbance(gr.spectra.white(), scale=0.6)
        y = sensor(x)
        equations = [der(x) == a * x - x**3 + w]

    return Well()


def drift(x):
    return x - x**3


def test_the_grid_is_the_kalman_filter_on_a_linear_model():
    y = 0.4 * np.sin(TIMES)
    y[3] = np.nan
    data = gr.Experiment(TIMES, outputs={"y": y})
    wanted = exact(Decay(), data, ["a"], initial_covariance={"x": 0.2})
    found = density_on_a_grid.log_likelihood(
        lambda x: -0.8 * x, 1.0, (0.0, 0.2), TIMES, y, lambda y, x: stats.norm.pdf(y, x, 0.3), (-5.0, 5.0), 400
    )
    assert found == pytest.approx(wanted, abs=2e-3)


@pytest.mark.parametrize("proposal", ["guided", "bootstrap"])
@pytest.mark.parametrize("kind", SENSORS)
def test_the_likelihood_on_the_grid(kind, proposal):
    """The mean of 40 likelihoods lies within four standard errors, and these are below 0.05."""
    sensor, density = SENSORS[kind]
    model = well(sensor)
    y = gr.simulate(model, TIMES, noise=True, seed=3, realizations=1)["y"].values[0]
    y[[4, 5]] = np.nan
    wanted = density_on_a_grid.log_likelihood(drift, 0.6, (START[0], START[1]), TIMES, y, density, (-2.6, 2.6))
    method = gr.ParticleML(particles=256, proposal=proposal, initial_covariance={"x": START[1]}, substeps=8)
    found = estimates(posed(model, gr.Experiment(TIMES, outputs={"y": y}), ["a"], method), 40)
    ratio = np.exp(found - wanted)
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert error < 0.05
    assert abs(ratio.mean() - 1) < 4 * error + 0.005, f"{ratio.mean():.4f} ± {error:.4f}"
