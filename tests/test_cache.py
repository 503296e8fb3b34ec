"""What is kept is made once, by key, and does not hold up what is made beside it."""

from __future__ import annotations

import copy
import pickle
import threading

import casadi as ca
import numpy as np
import pytest

import grisaille as gr
from grisaille.cache import Cache, LastValues
from grisaille.demo import Pendulum, record


def test_the_least_recently_used_is_forgotten():
    cache: Cache[str] = Cache(limit=2)
    made: list[str] = []
    for key in "abacab":
        assert cache.get(key, lambda key=key: made.append(key) or key) == key
    assert made == ["a", "b", "c", "b"] and cache.made == 4 and len(cache) == 2
    assert cache.peek("a") == "a" and cache.peek("c") is None


def test_threads_that_ask_for_one_key_make_it_once():
    cache: Cache[int] = Cache()
    made: list[int] = []
    entered, leave = threading.Event(), threading.Event()

    def make() -> int:
        entered.set()
        leave.wait(10)
        made.append(1)
        return len(made)

    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(cache.get("key", make))) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert entered.wait(10)
    leave.set()
    for thread in threads:
        thread.join()
    assert made == [1] and answers == [1, 1, 1]


def test_different_keys_are_made_at_the_same_time():
    """Each waits for all others to have begun, which none could if one held the others up."""
    cache: Cache[int] = Cache()
    together = threading.Barrier(4, timeout=10)
    threads = [threading.Thread(target=lambda k=k: cache.get(k, together.wait)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 4 and not together.broken


def test_what_is_being_made_is_not_forgotten():
    cache: Cache[int] = Cache(limit=1)
    assert cache.get("outer", lambda: cache.get("inner", lambda: 1) + 1) == 2
    assert cache.peek("outer") == 2


def test_errors_are_raised_and_not_kept():
    cache: Cache[int] = Cache()
    with pytest.raises(ZeroDivisionError):
        cache.get("key", lambda: 1 // 0)
    assert len(cache) == 0 and cache.get("key", lambda: 3) == 3


def test_of_each_kind_the_last_value_is_kept():
    last = LastValues()
    assert last.get("start", 1, lambda: "a") == "a" == last.get("start", 1, lambda: "b")
    assert last.get("grid", 1, lambda: "c") == "c"
    assert last.get("start", 2, lambda: "d") == "d" and last.get("start", 1, lambda: "e") == "e"


def test_copies_in_other_processes_begin_empty():
    cache: Cache[int] = Cache(limit=7)
    cache.get("key", lambda: 1)
    for other in (pickle.loads(pickle.dumps(cache)), copy.deepcopy(cache)):
        assert other.limit == 7 and len(other) == 0


class Tank(gr.Model):
    """A tank that runs out through a narrow pipe, rained into."""

    k = gr.Parameter(0.8, bounds=(0.1, 5.0))
    h = gr.Variable(1.5)
    u = gr.Input()
    rain = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.2)
    y = gr.Output(h, noise=0.02)
    equations = [gr.der(h) == u - k * gr.sqrt(h) + rain]


class Drizzle(Tank):
    """The same in rain without memory."""

    rain = gr.Disturbance(gr.spectra.white(), scale=0.2)


class Showers(gr.Model):
    """Two rains without memory that come together, as far as a parameter says."""

    k = gr.Parameter(0.8, bounds=(0.1, 5.0))
    together = gr.Parameter(0.5)
    h = gr.Variable(1.5)
    u = gr.Input()
    rain = gr.Disturbance(gr.spectra.white(), scale=0.2, size=2, correlation=[[1, together], [together, 1]])
    y = gr.Output(h, noise=0.02)
    equations = [gr.der(h) == u - k * gr.sqrt(h) + rain[0] - rain[1]]


class Straight(gr.Model):
    """Linear in its state."""

    k = gr.Parameter(0.8, bounds=(0.1, 5.0))
    h = gr.Variable(1.5)
    u = gr.Input()
    rain = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.2)
    y = gr.Output(h)
    equations = [gr.der(h) == u - k * h + rain]


class Pumped(Tank):
    """A pump runs above a level."""

    equations = [gr.der(Tank.h) == Tank.u - Tank.k * gr.where(Tank.h > 1.4, 1.2, 0.9) + Tank.rain]


class Emptied(Tank):
    """It is filled up when it runs low."""

    equations = [*Tank.equations, gr.when(Tank.h < 1.4, gr.reinit(Tank.h, 1.5))]


class Implicit(Tank):
    """The outflow is solved for by iteration."""

    q = gr.Variable()
    equations = [gr.der(Tank.h) == Tank.u - q + Tank.rain, q + 0.1 * q**3 == Tank.k * Tank.h]


TIMES = np.linspace(0.0, 3.0, 16)
DATA = gr.Experiment(TIMES, {"u": 1.0}, {"y": 1.5 - 0.05 * TIMES + 0.02 * np.cos(9 * TIMES)})
FITS = {
    "Kalman": (Tank, DATA, gr.KalmanML()),
    "output error": (Tank, DATA, gr.OutputError()),
    "simulated": (Tank, DATA, gr.SimulatedPEM(realizations=4, seed=1)),
    "simulated, white": (Drizzle, DATA, gr.SimulatedPEM(realizations=4, seed=1)),
    "simulated, correlated": (Showers, DATA, gr.SimulatedPEM(realizations=4, seed=1)),
    "linear": (Straight, DATA, gr.KalmanML()),
    "splines": (Drizzle, DATA, gr.Collocation(criterion="amle", knots=16)),
    "splines, likelihood": (Drizzle, DATA, gr.Collocation(criterion="laplace", transcription="spline")),
    "elements": (Tank, DATA, gr.Collocation(criterion="laplace", transcription="direct")),
    "jump": (Pumped, DATA, gr.KalmanML(filter="unscented")),
    "implicit": (Implicit, DATA, gr.KalmanML()),
    "events": (Emptied, DATA, gr.SimulatedPEM(realizations=4, seed=1)),
    "hidden constraints": (Pendulum, record(), gr.KalmanML()),
}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The CasADi functions that are built from now on, by name."""
    built: list[str] = []
    make = ca.Function.__init__

    def count(self: ca.Function, *arguments: object) -> None:
        if arguments and isinstance(arguments[0], str):
            built.append(arguments[0])
        make(self, *arguments)

    monkeypatch.setattr(ca.Function, "__init__", count)
    return built


def test_a_fresh_equal_model_is_simulated_without_building_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    times = np.linspace(0.0, 1.0, 11)
    first = gr.simulate(Pendulum(), times, inputs={"u": 1.0})
    built = counted(monkeypatch)
    again = gr.simulate(Pendulum(), times, inputs={"u": 1.0})
    assert not built and (again["phi"].values == first["phi"].values).all()


@pytest.mark.parametrize("case", FITS)
def test_a_second_fit_builds_no_function(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does one of an equal model: formulas are kept by content."""
    plant, data, method = FITS[case]
    priors = {"k": gr.Gamma(0.8, 20.0)} if case == "elements" else None
    first = gr.fit(plant(), data, ["k"], method, priors=priors, progress=False)
    built = counted(monkeypatch)
    again = gr.fit(plant(), data, ["k"], method, priors=priors, progress=False)
    assert not built
    assert float(again["k"]) == float(first["k"])


def test_equal_models_share_their_structure_and_others_do_not() -> None:
    one, equal, other = Pendulum(), Pendulum(), Pendulum(k=0.07)
    times = np.linspace(0.0, 1.0, 11)
    values = [gr.simulate(m, times, inputs={"u": 1.0})["phi"].values for m in (one, equal, other, one)]
    assert (values[0] == values[1]).all() and (values[0] == values[3]).all() and (values[0] != values[2]).any()
    described = Pendulum(k=gr.Parameter(0.05, "kg/m", "as written elsewhere", bounds=(0.005, 20.0)))
    assert described.fingerprint == Pendulum(k=gr.Parameter(0.05, "kg/m", bounds=(0.005, 20.0))).fingerprint
    assert described.parameters["k"].description == "as written elsewhere"
