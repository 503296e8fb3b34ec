"""The grid of an ensemble follows its outputs: short intervals cost one cell each, rounding of clocks costs nothing."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import DataError
from grisaille.simulation.ensembles import make_grid

HOUR = np.arange(0.0, 3601.0, 60.0)
NOTHING = np.zeros(0)


class Slow(gr.Model):
    """x' = −x/100 + w with slow noise: E w² = s² b/2 = 0.32 · 0.01/2."""

    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.01), scale=0.8)
    equations = [der(x) == -0.01 * x + w]


class Implicit(gr.Model):
    x, z = gr.Variable(1.0), gr.Variable(0.5)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.01), scale=0.8)
    equations = [der(x) == -0.01 * z, z + 0.1 * z**3 == x + w]


@pytest.mark.parametrize("extra", [1e-2, 1e-4, 1e-6, 3599.9999])
def test_an_output_close_to_another_adds_one_cell(extra):
    regular, irregular = (make_grid(t, NOTHING, 5.0) for t in (HOUR, np.sort([*HOUR, extra])))
    assert irregular.cells == regular.cells + 1
    np.testing.assert_array_equal(irregular.points[irregular.kept], np.sort([*HOUR, extra]))


@pytest.mark.parametrize("origin", [0.0, 1.7e9])
@pytest.mark.parametrize("has_lattice", [False, True])
def test_instants_that_differ_by_rounding_are_one(origin, has_lattice):
    times = origin + HOUR
    later = np.nextafter(times[1:], np.inf)
    both = np.sort(np.concatenate([times, later]))
    grid = make_grid(both, np.nextafter(times[3:5], -np.inf), 60.0, has_lattice=has_lattice)
    assert grid.cells == 60
    np.testing.assert_array_equal(grid.kept, [0, *np.repeat(np.arange(1, 61), 2)])


@pytest.mark.parametrize("model", [Slow(), Implicit()])
@pytest.mark.parametrize("between", ["linear", "exact"])
def test_two_clocks_see_one_trajectory(model, between):
    times = HOUR[:4]
    two = np.sort([*times, 60 * (1 + 1e-13), 180 - 1e-11])
    given = {"realizations": 3, "between": between, "step": 20.0, "rtol": 1e-4}
    one, both = (gr.simulate(model, t, **given) for t in (times, two))
    np.testing.assert_allclose(both.x[:, [0, 1, 3, 5]], one.x, rtol=1e-10)
    np.testing.assert_array_equal(both.x[:, [1, 4]], both.x[:, [2, 5]])
    mean = gr.simulate(model, two, reduce="mean", **given)
    np.testing.assert_allclose(mean.x, both.x.mean("realization"), rtol=1e-12)


def test_variances_do_not_depend_on_how_outputs_lie():
    """Stationary w at five instants of which two are 0.1 ms apart; margins are five Monte Carlo deviations."""
    times = np.array([0.0, 1e-4, 70.0, 70.0001, 3000.0])
    run = gr.simulate(Slow(), times, realizations=3000, reduce="variance")
    assert run.attrs["cells"] < 700
    np.testing.assert_allclose(run.w, 0.64 * 0.01 / 2, rtol=5 * np.sqrt(2 / 3000))


def test_a_grid_that_no_machine_holds_is_refused():
    with pytest.raises(DataError, match=r"sampled at 3.6e\+09 points from t = 0 to 3600.*shorter span"):
        gr.simulate(Slow(), HOUR, realizations=1, step=1e-6)


def test_one_instant_is_no_span():
    with pytest.raises(DataError, match=r"only time is 0\. Give a later one too"):
        gr.simulate(Slow(), [0.0], realizations=2)
