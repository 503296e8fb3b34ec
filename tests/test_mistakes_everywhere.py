"""Deliberate mistakes in structure, starts and calls, and inputs that are legal but rare.

Every mistake is answered by one of our own errors, in the user's names, with what to do next.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from model.examples import Capacitor, Ground, Lowpass, Resistor, VoltageSource
from zoo.mechanics import Pendulum

import grisaille as gr
from grisaille import der
from grisaille.errors import DataError, GrisailleError, ModelError, SimulationError, StructureError

TIMES = np.linspace(0.0, 1.0, 5)


def run(model, times=TIMES, **arguments):
    return gr.simulate(model, times, **arguments)


def plant(*equations, **members):
    return type("Plant", (gr.Model,), {**members, "equations": list(equations)})()


class Decay(gr.Model):
    """x' = −a x + u."""

    a = gr.Parameter(0.7, "1/s")
    x = gr.Variable(2.0, "m")
    u = gr.Input("m/s", default=0.0)
    y = gr.Output(3 * x, unit="m")
    equations = [der(x) == -a * x + u]


class Chain(gr.Model):
    """Vectors of everything."""

    k = gr.Parameter([1.0, 2.0], size=2)
    u = gr.Input(size=2, default=0.0)
    x = gr.Variable([1.0, 2.0], size=2)
    equations = [der(x) == -k * x + u]


class Driven(gr.Model):
    inner = Decay(u=2 * gr.time)


# --- what the equations say ------------------------------------------------------------------------------------------


def parameters_only():
    k, x = gr.Parameter(1.0), gr.Variable(1.0)
    return plant(der(x) == -x, k == 2, k=k, x=x)


def missing_equation():
    x, y = gr.Variable(1.0), gr.Variable()
    return plant(der(x) == -y, x=x, y=y)


def output_without_equation():
    x = gr.Variable(1.0)
    return plant(der(x) == -x, x=x, y=gr.Output())


def same_equation_twice():
    x, y = gr.Variable(), gr.Variable()
    return plant(x + y == 1, 2 * x + 2 * y == 2, x=x, y=y)


def contradiction():
    x, y = gr.Variable(), gr.Variable()
    return plant(x + y == 1, 2 * x + 2 * y == 3, x=x, y=y)


def constant_and_moving():
    x = gr.Variable(1.0)
    return plant(der(x) == -x, x == 1, x=x)


def without_ground():
    class Circuit(gr.Model):
        s, r, c = VoltageSource(), Resistor(R=1.0), Capacitor(C=1.0)
        equations = [gr.connect(s.p, r.p), gr.connect(r.n, c.p), gr.connect(c.n, s.n)]

    return Circuit()


def with_two_grounds():
    class Circuit(gr.Model):
        s, r, g, h = VoltageSource(), Resistor(R=1.0), Ground(), Ground()
        equations = [gr.connect(s.p, r.p), gr.connect(r.n, s.n, g.p, h.p)]

    return Circuit()


def sources_in_parallel():
    class Circuit(gr.Model):
        a, b, g = VoltageSource(), VoltageSource(), Ground()
        equations = [gr.connect(a.p, b.p), gr.connect(a.n, b.n, g.p)]

    return Circuit()


def part_without_its_connector():
    return Lowpass().replace({"r": Ground()})


STRUCTURES = [
    (parameters_only, "2 equations for 1 unknown.*\n.*Overdetermined: 1 equation .*'k == 2'.*no unknown is in them"),
    (missing_equation, "1 equation for 2 unknowns.*\n.*Underdetermined.*{x, y}.*Add one equation"),
    (output_without_equation, "{y} occur in no equation"),
    (same_equation_twice, r"'x \+ y == 1', '2\*x \+ 2\*y == 2' follow from each other"),
    (contradiction, "contradict each other"),
    (constant_and_moving, r"'der\(x\) == -x' can never hold"),
    (without_ground, "connect a Ground or Fixed"),
    (with_two_grounds, "Two references .* may meet at one point: remove one"),
    (sources_in_parallel, "Overdetermined"),
    (part_without_its_connector, "no connector 'r.n'"),
]


@pytest.mark.parametrize(("model", "words"), STRUCTURES, ids=[m.__name__ for m, _ in STRUCTURES])
def test_wrong_structures(model, words) -> None:
    with pytest.raises((StructureError, ModelError), match=words):
        gr.analyze(model())


# --- starts ----------------------------------------------------------------------------------------------------------


def squared():
    x, z = gr.Variable(1.0), gr.Variable()
    return plant(der(x) == -x, z == x**2 + 1, x=x, z=z)


def tied(**kinds):
    x, z = gr.Variable(1.0, **kinds), gr.Variable(2.0, **kinds)
    return plant(der(x) == -x, z == x, x=x, z=z)


def led_by_input():
    u, x, z = gr.Input(default=1.0), gr.Variable(1.0), gr.Variable()
    return plant(der(x) == -x, z == u, u=u, x=x, z=z)


def single(equation, start, **members):
    x = gr.Variable(start)
    return plant(equation(x), x=x, **members)


def circle():
    x = gr.Variable()
    y = gr.Variable(start=2 * x)
    model = plant(der(x) == 1, der(y) == 1, x=x, y=y)
    return model.replace(start={"x": 3 * model.y})


def no_root():
    x, z = gr.Variable(1.0), gr.Variable()
    return plant(der(x) == -x, z**2 + x**2 + 1 == 0, x=x, z=z)


def singular_at_one():
    k, x, y = gr.Parameter(1.0), gr.Variable(1.0), gr.Variable()
    return plant(x + y == 1, k * x + y == 2, k=k, x=x, y=y)


def start_with_a_root():
    k = gr.Parameter(-1.0)
    return single(lambda x: der(x) == 1, gr.sqrt(k), k=k)


PENDULUM = {"inputs": {"u": 0.0}}
STARTS = [
    (squared, {"start": {"z": 0.0}}, "'start of z = 0' keeps a residual of 1"),
    (
        squared,
        {"start": {"z": 2.0, "x": 3.0}},
        "fixed starts .* contradict each other.*Drop one of the fixed starts",
    ),
    (lambda: tied(fixed=True), {}, "fixed starts .* contradict each other"),
    (led_by_input, {"start": {"z": 5.0}}, "start of z = 5 is fixed, but nothing can change it: .* and is 1"),
    (lambda: single(lambda x: x == 5, 2.0), {"start": {"x": 2.0}}, "nothing can change it.* and is 5"),
    (Pendulum, {**PENDULUM, "start": {"y": -6.25, "vy": 1.0}}, r"contradict .*d/dt \[x\*\*2 \+ y\*\*2 == L\*\*2\]"),
    (lambda: single(lambda x: der(x) == 1, 1.0), {"start": "steady"}, r"No steady state was found.*der\(x\) == 0"),
    (no_root, {}, r"No consistent start.*'z\*\*2 \+ x\*\*2 \+ 1 == 0' keeps a residual of 1"),
    (circle, {}, "x → y → x are defined by each other in a circle"),
    (lambda: single(lambda x: der(x) == 1, gr.time), {}, "The start of 'x' contains time"),
    (start_with_a_root, {}, "The start of 'x' is nan"),
    (singular_at_one, {}, "x, y have no finite value at the start: a division by zero"),
    (
        Pendulum,
        {**PENDULUM, "sensitivities": ["start(y)"]},
        r"start of y cannot be varied.*'x\*\*2 \+ y\*\*2 == L\*\*2'",
    ),
    (tied, {"sensitivities": ["start(x)", "start(z)"]}, "start of x and z cannot be varied.*Differentiate by fewer"),
    (Decay, {"start": "steady", "sensitivities": ["start(x)"]}, r"tied by 'der\(x\) == 0 \(steady state\)'"),
]


@pytest.mark.parametrize(("model", "arguments", "words"), STARTS, ids=[w[:40] for _, _, w in STARTS])
def test_impossible_starts(model, arguments, words) -> None:
    with pytest.raises((StructureError, ModelError), match=words):
        run(model(), **arguments)


# --- the call --------------------------------------------------------------------------------------------------------

DATES = pd.date_range("2024-01-01", periods=5, freq="s")
CALLS = [
    ({"times": DATES}, DataError, r"times holds dates.*total_seconds"),
    ({"times": DATES - DATES[0]}, DataError, "times holds dates or time spans"),
    ({"times": ["0", "1"]}, DataError, "times must be numbers"),
    ({"times": [0, 1j]}, DataError, "times must be real numbers"),
    ({"times": [False, True]}, DataError, "times must be numbers"),
    ({"inputs": 3.0}, DataError, "inputs= takes a dict"),
    ({"inputs": "u"}, DataError, "inputs= takes a dict"),
    ({"inputs": {"u": "3"}}, DataError, "Input 'u' is '3'"),
    ({"inputs": {"u": np.zeros((5, 1))}}, DataError, r"Input 'u' has the shape \(5, 1\)"),
    ({"inputs": {"u": (1.0, 2.0)}}, DataError, r"a pair is \(times, values\), each a list"),
    ({"inputs": {"u": ([0.5], [2.0])}}, DataError, "known from 0.5"),
    ({"inputs": {"u": ([], [])}}, DataError, "0 values for 0 times"),
    ({"inputs": {"u": pd.Series(np.ones(5), index=DATES)}}, DataError, "dates are not"),
    ({"inputs": {"u": xr.DataArray(np.ones(5), {"time": TIMES + 5})}}, DataError, "known from 5"),
    ({"inputs": {"u": lambda t: 1 / 0}}, DataError, "function given for input 'u' failed.*ZeroDivisionError"),
    ({"inputs": {"u": lambda: 1.0}}, DataError, "failed .* It takes the time and gives one number"),
    ({"inputs": {"u": lambda t: np.array([t])}}, DataError, "give one number"),
    ({"inputs": {"u": lambda t: 1j}}, DataError, "give one number"),
    ({"inputs": {"u": lambda t: np.nan}}, DataError, "give a finite number"),
    ({"inputs": {"u": lambda t: np.random.default_rng().normal()}}, DataError, "jumps at every instant"),
    ({"inputs": {3: 1.0}}, ModelError, "inputs= names 3; names are texts"),
    ({"inputs": {Pendulum.u: 1.0}}, ModelError, "`u`, which is not a member of Decay"),
    ({"parameters": [1.0]}, DataError, "parameters= takes a dict"),
    ({"parameters": {"a": "3"}}, ModelError, "Parameter 'a' needs a number, not '3'"),
    ({"parameters": {"a": True}}, ModelError, "needs a number, not True"),
    ({"start": {"x": None}}, DataError, "start= for 'x' is None; give a finite number"),
    ({"start": {"x": [1, 2]}}, DataError, r"start= for 'x' is \[1, 2\]"),
    ({"start": [1.0]}, DataError, "start= takes a dict"),
    ({"start": {"u": 1.0}}, ModelError, "not a variable of Decay but its input"),
    ({"rtol": "tight"}, DataError, "rtol is 'tight'; give a number between 0 and 1"),
    ({"atol": [1e-6]}, DataError, r"atol is \[1e-06\]; give a positive number"),
    ({"atol": {"x": -1.0}}, DataError, "atol for 'x' is -1.0; give a positive number"),
    ({"max_steps": "many"}, DataError, "max_steps is 'many'; give a whole number"),
    ({"max_steps": 1.5}, DataError, "max_steps is 1.5; give a whole number"),
    ({"max_step": "long"}, DataError, "max_step is 'long'"),
    ({"method": "frozen", "step": "fine"}, DataError, "step is 'fine'"),
    ({"sensitivities": 5}, ModelError, r"sensitivities= takes a list of names: \[5\]"),
    ({"sensitivities": ["x"]}, ModelError, r"'x' is a variable; its start value is 'start\(x\)'"),
    ({"sensitivities": ["u"]}, ModelError, "'u' is an input"),
    ({"sensitivities": [2 * Decay.a]}, ModelError, r"`2\*a`, which is not a member"),
    ({"sensitivities": [Resistor().R]}, ModelError, "`R`, which is not a member of Decay"),
]


@pytest.mark.parametrize(("arguments", "error", "words"), CALLS, ids=[w[:40] for _, _, w in CALLS])
def test_mistakes_in_the_call(arguments, error, words) -> None:
    with pytest.raises(error, match=words):
        run(Decay(), **arguments)


def test_compiled_is_yes_no_or_none() -> None:
    with pytest.raises(GrisailleError, match="compiled is 'yes'; give True or False or None"):
        gr.simulate(Decay(), TIMES, compiled="yes")


@pytest.mark.parametrize("call", [gr.simulate, gr.Simulator, gr.sensitivity])
def test_interpreted_runs_are_refused_in_one_sentence(call) -> None:
    given = gr.Experiment(TIMES, outputs={"y": np.zeros(len(TIMES))}) if call is gr.sensitivity else TIMES
    call(Decay(), given, compiled=True)
    with pytest.raises(gr.CompilationError, match=r'leave compiled=False out.*pip install "grisaille\[compiler\]"'):
        call(Decay(), given, compiled=False)


def test_other_models_in_the_call() -> None:
    for model, arguments, words in [
        (Driven(), {"inputs": {"inner.u": 1.0}}, "'inner.u', which is driven inside the model"),
        (Chain(), {"inputs": {"u": [5.0, 6.0]}}, r"a vector of shape \(2,\) needs"),
        (Chain(), {"parameters": {"k": [1.0, 2.0, 3.0]}}, r"shape \(3,\), the vector has shape \(2,\)"),
        (Chain(), {"parameters": {"k": 1.0, "k[0]": 2.0}}, r"gives 'k\[0\]' more than once"),
    ]:
        with pytest.raises(GrisailleError, match=words):
            run(model, **arguments)


@pytest.mark.parametrize(("order", "hold"), [(1, "zoh"), (2, "foh"), (4, "spline")])
def test_differentiated_samples_are_refused_with_the_next_smoother_way(order, hold) -> None:
    u, x = gr.Input(), gr.Variable(1.0)
    model = plant(der(x) == -x, u=u, x=x, y=gr.Output(der(u, order)))
    with pytest.raises(DataError, match=f"differentiates the input 'u' .*'{hold}'") as caught:
        run(model, inputs={"u": TIMES**2}, hold=hold)
    assert ("hold={'u': 'spline'}" in str(caught.value)) == (order < 4)


# --- runs that end badly ---------------------------------------------------------------------------------------------


def test_division_by_a_parameter_that_is_zero() -> None:
    m, x = gr.Parameter(0.0), gr.Variable(1.0)
    with pytest.raises(SimulationError, match=r"der\(x\) became infinite .*also by a parameter that is zero"):
        run(plant(m * der(x) == -x, m=m, x=x))


def test_lost_root_is_named_in_a_static_model() -> None:
    z = gr.Variable(1.0)
    model = plant(z**2 == 1 - gr.time, z=z)
    with pytest.raises(SimulationError, match=r"z could not be followed at t = 2: .* from z = 0.7071 comes to an end"):
        run(model, [0.0, 0.5, 2.0])
    assert run(model, [0.0, 0.5, 2.0], strict=False).sizes["time"] == 2


def test_undefined_outputs_are_said_in_the_status() -> None:
    x = gr.Variable(1.0)
    result = run(plant(der(x) == -1, x=x, y=gr.Output(gr.log(x))), [0.0, 0.5, 2.0])
    assert result.attrs["completed"] == 1
    assert "but y is infinite or undefined, first at t = 2" in result.attrs["status"]


# --- legal but rare --------------------------------------------------------------------------------------------------


def test_start_formulas_follow_demanded_starts() -> None:
    """``start={"x": 5}`` and ``model.replace(start={"x": 5})`` mean the same for a start that is a formula of x."""
    x = gr.Variable(1.0)
    y = gr.Variable(start=2 * x)
    model = plant(der(x) == -x, der(y) == -y, x=x, y=y)
    given = run(model, start={"x": 5.0}, sensitivities=["start(x)"])
    assert float(given.y[0]) == float(run(model.replace(start={"x": 5.0})).y[0]) == 10.0
    assert float(given["d(y)"][0, 0]) == 2.0


def test_start_can_be_demanded_of_quantities_and_outputs() -> None:
    """The velocity of a second-order equation has no variable of its own."""
    x = gr.Variable(3.0)
    model = plant(der(x, 2) == -x, x=x, v=der(x), y=gr.Output(2 * x))
    result = run(model, start={"v": 2.0, "y": 8.0}, rtol=1e-9)
    assert np.allclose(result.x, 4 * np.cos(TIMES) + 2 * np.sin(TIMES), atol=1e-7)


def test_all_free_starts_of_a_constrained_model() -> None:
    result = run(Pendulum(), inputs={"u": 0.0}, sensitivities=["start(*)", "k"])
    assert list(result.parameter.values) == ["start(x)", "start(vx)", "k"]


def test_vectors_by_their_name() -> None:
    values = np.column_stack([TIMES, 2 * TIMES])
    whole = run(Chain(), inputs={"u": values}, parameters={"k": [3.0, 4.0]}, start={"x": 5.0}, hold={"u": "foh"})
    single = run(
        Chain(),
        inputs={"u[0]": values[:, 0], "u[1]": values[:, 1]},
        parameters={"k[0]": 3.0, "k[1]": 4.0},
        start={"x[0]": 5.0, "x[1]": 5.0},
        hold="foh",
    )
    assert whole.equals(single)
    paired = run(Chain(), inputs={"u": (TIMES, values)}, parameters={"k[*]": 1.0}, sensitivities=["k", "start(x)"])
    assert list(paired.parameter.values) == ["k[0]", "k[1]", "start(x[0])", "start(x[1])"]
    function = run(Chain(), inputs={"u": lambda t: [t, 2 * t]}, hold="foh", rtol=1e-9)
    assert np.allclose(function["u[1]"], 2 * TIMES, atol=1e-10)


def test_members_stand_for_their_names() -> None:
    model = Decay()
    by_member = run(
        model, inputs={model.u: 1.0}, parameters={Decay.a: 2.0}, start={model.x: 3.0}, sensitivities=[model.a]
    )
    by_text = run(model, inputs={"u": 1.0}, parameters={"a": 2.0}, start={"x": 3.0}, sensitivities=["a"])
    assert by_member.equals(by_text)
    assert run(model.replace({"a": 2.0}), inputs={model.u: 1.0}, start={model.x: 3.0}).x.equals(by_text.x)
    lowpass = Lowpass()
    result = run(lowpass, inputs={"source.u": 1.0}, sensitivities=[lowpass.r.R, Lowpass.c.C])
    assert list(result.parameter.values) == ["r.R", "c.C"]


@pytest.mark.parametrize("times", [range(3), (0, 1, 2), pd.Index([0.0, 1.0, 2.0]), xr.DataArray([0.0, 1.0, 2.0])])
def test_times_in_any_dress(times) -> None:
    assert np.allclose(run(Decay(), times).x, 2 * np.exp(-0.7 * np.arange(3)), rtol=1e-5)


def test_inputs_in_any_dress() -> None:
    values = np.sin(TIMES)
    plain = run(Decay(), inputs={"u": values})
    for inputs in (
        pd.DataFrame({"u": values}, index=TIMES),
        xr.Dataset({"u": ("time", values)}, {"time": TIMES}),
        {"u": xr.DataArray(values, {"time": TIMES})},
        {"u": pd.Series(values, index=TIMES)},
        {"u": (TIMES, values)},
    ):
        assert run(Decay(), inputs=inputs).equals(plain)
    assert run(Decay(), inputs={"u": np.array(2.0)}).equals(run(Decay(), inputs={"u": 2.0}))


def test_a_run_goes_on_from_the_end_of_another() -> None:
    first = run(Decay(), [0.0, 0.5], rtol=1e-9)
    second = run(Decay(), [0.5, 1.0], start={"x": first.x[-1]}, rtol=1e-9)
    assert float(second.x[-1]) == pytest.approx(2 * np.exp(-0.7), rel=1e-8)


def test_functions_of_time_long_after_zero() -> None:
    """Seconds since 1970 leave seven digits for the fraction of a second."""
    epoch, times = 1.6e9, np.linspace(0, 5, 6)
    late = run(Decay(), epoch + times, inputs={"u": lambda t: np.sin(t - epoch)})
    early = run(Decay(), times, inputs={"u": np.sin})
    assert np.abs(late.x.values - early.x.values).max() < 1e-5


def test_models_that_differ_in_one_number_do_not_share_results() -> None:
    def ends(make, numbers):
        return [float(run(make(n), rtol=1e-9).y[-1]) for n in numbers]

    def in_equation(n):
        x = gr.Variable(1.0)
        return plant(der(x) == -n * x, x=x, y=gr.Output(x))

    def in_table(n):
        x = gr.Variable(1.0)
        return plant(der(x) == -gr.table(x, [0, 1, 2], [0, n, 4]), x=x, y=gr.Output(x))

    def in_quantity(n):
        x = gr.Variable(1.0)
        q = n * x
        return plant(der(x) == -x, x=x, q=q, y=gr.Output(q))

    assert ends(in_equation, [1, 2]) == pytest.approx([np.exp(-1), np.exp(-2)], rel=1e-7)
    assert ends(in_table, [1, 2]) == pytest.approx([np.exp(-1), np.exp(-2)], rel=1e-7)
    assert ends(in_quantity, [2, 3]) == pytest.approx([2 * np.exp(-1), 3 * np.exp(-1)], rel=1e-7)


def test_results_survive_netcdf(tmp_path) -> None:
    result = run(Chain(), sensitivities=["k"])
    result.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as read:
        assert read.identical(result)


def test_long_and_deep_formulas() -> None:
    x = gr.Variable(1.0)
    deep = x
    for _ in range(5000):
        deep = gr.sin(deep)
    assert float(run(plant(der(x) == -sum([1e-4 * x] * 10_000), x=x), rtol=1e-9).x[-1]) == pytest.approx(np.exp(-1))
    y = gr.Variable(1.0)
    assert run(plant(der(y) == -gr.sin(gr.sin(y)), y=y)).attrs["completed"] == 1
    assert run(plant(der(x) == -deep, x=x)).attrs["completed"] == 1
