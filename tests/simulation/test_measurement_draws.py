"""Simulated measurements by laws: their distribution, the numbers that they are functions of, and what refuses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import grisaille as gr
from grisaille.errors import DataError, ModelError

ROWS = 400


class Sources(gr.Model):
    """The same rate measured by several laws."""

    rate, size, spread = gr.Input(), gr.Parameter(3.0), gr.Parameter(0.3)
    limit = gr.Input(default=0.0)
    mean = gr.Variable()
    normal = gr.Output(mean, noise=0.5 * mean)
    counts = gr.Output(mean, distribution=gr.laws.Poisson())
    bunches = gr.Output(mean, distribution=gr.laws.NegativeBinomial(size=size))
    assay = gr.Output(mean, distribution=gr.LogNormal(log_std=spread))
    steps = gr.Output(mean, distribution=gr.laws.Rounded(step=0.25, of=gr.Normal(std=0.5 * mean)))
    seen = gr.Output(mean, distribution=gr.laws.Censored(below=limit, of=gr.Normal(std=0.5 * mean)))
    equations = [mean == 2 * rate]


def simulated(rate: Any, **options: Any) -> Any:
    inputs = {"rate": rate, **options.pop("more", {})}
    return gr.simulate(Sources(), np.arange(float(len(rate))), inputs, noise=True, **options)


def test_draws_have_the_laws_they_are_drawn_by() -> None:
    rate = np.linspace(1.0, 6.0, ROWS)
    drawn, mean = simulated(rate, seed=3), 2 * rate
    laws = {
        "counts": stats.poisson(mean), "bunches": stats.nbinom(3, 3 / (3 + mean)),
        "assay": stats.lognorm(0.3, scale=mean),
    }  # fmt: skip
    random = np.random.default_rng(0).random(ROWS)
    for name, law in laws.items():
        y = drawn[name].values
        below = law.cdf(y - 1) if name in ("counts", "bunches") else law.cdf(y)
        residuals = below + random * (law.cdf(y) - below)
        assert stats.kstest(residuals, "uniform").pvalue > 1e-3, name


def test_draws_are_functions_of_seed_output_and_instant() -> None:
    rate = np.linspace(1.0, 6.0, 40)
    drawn = simulated(rate, seed=3)
    for name in ("counts", "assay"):
        np.testing.assert_array_equal(drawn[name], simulated(rate, seed=3)[name])
        np.testing.assert_array_equal(drawn[name][:10], simulated(rate[:10], seed=3)[name])
        assert not np.array_equal(drawn[name], simulated(rate, seed=4)[name])


def test_what_is_rounded_or_censored_is_normal_noise_rounded_or_censored() -> None:
    class Pair(gr.Model):
        x = gr.Input()
        a = gr.Output(x, noise=0.4)

    class Rounded(gr.Model):
        x = gr.Input()
        a = gr.Output(x, distribution=gr.laws.Rounded(step=0.25, of=gr.Normal(std=0.4)))

    class Seen(gr.Model):
        x, limit = gr.Input(), gr.Input()
        a = gr.Output(x, distribution=gr.laws.Censored(below=limit, of=gr.Normal(std=0.4)))

    t, x, limit = np.arange(50.0), np.linspace(0, 3, 50), np.where(np.arange(50) < 25, 0.7, 0.2)
    plain = gr.simulate(Pair(), t, {"x": x}, noise=True, seed=2)["a"].values
    stepped = gr.simulate(Rounded(), t, {"x": x}, noise=True, seed=2)["a"].values
    seen = gr.simulate(Seen(), t, {"x": x, "limit": limit}, noise=True, seed=2)["a"].values
    np.testing.assert_allclose(stepped, 0.25 * np.round(plain / 0.25), atol=1e-12)
    np.testing.assert_allclose(seen, np.maximum(plain, limit), rtol=1e-9)
    assert (plain < limit).any()


def test_realizations_have_their_own_draws_and_antithetic_ones_mirror_them() -> None:
    class Decay(gr.Model):
        x = gr.Variable(start=3.0)
        y = gr.Output(x, distribution=gr.laws.Laplace(scale=0.2))
        equations = [gr.der(x) == -x]

    t = np.linspace(0, 2, 21)
    drawn = gr.simulate(Decay(), t, realizations=4, antithetic=True, noise=True, seed=1)["y"].values
    np.testing.assert_allclose(drawn[0] + drawn[1], 6 * np.exp(-t), rtol=1e-5)
    assert not np.array_equal(drawn[0], drawn[2])


def test_a_prediction_without_a_law_is_refused_by_output_time_and_value() -> None:
    rate = np.array([1.0, 0.5, -0.25, -1.0])
    with pytest.raises(DataError, match=r"'counts' cannot be drawn: at t = 2 its mean is -0\.5, .*Poisson \(2 such"):
        simulated(rate)
    with pytest.raises(DataError, match=r"at t = 0 its mean is 2 \(size = -1\), with which there is no law Negative"):
        simulated(rate[:2], parameters={"size": -1.0})


def test_covariances_are_those_of_normal_noise() -> None:
    class Tied(gr.Model):
        x = gr.Input()
        a, b = gr.Output(x, noise=0.1), gr.Output(x, distribution=gr.laws.Laplace(scale=0.1))

        def noise_covariance(self) -> dict[tuple[str, str], float]:
            return {("a", "b"): 0.001}

    with pytest.raises(ModelError, match=r"ties 'a' and 'b' .* the law Laplace: only normal noise has covariances"):
        gr.simulate(Tied(), [0.0, 1.0], {"x": 1.0}, noise=True)
