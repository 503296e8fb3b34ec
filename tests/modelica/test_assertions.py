"""Assertions are checked on the rows of a run; what is left out of a text is told when it is read."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from modelica.texts import model

import grisaille as gr
from grisaille.errors import ModelError, SimulationError
from grisaille.model import Call, Condition, Constant, Name
from grisaille.simulation import ConditionFormulas

TIMES = np.linspace(0.0, 1.0, 11)
DECAY = model(
    """
    parameter Real k = 2.0;
    parameter Real most = 3.0;
    Real x(start = 1.0, fixed = true);
    Real y;
    Boolean low;
    equation
    der(x) = -k * x;
    y = 2.0 * x;
    low = x < 0.3;
    assert(y > 0.5, "y is " + String(y) + ", too small");
    assert(not low, "low", AssertionLevel.warning);
    assert(most > 1.0, "most is too small");
    if x > 0.6 then
      assert(time < 0.15, "high for long");
    else
      assert(time > 0.35, "low early");
    end if;
    """
)
"""x = exp(-2 t): 0.6 at t = 0.255, 0.3 at t = 0.602, 0.25 at t = 0.693."""


@pytest.fixture(scope="module")
def decay() -> gr.Model:
    return gr.read_modelica(DECAY)


def test_a_broken_assertion_is_an_error_with_its_message_line_and_time(decay: gr.Model) -> None:
    with pytest.raises(SimulationError) as told, pytest.warns(UserWarning, match="1 of its assertions"):
        gr.simulate(decay, TIMES)
    text = str(told.value)
    assert "line 15: y is …, too small (`y > 0.5` does not hold, first at t = 0.7, at 4 of 11 times)" in text
    assert "line 19: high for long" in text and "first at t = 0.2, at 1 of 11 times" in text
    assert "line 21: low early" in text and "first at t = 0.3, at 1 of 11 times" in text
    assert "most" not in text and "line 16" not in text
    np.testing.assert_allclose(told.value.partial["x"], np.exp(-2 * TIMES), rtol=1e-5)  # type: ignore[index]


def test_without_strict_and_at_the_level_of_a_warning_it_is_a_warning(decay: gr.Model) -> None:
    with pytest.warns(UserWarning, match=r"line 16: low \(.* first at t = 0.7, at 4 of 11 times") as told:
        result = gr.simulate(decay, TIMES, strict=False)
    assert "breaks 4 of its assertions" in str(told[0].message) and result.sizes["time"] == 11


def test_a_run_that_keeps_them_is_silent_also_when_sent_elsewhere(decay: gr.Model) -> None:
    sent = pickle.loads(pickle.dumps(decay))
    assert gr.simulate(sent, TIMES[:2])["y"].values[-1] == pytest.approx(2 * np.exp(-0.2), rel=1e-5)
    with pytest.raises(SimulationError, match=r"line 17: most is too small \(`most > 1`"):
        gr.simulate(sent, TIMES[:2], parameters={"most": 0.5})
    with pytest.raises(SimulationError, match="most is too small"):
        gr.simulate(sent.replace({"most": 0.5}), TIMES[:2])


def test_they_hold_for_a_component_under_its_name(decay: gr.Model) -> None:
    class Plant(gr.Model):
        tank = decay

        z = gr.Variable()
        equations = [z == tank.x + 1]

    with pytest.raises(SimulationError, match=r"`tank\.most > 1` does not hold"):
        gr.simulate(Plant(), TIMES[:2], parameters={"tank.most": 0.5})


def test_a_search_may_pass_through_broken_ones(decay: gr.Model) -> None:
    plant = decay.with_outputs({"seen": "x"}, noise=0.01)
    data = gr.Experiment(TIMES, outputs={"seen": np.exp(-2.0 * TIMES)})
    fit = gr.fit(plant.replace({"k": 3.0}), data, estimate=["k"], method=gr.OutputError())
    assert float(fit["k"]) == pytest.approx(2.0, abs=1e-3)
    assert np.abs(fit.simulated(data)["x"] - np.exp(-2.0 * TIMES)).max() < 1e-3
    with pytest.raises(SimulationError, match="too small"), pytest.warns(UserWarning, match="low"):
        fit.simulate(TIMES)


@pytest.mark.parametrize(
    ("operation", "values", "broken"),
    [
        ("ge", [1.0, -1e-8], [False, False]),  # within the tolerance of what was as large as one
        ("ge", [1.5, -1e-3], [False, True]),
        ("gt", [1.0, 0.0], [False, True]),  # whole numbers are exact
        ("le", [0.0, 1.0], [False, True]),
        ("lt", [np.nan, 0.5], [False, True]),
    ],
)
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_relations_are_broken_beyond_the_tolerance_only(
    operation: str, values: list[float], broken: list[bool], scale: float
) -> None:
    import xarray as xr

    relation = Condition(operation, (Name("v"), Constant(0.0)))
    if scale != 1.0 and values[1] == 0.0:
        scale = 1.0  # a tolerance makes no difference between zero and nearly zero
    run = xr.Dataset({"v": ("time", scale * np.array(values))}, {"time": [0.0, 1.0]})
    for condition in (relation, Condition("not", (Condition("not", (relation,)),))):
        check = SimpleNamespace(condition=condition)
        assert ConditionFormulas(check, {"v": scale}).broken(run, {}, 1e-6).tolist() == broken  # type: ignore[arg-type]
    either = Condition("or", (relation, Condition("gt", (Call("neg", (Name("v"),)), Constant(2.0 * scale)))))
    check = SimpleNamespace(condition=either)
    assert ConditionFormulas(check, {"v": scale}).broken(run, {}, 1e-6).tolist() == broken  # type: ignore[arg-type]


def test_assertions_of_parameters_are_told_when_the_text_is_read() -> None:
    text = model('parameter Real m = 2.0; Real x; equation x = m;\nassert(m < 1.0, "m is too large");')
    with pytest.warns(UserWarning, match="line 6: an assertion fails: m is too large"):
        read = gr.read_modelica(text)
    with pytest.raises(SimulationError, match="line 6: m is too large"):
        gr.simulate(read, TIMES)
    assert gr.simulate(read, TIMES, parameters={"m": 0.5})["x"].values[-1] == 0.5
    with pytest.raises(ModelError, match="line 6: an assertion fails: never"):
        gr.read_modelica(model('Real x; equation x = 1.0;\nassert(1 > 2, "never");'))


def test_bounds_that_do_not_hold_the_value_are_told() -> None:
    text = model("parameter Real k(min = 0.0, max = 1.0) = 2.0;\nReal x(start = 1.0, max = 0.5); equation der(x) = -k;")
    with pytest.warns(UserWarning) as told:
        read = gr.read_modelica(text)
    assert len(told) == 1 and told[0].filename == __file__
    assert "line 5: 'k' = 2 lies outside its bounds, 0 to 1, which are left out" in str(told[0].message)
    assert "line 6: 'x' = 1 lies outside its bounds, -inf to 0.5, which are left out" in str(told[0].message)
    assert read.parameters["k"].bounds is None


@pytest.mark.parametrize("kind", ["equation", "algorithm"])
def test_a_run_that_is_not_ended_is_told(kind: str) -> None:
    body = f'Real x(start = 0.0); equation der(x) = 1.0;\n{kind} when x > 0.5 then terminate("end"); end when;'
    with pytest.warns(UserWarning, match="line 6: 'terminate' does not end a run"):
        gr.read_modelica(model(body))
