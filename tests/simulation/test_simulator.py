"""``gr.Simulator``: the numbers of ``gr.simulate``, whatever was simulated before; settings that are remembered."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.simulation import plan_cache

TIMES = np.linspace(0.0, 4.0, 9)
WAVE = np.sin(TIMES)


class Tank(gr.Model):
    """A tank with an outflow of its own formula."""

    k = gr.Parameter(0.5)
    twice = gr.Parameter(2 * k)
    u = gr.Input(default=0.0)
    h = gr.Variable(1.0, unit="m")
    y = gr.Output(h)
    equations = [der(h) == u - twice * h**1.5]


class Pair(gr.Model):
    """A sum that a start has to meet."""

    a = gr.Parameter(1.0)
    x = gr.Variable(start=a)
    z = gr.Variable()
    y = gr.Output(x)
    equations = [der(x) == -z, z + z**3 == a * x]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Each test begins with nothing remembered."""
    plan_cache._known.clear()
    yield
    plan_cache._known.clear()


@pytest.mark.parametrize("model", [Tank(), Pair()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("method", ["auto", "frozen"])
def test_calls_in_any_order_give_what_simulate_gives(model: gr.Model, method: str) -> None:
    name = "k" if isinstance(model, Tank) else "a"
    variable = "h" if isinstance(model, Tank) else "x"
    simulator = gr.Simulator(model, TIMES, sensitivities=[name], method=method)
    calls = [({name: 0.3}, None), ({}, None), ({name: 0.6}, {variable: 0.7}), ({name: 0.3}, None)]
    answers = [simulator(values, start) for values, start in calls]
    for (values, start), answer in zip(calls, answers, strict=True):
        plan_cache._known.clear()
        alone = gr.simulate(model, TIMES, None, values, start, sensitivities=[name], method=method)
        assert answer.identical(alone)
        numbers = simulator.values(values, start)
        assert set(numbers) == set(alone.data_vars)
        assert all(np.array_equal(numbers[n], alone[n]) for n in numbers)


def test_what_is_given_to_the_simulator_holds_until_a_call_gives_another() -> None:
    simulator = gr.Simulator(Tank(), TIMES, {"u": WAVE}, {"k": 0.2}, {"h": 2.0})
    expected = gr.simulate(Tank(), TIMES, {"u": WAVE}, {"k": 0.2, "twice": 0.1}, {"h": 2.0})
    assert np.array_equal(simulator({"twice": 0.1})["h"], expected["h"])
    assert simulator(start={"h": 1.5})["h"].values[0] == 1.5
    assert simulator()["h"].values[0] == 2.0
    steady = gr.Simulator(Tank(), TIMES, {"u": 1.0})(start="steady")["h"]
    assert steady.values == pytest.approx(np.ones(len(TIMES)), rel=1e-9)


def test_arrays_changed_afterwards_change_nothing() -> None:
    wave, times = WAVE.copy(), TIMES.copy()
    simulator = gr.Simulator(Tank(), times, {"u": wave})
    wave[:], times[:] = 5.0, times[::-1].copy()
    assert np.array_equal(simulator()["h"], gr.simulate(Tank(), TIMES, {"u": WAVE})["h"])
    answer = simulator()
    answer["h"][:], answer["h"].attrs["units"] = 0.0, "mm"
    assert simulator()["h"].values[0] == 1.0
    assert simulator()["h"].attrs["units"] == "m"


def test_simulate_remembers_numbers_but_not_arrays_or_functions() -> None:
    model, wave, level = Tank(), WAVE.copy(), [0.5]

    def held(t: np.ndarray) -> np.ndarray:
        return np.full_like(t, level[0])

    first = [gr.simulate(model, TIMES, {"u": u})["h"].values for u in (wave, held)]
    wave += 1.0
    level[0] = 2.0
    second = [gr.simulate(model, TIMES, {"u": u})["h"].values for u in (wave, held)]
    plan_cache._known.clear()
    fresh = [gr.simulate(Tank(), TIMES, {"u": u})["h"].values for u in (WAVE + 1.0, 2.0)]
    assert np.array_equal(second[0], fresh[0])
    assert second[1] == pytest.approx(fresh[1], rel=1e-6)
    assert not np.allclose(first, second)


def test_remembered_settings_serve_the_same_model_only() -> None:
    a, b = Tank(), Tank(k=0.1)
    for _ in range(2):
        assert gr.simulate(a, TIMES)["h"].values[-1] < gr.simulate(b, TIMES)["h"].values[-1]


def test_a_run_that_stops_is_told_with_what_there_is() -> None:
    class Bursts(gr.Model):
        a = gr.Parameter(1.0)
        x = gr.Variable(1.0)
        equations = [der(x) == a * x**2]

    with pytest.raises(gr.SimulationError, match="The simulation of Bursts stopped"):
        gr.Simulator(Bursts(), TIMES).values()
    lenient = gr.Simulator(Bursts(), TIMES, strict=False)
    assert 0 < len(lenient()["time"]) < len(TIMES)
    assert len(lenient({"a": 0.1})["time"]) == len(TIMES)
    assert len(lenient.values()["x"]) == len(lenient()["time"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gr.Simulator(Tank, TIMES), "Make an instance: Tank"),
        (lambda: gr.Simulator(Tank(), TIMES, methd="auto"), "has no argument 'methd'"),
        (lambda: gr.Simulator(Tank(), TIMES, method="euler"), "it must be one of"),
        (lambda: gr.Simulator(Tank(), TIMES, {"v": 1.0})(), "not an input of the model"),
        (lambda: gr.Simulator(Tank(), TIMES)({"c": 1.0}), "has no parameter 'c'"),
        (lambda: gr.Simulator(Tank(), TIMES)({"k": "x"}), "needs a number"),
        (lambda: gr.Simulator(Tank(), TIMES)(0.5), "takes a dict"),
        (lambda: gr.Simulator(Tank(), TIMES)({"k": 0.5}, begin=1), "has no argument 'begin'"),
        (lambda: gr.Simulator(Tank(), TIMES)(start={"q": 1.0}), "start= names 'q'"),
    ],
)
def test_mistakes_are_named(call: object, words: str) -> None:
    with pytest.raises(gr.GrisailleError, match=words):
        call()  # type: ignore[operator]
