"""Reducers: block by block equals all at once; wrong levels and names are refused; one's own reducer is taken."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.compilation import SampleMoments
from grisaille.errors import DataError
from grisaille.simulation.ensembles import Mean, Quantiles, RealizationBlock, Statistic, Variance, make_reducers

RNG = np.random.default_rng(4)
Y, SY = RNG.normal(size=(50, 6, 2)), RNG.normal(size=(50, 6, 3, 2))


def blocks(slab: slice):
    moments = SampleMoments.of(Y[:32, slab], SY[:32, slab]).joined(SampleMoments.of(Y[32:, slab], SY[32:, slab]))
    return [RealizationBlock(slab, None, Y[:32, slab], False), RealizationBlock(slab, moments, Y[32:, slab], True)]


def reduced(reducer):
    for slab in (slice(0, 4), slice(4, 6)):
        for block in blocks(slab):
            reducer.update(block)
    return reducer.result()


def test_mean_and_variance_with_their_derivatives():
    mean, variance = reduced(Mean()), reduced(Variance())
    np.testing.assert_allclose(mean.values, Y.mean(axis=0), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(mean.slopes, SY.mean(axis=0), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(variance.values, Y.var(axis=0, ddof=1), rtol=1e-12)
    e = 1e-6
    difference = ((Y + e * SY[:, :, 1]).var(axis=0, ddof=1) - (Y - e * SY[:, :, 1]).var(axis=0, ddof=1)) / (2 * e)
    np.testing.assert_allclose(variance.slopes[:, 1], difference, rtol=1e-6, atol=1e-8)


def test_quantiles_are_exact():
    found = reduced(Quantiles([0.0, 0.1, 0.5, 1.0]))
    np.testing.assert_array_equal(found.values, np.quantile(Y, [0.0, 0.1, 0.5, 1.0], axis=0))
    assert found.dims == ("quantile",) and found.coordinates["quantile"].tolist() == [0.0, 0.1, 0.5, 1.0]


def test_a_variance_of_one_is_refused():
    single = Variance()
    single.update(RealizationBlock(slice(0, 6), SampleMoments.of(Y[:1], SY[:1]), None))
    with pytest.raises(DataError, match="at least two realizations"):
        single.result()


@pytest.mark.parametrize("levels", [[], [0.5, 1.2], [[0.5]], [float("nan")]])
def test_levels_lie_between_zero_and_one(levels):
    with pytest.raises(DataError, match="levels from 0 to 1"):
        Quantiles(levels)


def test_names_and_objects():
    found, single = make_reducers("mean")
    assert single and isinstance(found[0], Mean)
    found, single = make_reducers(["variance", Quantiles([0.5])])
    assert not single and [r.suffix for r in found] == ["variance", "quantile"]
    with pytest.raises(DataError, match="'mean', 'variance', 'quantiles'"):
        make_reducers(["mode"])


class Largest:
    """The largest value of any realization: a reducer from outside."""

    suffix, needs_rows = "largest", True

    def __init__(self) -> None:
        self.parts: dict[int, np.ndarray] = {}

    def update(self, block: RealizationBlock) -> None:
        now = block.y.max(axis=0)
        self.parts[block.instants.start] = np.maximum(now, self.parts.get(block.instants.start, -np.inf))

    def result(self) -> Statistic:
        return Statistic((), np.concatenate([self.parts[k] for k in sorted(self.parts)]))


def test_a_reducer_of_ones_own_in_simulate():
    class Wandering(gr.Model):
        x = gr.Variable(0.0)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0))
        equations = [der(x) == w]

    given = {"realizations": 40, "step": 0.25}
    times = np.linspace(0, 1, 5)
    found = gr.simulate(Wandering(), times, reduce=[Largest(), "mean"], **given)
    kept = gr.simulate(Wandering(), times, **given)
    np.testing.assert_array_equal(found.x_largest, kept.x.max("realization"))
    np.testing.assert_allclose(found.x_mean, kept.x.mean("realization"), rtol=1e-12, atol=1e-15)
