"""Bands of states with the uncertainty of the unknowns, and how bands say what they contain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.cli import table_of
from grisaille.estimation.predictions import spread_over_unknowns
from grisaille.reporting import states as states_card


class Tank(gr.Model):
    """A tank with an unknown outflow and a slow unknown leak."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    h = gr.Variable(1.0)
    q = gr.Input()
    leak = gr.Disturbance(gr.spectra.integrated(), scale=0.02)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h - leak]


class Outlet(Tank):
    """The same with an outflow that is not linear."""

    equations = [der(Tank.h) == Tank.q - Tank.k * gr.sqrt(Tank.h) - Tank.leak]


def record(seed: int, samples: int = 300, name: str = "", scale: float = 0.02) -> tuple[gr.Experiment, np.ndarray]:
    """A record and its true leak, by Euler's method."""
    rng, fine = np.random.default_rng(seed), 40
    step = 0.2 / fine
    q = 0.5 + 0.3 * np.repeat(rng.choice([-1, 1], samples // 25), 25)
    h, leak, seen = 1.0, 0.0, []
    for k in range(samples):
        seen.append((h, leak))
        for _ in range(fine):
            h, leak = h + step * (q[k] - 0.5 * h - leak), leak + scale * np.sqrt(step) * rng.normal()
    level, truth = np.array(seen).T
    y = level + 0.02 * rng.normal(size=samples)
    return gr.Experiment(0.2 * np.arange(samples), {"q": q}, {"y": y}, name=name or None), truth


@pytest.fixture(scope="module")
def small() -> gr.Fit:
    return gr.fit(Tank(), record(3, 50)[0], ["k", "scale(leak)"], progress=False)


def test_the_leak_is_inside_the_whole_band() -> None:
    """In this record bands for given parameters hold it at 38 % of the instants."""
    data, truth = record(10)
    fit = gr.fit(Tank(), data, ["k", "scale(leak)"], progress=False)
    bands = [fit.states(names=["leak"], bands=b)["leak"].sel(given="smoothed") for b in ("noise", "all")]  # type: ignore[arg-type]
    shares = [((b.sel(statistic="lower") < truth) & (truth < b.sel(statistic="upper"))).mean() for b in bands]
    assert shares[0] < 0.5 and shares[1] > 0.9
    np.testing.assert_array_equal(*(b.sel(statistic="mean") for b in bands))


def test_a_state_that_is_linear_in_an_unknown_has_the_sum_of_both_variances() -> None:
    """x' = b + w from 0 with known noise: the smoother is linear in b, and its variance does not depend on it."""

    class Slope(gr.Model):
        b = gr.Parameter(1.0, bounds=(-9.0, 9.0))
        x = gr.Variable(0.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.3)
        y = gr.Output(x, noise=0.2)
        equations = [der(x) == b + w]

    t = 0.5 * np.arange(12)
    data = gr.Experiment(t, outputs={"y": t + 0.3 * np.cos(5 * t)})
    method = gr.KalmanML(initial_covariance={"x": 0.0})
    fit = gr.fit(Slope(), data, ["b"], method, progress=False)
    ahead, behind = (
        gr.evaluate(Slope(), data, method, parameters={"b": float(fit["b"]) + e}).states["experiment 1"]["x"]
        for e in (0.5, -0.5)
    )
    slope = (ahead - behind).sel(statistic="mean")
    noise, whole = (fit.states(bands=b)["x"] for b in ("noise", "all"))  # type: ignore[arg-type]
    expected = noise.sel(statistic="std") ** 2 + (slope * fit["b"].std_error) ** 2
    np.testing.assert_allclose(whole.sel(statistic="std") ** 2, expected, rtol=1e-6, atol=1e-12)


def test_new_records_and_own_starts_have_whole_bands() -> None:
    (one, _), (two, _) = record(3, 25, "one"), record(4, 25, "two")
    fit = gr.fit(Tank(), [one, two], ["k", "start(h)"], progress=False)
    for which in ("one", "two", record(5, 25, "three")[0]):
        noise, whole = (fit.states(which, bands=b)["leak"].sel(statistic="std") for b in ("noise", "all"))  # type: ignore[arg-type]
        assert (whole >= noise).all() and (whole[:, -1] > 1.02 * noise[:, -1]).all()


def test_nonlinear_filters_have_whole_bands() -> None:
    method = gr.KalmanML(substeps=1)
    fit = gr.fit(Outlet(), record(3, 25)[0], ["k"], method, progress=False)
    noise, whole = (fit.states(bands=b)["leak"].sel(statistic="std") for b in ("noise", "all"))  # type: ignore[arg-type]
    assert (whole >= noise).all() and (whole[:, -1] > 1.02 * noise[:, -1]).all()


def test_levels_give_degrees_of_freedom(small: gr.Fit) -> None:
    """A variance s² with var log s² = 4 r² is known as a χ² with 2/4r² degrees of freedom is."""
    e, r = small.estimate, small["scale(leak)"].std_error / float(small["scale(leak)"])
    known = np.nan, np.diag(1 / np.diag(e.covariance))
    variance, freedom = spread_over_unknowns(e, [1], lambda theta: (np.zeros(1), theta[1:] ** 2), lambda _: known)
    assert freedom[0] == pytest.approx(0.5 / r**2, rel=1e-6)
    assert variance[0] == pytest.approx(e.theta[1] ** 2, rel=1e-6)
    moved, _ = spread_over_unknowns(e, [0, 1], lambda theta: (theta.copy(), np.ones(2)), lambda _: known)
    assert np.sqrt(moved[0] - 1) == pytest.approx(small["k"].std_error, rel=0.01)


def test_a_level_that_came_out_as_zero_still_widens_bands() -> None:
    data, _ = record(1, 50, scale=0.0)
    fit = gr.fit(Tank(), data, ["k", "scale(leak)"], progress=False)
    assert float(fit["scale(leak)"]) == 0
    noise, whole = (fit.states(names=["leak"], bands=b) for b in ("noise", "all"))  # type: ignore[arg-type]
    assert (noise["leak"].sel(statistic="std") == 0).all() and "levels_at_zero" not in noise.attrs
    limit = fit.estimate.limits["scale(leak)"]
    assert f"scale(leak) at its one-sided limit {limit:.3g}" in whole.attrs["levels_at_zero"]
    assert (whole["leak"].sel(statistic="std", given="smoothed")[1:] > 0.1 * limit).all()


def test_what_nothing_is_known_about_stays_unknown() -> None:
    data, _ = record(3, 50)
    late = data.replace(outputs={"y": np.where(np.arange(50) < 3, np.nan, data.measurements("y").values)})
    fit = gr.fit(Tank(), late, ["k"], gr.KalmanML(initial_covariance="diffuse"), progress=False)
    h = fit.states(bands="all")["h"].sel(given="filtered")
    assert np.isinf(h.sel(statistic="std").values[:3]).all() and np.isfinite(h.values[:, 3:]).all()
    assert (h.sel(statistic="lower").values[:3] == -np.inf).all() and (
        h.sel(statistic="upper").values[:3] == np.inf
    ).all()


def test_collocation_has_whole_bands_unless_asked_for_those_of_noise() -> None:
    data, _ = record(3, 50)
    fit = gr.fit(Tank(), data, ["k"], gr.Collocation(), progress=False)
    usual, whole, noise = (fit.states(names=["h"], bands=b)["h"] for b in (None, "all", "noise"))  # type: ignore[arg-type]
    np.testing.assert_array_equal(usual, whole)
    assert (noise.sel(statistic="std") < whole.sel(statistic="std")).values[0, 5:].all()
    same = gr.fit(Tank(), data, ["k"], gr.KalmanML(initial_covariance={"h": 0.0}), progress=False).states(names=["h"])[
        "h"
    ]
    np.testing.assert_allclose(
        noise.sel(given="smoothed", statistic="std"), same.sel(given="smoothed", statistic="std"), rtol=0.05, atol=1e-4
    )


def test_bands_say_what_they_contain(small: gr.Fit, tmp_path: Path) -> None:
    fit = small
    usual, whole = fit.states(names=["leak"]), fit.states(names=["leak"], bands="all")
    assert (usual.attrs["bands"], whole.attrs["bands"]) == ("noise", "all")
    assert set(usual["leak"].to_dataframe()["bands"]) == {"noise"}
    assert set(whole.sel(given="smoothed").to_dataframe()["bands"]) == {"all"}
    whole.to_netcdf(tmp_path / "states.nc")
    for found, words in ((usual, "95 % band (noise alone)"), (whole, "95 % band (noise and parameters)")):
        assert words in [text.get_text() for text in found.plot().axes[0].get_legend().get_texts()]
    experiment = fit.experiments[0]
    for bands, horizon in (("noise", 1), (None, 1), ("all", 1), ("noise", None), ("all", None)):
        predicted = fit.predict(horizon=horizon, bands=bands)  # type: ignore[arg-type]
        assert f"y_lower_{bands or 'noise'}" in table_of(predicted, experiment).columns
    assert fit.predict().attrs.get("bands") is None and "y_lower" not in table_of(fit.predict(), experiment)
    with pytest.raises(gr.GrisailleError, match="bands is 'none'; give 'noise' or 'all'"):
        fit.states(bands="none")  # type: ignore[arg-type]


def test_the_report_says_what_its_bands_leave_out(small: gr.Fit) -> None:
    from grisaille.reporting import Album

    card = str(states_card(small, Album(), list(small.experiment_names)))
    assert "does not contain the uncertainty of parameters" in card and "fit.states(bands=" in card


def test_bands_of_all_need_standard_errors() -> None:
    data, _ = record(3, 50)
    fit = gr.fit(Tank().replace({}), data, ["k", "start(h)"], gr.KalmanML(initial_covariance="diffuse"), progress=False)
    with pytest.raises(gr.EstimationError, match="bands='noise' leaves them out"):
        fit.states(bands="all")
