"""Sizes of the errors of a fitted mean: against records that NumPy draws and fits, over null fits, and bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import grisaille as gr
from grisaille import der

H, SIGMA = 0.3, 0.3


class Wander(gr.Model):
    """Ornstein and Uhlenbeck's process about a driven mean."""

    a, b = gr.Parameter(1.0, bounds=(1e-3, 50.0)), gr.Parameter(1.0, bounds=(-10.0, 10.0))
    x, u = gr.Variable(0.0), gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=1.0)
    y = gr.Output(x, noise=SIGMA)
    equations = [der(x) == -a * (x - b * u) + w]


def driven(n: int) -> np.ndarray:
    return np.repeat(np.random.default_rng(3).choice([-1.0, 1.0], n // 6 + 1), 6)[:n]


def walks(u: np.ndarray, random: np.random.Generator, count: int) -> np.ndarray:
    """Records (count, n) of the model at its true values, exactly."""
    x, e = np.zeros((count, len(u))), np.exp(-H)
    for k in range(1, len(u)):
        x[:, k] = e * x[:, k - 1] + (1 - e) * u[k - 1] + np.sqrt((1 - e * e) / 2) * random.standard_normal(count)
    return x + SIGMA * random.standard_normal(x.shape)


def fitted(y: np.ndarray, unknowns: list[str], louder: float = 1.0, **options: object) -> gr.Fit:
    u = driven(len(y))
    method = gr.SimulatedPEM(**{"realizations": 64, "threads": 1, **options})
    data = gr.Experiment(H * np.arange(len(y)), {"u": u}, {"y": louder * y})
    return gr.fit(Wander(), data, unknowns, method)


def told(fit: gr.Fit) -> tuple[float, float]:
    (verdict,) = fit.diagnose().verdicts
    return verdict.statistic, verdict.p


@pytest.mark.parametrize("member", [0, 1, 2])
def test_one_linear_unknown_against_fits_by_numpy(member: int) -> None:
    """With b alone a fit is a projection; p from 20 000 records, ours from 400, within four standard errors."""
    n, random = 60, np.random.default_rng(7)
    u = driven(n)
    e = np.exp(-H)
    psi = np.zeros(n)
    for k in range(1, n):
        psi[k] = e * psi[k - 1] + (1 - e) * u[k - 1]
    r = walks(u, random, 20_000) - psi
    T = np.sum((r - np.outer(r @ psi, psi) / (psi @ psi)) ** 2, axis=1)
    y = walks(u, np.random.default_rng([9, member]), 1)[0]
    own = np.sum((y - psi * (psi @ y) / (psi @ psi)) ** 2)
    p = 2 * min(np.mean(own <= T), np.mean(own >= T))
    ratio, ours = told(fitted(y, ["b"], realizations=800))
    assert abs(ours - p) < 4 * 2 * np.sqrt(0.25 * p * (2 - p) / 400) + 2 / 400
    assert ratio == pytest.approx(own / np.median(T), rel=0.1)


def test_a_level_that_the_mean_hardly_tells_keeps_the_size() -> None:
    """16 null fits of 60 samples with a known to 100 %; exact binomial at 0.1 % against 5 %."""
    random = np.random.default_rng(11)
    found = [told(fitted(y, ["a", "b"], seed=k))[1] for k, y in enumerate(walks(driven(60), random, 16))]
    assert binom.sf(np.sum(np.array(found) < 0.05) - 1, len(found), 0.05) > 1e-3
    assert binom.sf(np.sum(np.array(found) < 0.5) - 1, len(found), 0.5) > 1e-3


@pytest.mark.parametrize(("louder", "larger"), [(2.0, True), (0.45, False)])
def test_levels_that_are_not_as_declared_are_seen(louder: float, larger: bool) -> None:
    """Twice, or half, of what was declared, mean included."""
    ratio, p = told(fitted(walks(driven(200), np.random.default_rng(2), 1)[0], ["b"], louder))
    assert p < 0.05
    assert (ratio > 1) == larger


def test_it_repeats_bit_by_bit() -> None:
    y = walks(driven(60), np.random.default_rng(4), 1)[0]
    one, other = (fitted(y, ["a", "b"], threads=k) for k in (1, 2))
    assert told(one) == told(other)
    assert told(one) != told(fitted(y, ["a", "b"], seed=2))


def test_several_records_have_sizes_of_their_own() -> None:
    """The loud one of two is named."""
    u, y = driven(100), walks(driven(100), np.random.default_rng(5), 2)
    psi = y[1] - 3 * (y[1] - y.mean(axis=0))
    records = [
        gr.Experiment(H * np.arange(100), {"u": u}, {"y": r}, name=n) for n, r in (("calm", y[0]), ("loud", psi))
    ]
    fit = gr.fit(Wander(), records, ["b"], gr.SimulatedPEM(realizations=64, threads=1))
    healthy = {v.experiment: v.healthy for v in fit.diagnose().verdicts}
    assert healthy == {"calm": True, "loud": False}


def test_levels_fitted_from_variances_say_nothing() -> None:
    y = walks(driven(100), np.random.default_rng(6), 1)[0]
    method = gr.SimulatedPEM(realizations=64, threads=1, match="mean-variance")
    data = gr.Experiment(H * np.arange(100), {"u": driven(100)}, {"y": y})
    (open_level,) = gr.fit(Wander(), data, ["a", "b", "scale(w)"], method).diagnose().verdicts
    assert np.isnan(open_level.p)
    assert "open or fitted levels" in open_level.sentence
    (known,) = gr.fit(Wander(), data, ["a", "b"], replace(method, seed=2)).diagnose().verdicts
    assert known.p > 1e-3


def test_residuals_are_tested_where_nothing_matters() -> None:
    class Idle(gr.Model):
        d = gr.Parameter(1.0, bounds=(0.0, 2.0))
        x = gr.Variable(0.0)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.05)
        y = gr.Output(x, noise=0.1)
        equations = [gr.der(x) == w + 0 * d]

    t = np.linspace(0.0, 1.0, 41)
    data = gr.Experiment(t, outputs={"y": 0.1 * np.random.default_rng(1).standard_normal(41)})
    assert "size" in str(gr.fit(Idle(), data, ["d"], gr.SimulatedPEM(realizations=20)).diagnose())
