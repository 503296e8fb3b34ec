"""``simulate`` as a user calls it: closed forms, kinks, starts, sensitivities, partial results, failures."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from zoo.mechanics import DisguisedIndex, Pendulum, RedundantArm

import grisaille as gr
from grisaille import der, exp
from grisaille.errors import DataError, ModelError, SimulationError, StructureError


class Decay(gr.Model):
    """x' = −a x + u."""

    a = gr.Parameter(0.7, "1/s")
    x = gr.Variable(2.0, "m")
    u = gr.Input("m/s", default=0.0)
    y = gr.Output(3 * x, unit="m")
    equations = [der(x) == -a * x + u]


class TwoRoots(gr.Model):
    """z² = x + 1 with x' = −z: an algebraic equation that must be solved in every step."""

    x = gr.Variable(3.0)
    z = gr.Variable(2.0)
    equations = [der(x) == -z, z**2 + 0.1 * z == x + 1.2]


def test_labels_units_and_closed_form() -> None:
    times = np.linspace(0, 5, 51)
    run = gr.simulate(Decay(), times, rtol=1e-10)
    assert list(run.dims) == ["time"] and run.x.attrs["units"] == "m"
    assert np.abs(run.x - 2 * np.exp(-0.7 * times)).max() < 1e-9
    assert np.allclose(run.y, 3 * run.x) and np.allclose(run.u, 0)
    assert run.attrs["completed"] == 1


def test_held_input_is_met_exactly_at_its_jumps() -> None:
    times = np.linspace(0, 4, 9)
    values = np.array([0.0, 1.0, 1.0, -2.0, 0.5, 0.0, 3.0, 3.0, 0.0])
    run = gr.simulate(Decay(), times, inputs={"u": values}, rtol=1e-10)
    x, exact = 2.0, [2.0]
    for u in values[:-1]:
        x = u / 0.7 + (x - u / 0.7) * np.exp(-0.7 * 0.5)
        exact.append(x)
    assert np.abs(run.x - exact).max() < 1e-9


def test_outputs_see_the_input_that_holds_from_their_instant_on() -> None:
    """y = x + u at a sampling instant uses the sample of that instant, also at the very last one."""

    class Feedthrough(gr.Model):
        x = gr.Variable(0.0)
        u = gr.Input()
        y = gr.Output(x + u)
        equations = [der(x) == 1]

    times, values = np.arange(5.0), np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    for method in ("explicit", "implicit", "frozen-explicit", "frozen-implicit"):
        run = gr.simulate(Feedthrough(), times, inputs={"u": values}, method=method)
        assert np.allclose(run.y, times + values, atol=1e-12), method
        assert np.array_equal(run.u, values), method


def test_parameters_and_start_replace_the_models() -> None:
    run = gr.simulate(Decay(), [0, 1], parameters={"a": 2.0}, start={"x": 5.0}, rtol=1e-10)
    assert float(run.x[-1]) == pytest.approx(5 * np.exp(-2), rel=1e-9)


def test_steady_start() -> None:
    run = gr.simulate(Decay(), np.linspace(0, 3, 4), inputs={"u": 1.4}, start="steady")
    assert np.abs(run.x - 2.0).max() < 1e-9


def test_start_can_be_demanded_of_any_variable() -> None:
    """The start of y fixes x through the output's definition when y is a variable of its own."""

    class Twice(gr.Model):
        x, y = gr.Variable(), gr.Variable()
        equations = [der(x) == -x, y == 2 * x]

    run = gr.simulate(Twice(), [0, 1], start={"y": 4.0})
    assert float(run.x[0]) == pytest.approx(2.0, abs=1e-12)


def test_sloppy_start_is_moved_onto_the_constraint_and_says_so() -> None:
    with pytest.warns(UserWarning, match="declared starts? (is|are) not met: .* begins at .* instead of"):
        run = gr.simulate(Pendulum(start={"x": 1.0}), [0, 0.1], inputs={"u": 0.0})
    assert float(run.x[0] ** 2 + run.y[0] ** 2) == pytest.approx(6.25**2, abs=1e-9)
    assert "declared" in run.attrs["adjusted_starts"] and "not met" in run.attrs["status"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a start that is met to the digits it is written with is told in the status
        run = gr.simulate(Pendulum(start={"x": 3.0, "y": -5.48}), [0, 0.1], inputs={"u": 0.0})
    assert "begins at" in run.attrs["status"]


def test_contradicting_demands_name_the_constraint() -> None:
    with pytest.raises(StructureError, match=r"x\*\*2 \+ y\*\*2 == L\*\*2") as caught:
        gr.simulate(Pendulum(), [0, 1], inputs={"u": 0.0}, start={"x": 1.0, "y": 0.0})
    assert "fixed=False" in str(caught.value)


def test_algebraic_unknowns_are_solved_in_every_step() -> None:
    times = np.linspace(0, 1.5, 7)
    run = gr.simulate(TwoRoots(), times, rtol=1e-9)
    assert np.abs(run.z**2 + 0.1 * run.z - run.x - 1.2).max() < 1e-10
    implicit = gr.simulate(TwoRoots(), times, rtol=1e-9, method="implicit")
    assert np.abs(run.x - implicit.x).max() < 1e-7


def test_prescribed_motion_of_index_three() -> None:
    times = np.linspace(0, 3, 31)
    with pytest.warns(UserWarning, match="q1 begins at 0.1647.* instead of 0.4"):
        run = gr.simulate(RedundantArm(), times, rtol=1e-8)
    tip = np.cos(run.q1) + 0.8 * np.cos(run.q1 + run.q2)
    assert np.abs(tip - 1.0 - 0.3 * np.cos(times)).max() < 1e-9
    rate = np.gradient(run.q1.values, times)
    assert np.abs(rate - run.w1)[2:-2].max() < 5e-3


def test_cancelling_derivatives_run() -> None:
    run = gr.simulate(DisguisedIndex(), np.linspace(0, 2, 21), rtol=1e-9)
    assert np.abs(run.b - run.a**2 - run.a).max() < 1e-9


def test_static_model_is_solved_at_every_time() -> None:
    class Curve(gr.Model):
        u = gr.Input()
        y = gr.Variable(1.0)
        equations = [y + exp(y) == u]

    times = np.linspace(0, 1, 5)
    run = gr.simulate(Curve(), times, inputs={"u": 2 + times}, sensitivities=[])
    assert np.abs(run.y + np.exp(run.y) - 2 - times).max() < 1e-10


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen-explicit", "frozen-implicit"])
def test_sensitivities_of_the_closed_form(method: str) -> None:
    times = np.linspace(0, 3, 7)
    run = gr.simulate(Decay(), times, sensitivities=["a", "start(x)"], rtol=1e-9, method=method)
    assert list(run.parameter.values) == ["a", "start(x)"]
    assert np.abs(run["d(x)"].sel(parameter="a") + 2 * times * np.exp(-0.7 * times)).max() < 1e-6
    assert np.abs(run["d(y)"].sel(parameter="start(x)") - 3 * np.exp(-0.7 * times)).max() < 1e-6


def test_sensitivities_through_parameter_formulas() -> None:
    class Tied(gr.Model):
        b = gr.Parameter(2.0)
        a = gr.Parameter(b**2)
        x = gr.Variable(1.0)
        equations = [der(x) == -a * x]

    run = gr.simulate(Tied(), [0, 0.5], sensitivities=["b"], rtol=1e-10)
    assert float(run["d(x)"][-1, 0]) == pytest.approx(-2.0 * np.exp(-2.0), rel=1e-8)


def test_sensitivities_respect_the_constraint() -> None:
    """x² + y² = L² differentiated by L: x·dx + y·dy = L; by k: 0. At every time."""
    run = gr.simulate(Pendulum(), np.linspace(0, 2, 9), inputs={"u": 1.0}, sensitivities=["L", "k"], rtol=1e-8)
    left = run.x * run["d(x)"] + run.y * run["d(y)"]
    assert np.abs(left.sel(parameter="L") - 6.25).max() < 1e-9
    assert np.abs(left.sel(parameter="k")).max() < 1e-9


def test_blow_up_keeps_the_partial_trajectory() -> None:
    class Blow(gr.Model):
        x = gr.Variable(1.0)
        equations = [der(x) == x**2]

    with pytest.raises(SimulationError, match="blows up") as caught:
        gr.simulate(Blow(), np.linspace(0, 2, 21))
    partial = caught.value.partial
    assert 9 <= partial.sizes["time"] <= 11
    kept = gr.simulate(Blow(), np.linspace(0, 2, 21), strict=False)
    assert kept.attrs["completed"] == 0 and "t = 1" in kept.attrs["status"]


def test_undefined_right_hand_side_is_named() -> None:
    class Root(gr.Model):
        x = gr.Variable(1.0)
        equations = [der(x) == -1 - 0.001 * gr.sqrt(x)]

    with pytest.raises(SimulationError, match=r"der\(x\)"):
        gr.simulate(Root(), [0, 2])


def test_too_many_steps() -> None:
    with pytest.raises(SimulationError, match="max_steps"):
        gr.simulate(Decay(), [0, 100], max_steps=5, rtol=1e-9)


def test_stiff_models_switch_to_the_implicit_method() -> None:
    class Stiff(gr.Model):
        x = gr.Variable(0.0)
        equations = [der(x) == -3000 * (x - gr.cos(gr.time))]

    run = gr.simulate(Stiff(), [0, 10])
    assert run.attrs["solver"] == "implicit"
    assert float(run.x[-1]) == pytest.approx(np.cos(10) + np.sin(-10) / -3000 * -1, abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"times": [0, 1, 1]}, DataError, "must increase"),
        ({"times": [0, np.nan]}, DataError, "nan at position 1"),
        ({"times": 5.0}, DataError, "one-dimensional"),
        ({"times": []}, DataError, "one-dimensional"),
        ({"times": ["a", "b"]}, DataError, "must be numbers"),
        ({"parameters": {"b": 1.0}}, ModelError, "no parameter 'b'"),
        ({"parameters": {"a": np.nan}}, ModelError, "finite"),
        ({"parameters": {"a": "big"}}, ModelError, "needs a number"),
        ({"start": {"v": 1.0}}, ModelError, "not a variable"),
        ({"start": {"x": np.inf}}, DataError, "finite"),
        ({"start": "rest"}, DataError, "'steady'"),
        ({"inputs": {"w": 1.0}}, DataError, "not an input"),
        ({"method": "fast"}, DataError, "must be one of"),
        ({"rtol": 0.0}, DataError, "between 0 and 1"),
        ({"atol": -1.0}, DataError, "positive"),
        ({"atol": {"q": 1e-6}}, DataError, "not a variable"),
        ({"step": 0.1}, DataError, "frozen"),
        ({"method": "frozen", "step": -1.0}, DataError, "positive"),
        ({"sensitivities": ["q"]}, ModelError, "no parameter or start called 'q'"),
        ({"sensitivities": ["a", "a"]}, ModelError, "more than once"),
        ({"sensitivities": "a"}, ModelError, "list of names"),
    ],
)
def test_mistakes_in_the_call(arguments, error, words) -> None:
    arguments = {"times": [0.0, 1.0], **arguments}
    with pytest.raises(error, match=words):
        gr.simulate(Decay(), **arguments)


def test_class_instead_of_instance() -> None:
    with pytest.raises(gr.GrisailleError, match=r"Make an instance: Decay\("):
        gr.simulate(Decay, [0, 1])
    with pytest.raises(gr.GrisailleError, match=r"give an instance of a gr\.Model subclass"):
        gr.simulate("Decay", [0, 1])


def test_missing_input_is_named() -> None:
    with pytest.raises(DataError, match="Input 'u' has no values"):
        gr.simulate(Pendulum(), [0, 1])


def test_differentiated_input_must_be_smooth() -> None:
    class Follow(gr.Model):
        u = gr.Input()
        x, v = gr.Variable(), gr.Variable()
        equations = [x == u, der(x) == v]

    times = np.linspace(0, 1, 11)
    with pytest.raises(DataError, match="differentiates the input 'u' once"):
        gr.simulate(Follow(), times, inputs={"u": times**2})
    run = gr.simulate(Follow(), times, inputs={"u": lambda t: t**2})
    assert np.abs(run.v - 2 * times).max() < 1e-9


def test_implicit_unknowns_as_exact_as_rounding_allows() -> None:
    """b is a small difference of large unknowns: at rtol 1e-12 its own tolerance is below the rounding of a."""

    class Difference(gr.Model):
        x, a, b = gr.Variable(1.0), gr.Variable(), gr.Variable()
        equations = [
            der(x) == -b,
            a + 0.1 * gr.sin(a) == 1e5 * (1 + x),
            b + 0.1 * gr.sin(b) == a + 0.1 * gr.sin(a) - 1e5 * (1 + x) + x,
        ]

    run = gr.simulate(Difference(), [0.0, 1.0], rtol=1e-12, method="explicit", max_steps=2000)
    assert float(run.x[-1]) == pytest.approx(0.40079950869443, abs=1e-10)


def test_states_below_their_tolerance_are_integrated_in_units_of_their_own_size():
    def oscillator(size, nominal=None):
        class VanDerPol(gr.Model):
            x, v = gr.Variable(2.0 * size, nominal=nominal), gr.Variable(0.0, nominal=nominal)
            equations = [der(x) == v, der(v) == 100 * (1 - (x / size) ** 2) * v - x]

        return VanDerPol()

    t = np.linspace(0.0, 100.0, 11)
    said = gr.simulate(oscillator(1e-9), t, atol=1e-9).attrs["status"]  # a tolerance that was given stays
    assert "x, v are hardly larger than the absolute tolerance" in said
    usual = gr.simulate(oscillator(1.0), t).x.values
    for size, nominal in ((1.0, None), (1e-9, 1e-9), (1e-9, None), (1e-15, None), (1e9, None)):
        run = gr.simulate(oscillator(size, nominal), t)
        assert run.attrs["status"].endswith("steps")
        assert np.abs(run.x.values / size - usual).max() < 1e-4
    assert gr.simulate(oscillator(1e-9), t, atol=1e-15).attrs["status"].endswith("steps")


def test_heat_that_has_not_come_so_far_yet_is_not_named():
    class Rod(gr.Model):
        T = gr.Variable(start=0.0, size=20)

        def equations(self):
            ends = [1.0, *self.T, 0.0]
            return [der(self.T[k]) == ends[k] - 2 * self.T[k] + ends[k + 2] for k in range(20)]

    run = gr.simulate(Rod(), [0.0, 0.1])
    assert 0 < float(run["T[19]"][-1]) < 1e-20 and run.attrs["status"].endswith("steps")
