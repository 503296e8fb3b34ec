"""Every particle follows its own events: the likelihood of plain particle filters in NumPy, written here."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.particles import estimates, posed

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError

STEP = 0.01


class Thermostat(gr.Model):
    """A heater with hysteresis in a room under random losses."""

    C, P = gr.Parameter(1.0, bounds=(0.1, 10)), gr.Parameter(5.0, bounds=(1, 20))
    T = gr.Variable(20.0)
    on = gr.Discrete(1)
    w = gr.Disturbance(gr.spectra.white(), scale=0.8)
    y = gr.Output(T, noise=0.3)
    equations = [
        C * der(T) == P * on - 0.2 * (T - 10.0) + w,
        gr.when(T > 21.0, on == 0).otherwise(T < 19.0, on == 1),
    ]


class Collected(gr.Model):
    """What flows by is collected and emptied by the clock."""

    k = gr.Parameter(0.7)
    x, M = gr.Variable(1.0), gr.Variable(0.0)
    bucket = gr.Discrete(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(bucket, noise=0.05)
    equations = [
        der(x) == -k * (x - 1.0) + w,
        der(M) == x,
        gr.when(gr.clock(0.5, 0.5), bucket == gr.pre(M), gr.reinit(M, 0.0)),
    ]


def thermostat_in_numpy(times, y, particles, random):
    """Euler and Maruyama, hysteresis looked at after every step, drawn again at every sample."""
    T = 20.0 + np.sqrt(0.04) * random.standard_normal(particles)
    on, total = np.ones(particles), 0.0
    for k, value in enumerate(y):
        for _ in range(round((times[k] - times[k - 1]) / STEP) if k else 0):
            T = T + STEP * (5.0 * on - 0.2 * (T - 10.0)) + 0.8 * np.sqrt(STEP) * random.standard_normal(particles)
            on = np.where(T > 21.0, 0.0, np.where(T < 19.0, 1.0, on))
        total, chosen = weighed(total, value - T, 0.3, random)
        T, on = T[chosen], on[chosen]
    return total


def collected_in_numpy(times, y, particles, random):
    """Exact transitions of (x, M) over half a second; the bucket holds what was collected up to the sample."""
    x = 1.0 + np.sqrt(0.1) * random.standard_normal(particles)
    bucket, total, fine = np.zeros(particles), 0.0, 100
    for k, value in enumerate(y):
        if k:
            bucket, h = np.zeros(particles), (times[k] - times[k - 1]) / fine
            for _ in range(fine):
                moved = x + h * -0.7 * (x - 1.0) + 0.5 * np.sqrt(h) * random.standard_normal(particles)
                bucket, x = bucket + h * (x + moved) / 2, moved
        total, chosen = weighed(total, value - bucket, 0.05, random)
        x, bucket = x[chosen], bucket[chosen]
    return total


def weighed(total, off, noise, random):
    log_weight = -0.5 * (off / noise) ** 2 - np.log(noise * np.sqrt(2 * np.pi))
    weight = np.exp(log_weight - log_weight.max())
    chosen = random.choice(len(off), len(off), p=weight / weight.sum())
    return total + log_weight.max() + np.log(weight.mean()), chosen


def agree(model, name, times, y, method, plain, runs=8):
    """Means of likelihoods by both, within four standard errors of their difference."""
    data = gr.Experiment(times, outputs={"y": y})
    random = np.random.default_rng(11)
    theirs = np.array([plain(times, y, 2000, random) for _ in range(runs)])
    mine = estimates(posed(model, data, [name], method), 40)
    level = theirs.max()
    means = [np.exp(v - level).mean() for v in (mine, theirs)]
    errors = [np.exp(v - level).std(ddof=1) / np.sqrt(len(v)) for v in (mine, theirs)]
    assert max(errors) < 0.1 * means[1]
    off, error = np.log(means[0] / means[1]), np.hypot(errors[0] / means[0], errors[1] / means[1])
    assert abs(off) < 4 * error, f"log of the ratio {off:.3f} ± {error:.3f}"


@pytest.mark.parametrize("proposal", ["guided", "bootstrap"])
def test_a_thermostat_with_hysteresis(proposal):
    """Records of 24 samples with several switchings."""
    times = np.arange(24) * 0.1
    y = np.interp(times, [0.0, 0.35, 1.1, 1.5, 2.3], [20.0, 21.1, 19.0, 20.6, 19.8]) + 0.2 * np.cos(40 * times)
    method = gr.ParticleML(particles=1000, proposal=proposal, substeps=10, initial_covariance={"T": 0.04})
    agree(Thermostat(), "C", times, y, method, thermostat_in_numpy)


@pytest.mark.parametrize("proposal", ["guided", "bootstrap"])
def test_a_bucket_that_a_clock_empties(proposal):
    times = np.arange(9) * 0.5
    y = np.array([0.0, 0.52, 0.58, 0.55, 0.4, 0.31, 0.42, 0.5, 0.61])
    method = gr.ParticleML(
        particles=1000, proposal=proposal, substeps=8, initial_covariance={"x": 0.1, "M": 0.0}
    )  # fmt: skip
    agree(Collected(), "k", times, y, method, collected_in_numpy)


class Chained(gr.Model):
    """Its second clause needs the new value of the first."""

    k = gr.Parameter(0.5)
    x = gr.Variable(0.0)
    n, m = gr.Discrete(0), gr.Discrete(0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x + m, noise=0.1)
    equations = [der(x) == -k * x + w, gr.when(x > 0.5, n == gr.pre(n) + 1), gr.when(n > 0.5, m == 1)]


class Ticking(gr.Model):
    """Its clock ticks at the start."""

    k = gr.Parameter(0.5)
    x = gr.Variable(1.0)
    n = gr.Discrete(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x + n, noise=0.1)
    equations = [der(x) == -k * x + w, gr.when(gr.clock(1.0), n == gr.pre(x))]


@pytest.mark.parametrize(
    ("model", "words"), [(Chained(), "need each other's new values"), (Ticking(), "start of the record")]
)
def test_what_particles_do_not_follow_is_refused(model, words):
    data = gr.Experiment(np.arange(6) * 0.4, outputs={"y": np.zeros(6)})
    with pytest.raises(EstimationError, match=words):
        estimates(posed(model, data, ["k"], gr.ParticleML(particles=32)), 1)
