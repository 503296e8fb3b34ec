"""Times in another unit than the one a model's own units have in mind."""

from __future__ import annotations

import io

import numpy as np
import pytest

import grisaille as gr
from grisaille.experiment.times import UNSTATED_UNIT
from grisaille.model import read_unit


class Lag(gr.Model):
    tau = gr.Parameter(1.0, "s", bounds=(0.01, 50.0))
    x = gr.Variable(0.0)
    u = gr.Input()
    y = gr.Output(x, noise=0.1)
    equations = [tau * gr.der(x) == u - x]


class House(gr.Model):
    C = gr.Parameter(1.0, "kWh/K")
    R = gr.Parameter(1.0, "K/kW")
    T = gr.Variable(20.0, "degC")
    u = gr.Input("degC")
    y = gr.Output(T)
    equations = [C * gr.der(T) == (u - T) / R]


class Conversion(House):
    equations = [3600 * House.C * gr.der(House.T) == (House.u - House.T) / House.R]


def record(unit: str = UNSTATED_UNIT) -> gr.Experiment:
    t = np.arange(0.0, 24.0, 0.5)
    u = np.where(t % 8 < 4, 10.0, 0.0)
    x = np.zeros(t.size)
    for k in range(1, t.size):
        x[k] = u[k - 1] + (x[k - 1] - u[k - 1]) * np.exp(-0.25)
    return gr.Experiment(t, {"u": u}, {"y": x}, unit=unit)


@pytest.mark.parametrize(("unit", "said"), [("s", False), ("h", True), ("min", True), ("weeks", False)])
def test_a_time_constant_in_seconds(unit: str, said: bool) -> None:
    remarks = record(unit).check(Lag())
    assert any(f"Times are in {unit} in the data, but the units of tau" in r for r in remarks) is said


def test_energies_and_powers_agree_in_hours_alone() -> None:
    assert record("h").check(House()) == ()
    assert "with times in h" in record("min").check(House())[0] and "with times in h" in record("s").check(House())[0]


def test_seconds_count_where_they_were_said() -> None:
    """Plain numbers without a unit say nothing; a unit that was given is kept by all that a record becomes."""
    assert record().check(House()) == () and record().clock.unit == "s"
    said = record("s")
    assert said.fingerprint == record().fingerprint
    again = gr.Experiment.from_dataset(said.to_dataset())
    for made in (said.resample(1.0), said.replace(name="b"), record().replace(unit="s"), again):
        assert "Times are in s in the data" in made.check(House())[0]
    for units, count in (("s,,\n", 1), ("", 0)):
        read = gr.Experiment.from_csv(io.StringIO(f"t,u,y\n{units}0,1,2\n1,1,2\n2,1,2\n"), "t", ["u"], ["y"])
        assert len(read.check(House())) == count


def test_a_fit_says_so_and_shows_no_unit() -> None:
    fit = gr.fit(Lag(), record("h"), ["tau"], method=gr.OutputError())
    assert fit.parameters.loc["tau", "estimate"] == pytest.approx(2.0, rel=1e-3) and not str(fit["tau"]).endswith("s")
    assert any("Times are in h" in note for note in fit.notes)
    assert gr.fit(Lag(), record("s"), ["tau"], method=gr.OutputError()).estimate.unknowns[0].unit == "s"


def test_units_are_read() -> None:
    watts, other = read_unit("W/(m2.K)"), read_unit("J/h/m^2/K")
    assert watts is not None and other is not None and watts.is_alike(other)
    assert watts.size / other.size == pytest.approx(3600)
    assert read_unit("") is None and read_unit("??") is None


def hourly(unit: str, factor: float, seed: int) -> gr.Experiment:
    times = np.arange(0.0, 8.0, 0.25)
    y = np.exp(-times / 2.0) + 0.01 * np.random.default_rng(seed).normal(size=len(times))
    return gr.Experiment(factor * times, {}, {"y": y}, unit=unit, name=f"{unit}{seed}")


def test_records_that_count_time_in_different_units_are_refused() -> None:
    class Room(gr.Model):
        tau = gr.Parameter(1.0, "s", bounds=(0.01, 50.0))
        x = gr.Variable(1.0, "K")
        y = gr.Output(x, noise=0.01)
        equations = [tau * gr.der(x) == -x]

    fit = gr.fit(Room(), hourly("h", 1.0, 1), ["tau"])
    other = hourly("min", 60.0, 2)
    for use in (
        lambda: fit.validate(other),
        lambda: fit.predict(other),
        lambda: gr.fit(Room(), [hourly("h", 1.0, 1), other], ["tau"]),
        lambda: gr.multistart(Room(), [hourly("h", 1.0, 1), other], ["tau"], starts=2, executor="serial"),
    ):
        with pytest.raises(gr.DataError, match=r"Times are in h in .h1. and in min in .min2'.*unit='h'"):
            use()
    same = fit.validate(hourly("h", 1.0, 3))
    assert same.table.r2["y"] > 0.99
    assert any(n.startswith("Times are in h in the data, but the units of tau") for n in same.notes)
    assert "Times are in h in the data" in str(same)
