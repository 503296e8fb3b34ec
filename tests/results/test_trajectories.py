"""What ``states`` and ``predict`` give: names, units, dates, and pictures of them."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import grisaille as gr
from grisaille import der
from grisaille.errors import DataError, EstimationError

STAMPS = pd.date_range("2024-03-30 12:00", periods=60, freq="30min", tz="Europe/Berlin")


class Zone(gr.Model):
    """A zone whose gains drift."""

    C = gr.Parameter(1.0, "kWh/K", bounds=(0.2, 5.0))
    R = gr.Parameter(8.0, "K/kW")
    constant = R * C
    T = gr.Variable(20.0, "degC", "of the room")
    loss = gr.Variable(unit="kW")
    outside = gr.Input("degC")
    drift = gr.Disturbance(gr.spectra.integrated(), scale=0.3, unit="kW")
    draught = gr.Disturbance(gr.spectra.white(), scale=0.02)
    twice = 2 * loss
    y = gr.Output(T, noise=0.05, unit="degC")
    equations = [C * der(T) == drift - loss + draught, loss == (T - outside) / R]


@cache
def record() -> gr.Experiment:
    """With a gap of rows, and one of values."""
    hours = 0.5 * np.arange(60)
    outside = 8 + 4 * np.sin(hours / 4)
    run = gr.simulate(Zone(), hours, {"outside": outside}, realizations=1, seed=2, noise=True)
    frame = pd.DataFrame({"outside": outside, "y": run["y"].values[0]}, index=STAMPS)
    frame.loc[STAMPS[20:26], "y"] = np.nan
    kept = frame.drop(STAMPS[40:46])
    return gr.Experiment.from_frame(kept, inputs=["outside"], outputs=["y"], unit="h", name="spring")


@cache
def fitted(method: str) -> gr.Fit:
    return gr.fit(
        Zone(), record(), ["C"], {"kalman": gr.KalmanML, "colloc": gr.Collocation, "oe": gr.OutputError}[method]()
    )


@pytest.mark.parametrize("method", ["kalman", "colloc"])
def test_disturbances_and_named_quantities_are_among_the_states(method: str) -> None:
    states = fitted(method).states()
    assert set(states.data_vars) == {"T", "loss", "drift", "twice", "y"}
    assert states.attrs["left_out"] == "draught: white noise has no value at an instant"
    assert {n: states[n].attrs.get("units") for n in states} == {
        "T": "degC", "loss": "kW", "drift": "kW", "twice": None, "y": "degC"
    }  # fmt: skip
    assert states["T"].attrs["description"] == "of the room"
    assert np.allclose(states["twice"], 2 * states["loss"])
    drift = states["drift"].sel(given="smoothed")
    assert (drift.sel(statistic="lower") < drift.sel(statistic="upper"))[5:].all()


def test_expressions_have_the_units_of_members() -> None:
    model = fitted("kalman").model
    states = fitted("kalman").states(names={"air": model.T, "half": model.T / 2})
    assert states["air"].attrs["units"] == "degC" and "units" not in states["half"].attrs


def test_predictions_have_what_states_have() -> None:
    ahead = fitted("kalman").predict(horizon=3)
    assert set(ahead.data_vars) == set(fitted("kalman").states().data_vars)
    assert ahead["drift"].attrs["units"] == "kW"
    std = ahead["drift"].sel(statistic="std").values
    assert std[-1] > fitted("kalman").states()["drift"].sel(given="filtered", statistic="std").values[-1]


@pytest.mark.parametrize("found", ["states", "predict", "ahead", "residuals", "validate"])
def test_dates_are_those_of_the_data(found: str) -> None:
    fit = fitted("kalman")
    kept = STAMPS.delete(range(40, 46))
    if found in ("residuals", "validate"):
        is_own = found == "residuals"
        table = (fit if is_own else fit.validate(record().replace(name="again", skip=1))).residuals()
        measured = kept[np.isfinite(record().outputs["y"].values)]
        assert list(table["date"]) == list(measured)[0 if is_own else 1 :]
        return
    given = fit.states() if found == "states" else fit.predict(horizon=None if found == "predict" else "2h")
    assert list(given["date"].values) == list(kept)
    assert given["time"].attrs["unit"] == "h" and list(given.to_dataframe()["date"].unique()) == list(kept)


def test_a_duration_ahead_uses_data_that_old(method: str = "kalman") -> None:
    """Against a record that ends there, over rows that are missing."""
    fit, data = fitted(method), record()
    far = fit.predict(horizon="4h")["y"]
    for j in (12, 38, 41, 44, 53):
        y = data.outputs["y"].values.copy()
        y[data.time > data.time[j] - 4 + 1e-9] = np.nan
        y[-1] = 0.0  # a record must end somewhere
        blind = fit.predict(data.replace(outputs={"y": y}), horizon=1, start="declared")["y"]
        for statistic in ("mean", "std"):
            assert float(far.sel(statistic=statistic)[j]) == pytest.approx(
                float(blind.sel(statistic=statistic)[j]), abs=1e-9
            )


def test_states_are_drawn_with_bands_units_and_dates() -> None:
    figure = fitted("kalman").states().plot()
    assert [axes.get_ylabel() for axes in figure.axes] == ["T [degC]", "loss [kW]", "twice", "y [degC]", "drift [kW]"]
    assert [len(axes.collections) for axes in figure.axes] == [1] * 5
    assert np.isnan(np.asarray(figure.axes[0].lines[0].get_ydata())).sum() == 1
    assert figure.axes[-1].get_xlabel() == "time, Europe/Berlin"
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "95 % band (noise alone)",
        "smoothed",
        "filtered",
    ]
    some = fitted("kalman").states(level=0.5).sel(given="smoothed").isel(time=slice(5, 20)).plot(["drift"])
    assert len(some.axes) == 1 and len(some.axes[0].lines[0].get_xdata()) == 15
    with pytest.raises(DataError, match="no variable 'w'"):
        fitted("kalman").states().plot("w")


def test_simulations_are_drawn_too() -> None:
    figure = fitted("oe").predict().plot(["loss", "outside"])
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss [kW]", "outside [degC]"]


def test_fits_are_drawn_over_a_horizon() -> None:
    fit = fitted("kalman")
    above, below = fit.plot(horizon="4h").axes
    far = fit.predict(horizon="4h")["y"]
    drawn = np.asarray(above.lines[1].get_ydata())
    assert np.isnan(drawn).sum() == 1, "no chord across rows that are missing"
    assert np.allclose(drawn[np.isfinite(drawn)], far.sel(statistic="mean"))
    ends = np.concatenate([path.vertices for path in above.collections[0].get_paths()])
    assert ends[:, 1].max() == pytest.approx(float(far.sel(statistic="upper").max()))
    assert below.get_xlabel() == "time, Europe/Berlin" and below.get_ylabel() == "residual [degC]"
    assert "predicted 4h ahead" in fit.plot(horizon="4h").get_suptitle()
    simulated, _ = fitted("oe").plot(horizon="4h").axes
    drawn = np.asarray(simulated.lines[1].get_ydata())
    assert np.allclose(drawn[np.isfinite(drawn)], fitted("oe").predict()["y"]) and not simulated.collections
    with pytest.raises(EstimationError, match="some samples before come with"):
        fitted("colloc").plot(horizon="4h")


def test_they_stay_what_they_are(tmp_path: object) -> None:
    states = fitted("kalman").states()
    assert type(states.sel(given="smoothed")) is type(states) and isinstance(states, xr.Dataset)
    assert pickle.loads(pickle.dumps(states)).equals(states)
    assert states["T"].interp(time=[0.25, 0.75]).shape[-1] == 2
    states.to_netcdf(f"{tmp_path}/states.nc")
    with xr.open_dataset(f"{tmp_path}/states.nc") as again:
        assert (again["date"].values == record().clock.dates(record().time).tz_convert(None).to_numpy()).all()
        assert np.array_equal(again["drift"], states["drift"]) and again["date"].attrs["zone"] == "UTC"


def test_a_fit_over_a_duration_is_one_over_samples() -> None:
    """Where rows are even; where some are missing it is another."""
    data = record()
    even = data.replace(outputs={"y": (data.time[:36], data.outputs["y"].values[:36])}, inputs={"outside": 8.0})
    values = {"C": 0.8}
    samples, duration = (gr.evaluate(Zone(), even, gr.KalmanML(horizon=h), values) for h in (4, "2h"))
    assert samples.objective == duration.objective
    samples, duration = (gr.evaluate(Zone(), data, gr.KalmanML(horizon=h), values) for h in (4, "2h"))
    assert samples.objective != duration.objective
    fit = gr.fit(Zone(), even, ["C"], gr.KalmanML(horizon=pd.Timedelta("2h")))
    assert fit.method.horizon == "0 days 02:00:00" and any("02:00:00 ahead were fitted" in note for note in fit.notes)
    with pytest.raises(EstimationError, match="horizon is 'soon'; give a whole number from 1, or a duration"):
        gr.KalmanML(horizon="soon")


def test_states_at_given_values_have_dates_too() -> None:
    found = gr.evaluate(Zone(), record(), gr.KalmanML(), {"C": 0.8}).states["spring"]
    assert list(found["date"].values) == list(record().clock.dates(record().time)) and "drift" in found
