"""Integrators that are linked to the functions of small models, and those built in one file where steps are many."""

from pathlib import Path

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, sign, where
from grisaille.cache import Cache
from grisaille.compilation import (
    PROGRAMS,
    build_shared_object,
    can_be_linked,
    compiler,
    differentiate,
    integrators,
    kernel,
    linked_kind,
)
from grisaille.compilation.schemes import all_schemes
from grisaille.compilation.warm_up import _sources, warm_up
from grisaille.structure import structure_of

TIMES = np.linspace(0.0, 8.0, 33)
FORCE = np.where(TIMES % 3.0 < 1.0, 1.0, -1.2)


class Oscillator(gr.Model):
    k, d = gr.Parameter(4.0), gr.Parameter(0.3)
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
    equations = [der(x) == v, der(v) == -k * x - d * v]


class Pendulum(gr.Model):
    """Cartesian, index 3."""

    k, m = gr.Parameter(0.4), gr.Parameter(0.3)
    x, y = gr.Variable(start=1.0), gr.Variable(start=-(3.0**0.5))
    vx, vy, tension = gr.Variable(start=0.0), gr.Variable(start=0.0), gr.Variable()
    u = gr.Input()
    equations = [
        der(x) == vx, der(y) == vy, m * der(vx) == tension * x - k * vx + u,
        m * der(vy) == tension * y - k * vy - m * 9.81, x**2 + y**2 == 4.0,
    ]  # fmt: skip


class Tanks(gr.Model):
    """Solved by iteration, with a bend, and a signal that jumps."""

    k, m = gr.Parameter(2.0), gr.Parameter(0.3)
    a, b = gr.Variable(start=1.0), gr.Variable(start=0.5)
    q, u = gr.Variable(), gr.Input()
    equations = [der(a) == abs(u) - q, der(b) == q - m * b, q + 0.1 * q**3 == k * (a - b) + 0.1 * u]


class Friction(gr.Model):
    """A relation that is held between events."""

    k, m = gr.Parameter(1.0), gr.Parameter(0.3)
    x, v, u = gr.Variable(start=0.0), gr.Variable(start=0.0), gr.Input()
    equations = [der(x) == v, der(v) == 2.0 * u - k * x - m * sign(v)]


class Thermostat(gr.Model):
    k, m = gr.Parameter(0.5), gr.Parameter(18.0)
    T, q = gr.Variable(start=20.0), gr.Variable()
    equations = [der(T) == -k * (T - 10.0) + q, q == where(T < m, 8.0 + 0.1 * T, 0.0)]


class Ball(gr.Model):
    """Clauses of events: a state is reset, a discrete variable counts."""

    k, m = gr.Parameter(0.8), gr.Parameter(9.81)
    h, v, bounces = gr.Variable(start=1.0), gr.Variable(start=0.0), gr.Discrete(0)
    equations = [
        der(h) == v, der(v) == -m, gr.when(h < 0, gr.reinit(v, -k * gr.pre(v)), bounces == gr.pre(bounces) + 1),
    ]  # fmt: skip


class Controller(gr.Model):
    """Two clocks, of which one moves with a parameter, a clause that waits for another, and one that lasts."""

    k, m = gr.Parameter(1.1), gr.Parameter(0.17)
    x, u = gr.Variable(start=0.2), gr.Input()
    error, sum, late = gr.Discrete(0.0), gr.Discrete(0.0), gr.Discrete(0)
    equations = [
        der(x) == -1.3 * x + k * error + sum + 0.1 * u,
        gr.when(gr.clock(m), error == 1.0 - x, sum == gr.pre(sum) + m * error),
        gr.when(sum > 0.4, late == gr.pre(late) + 1).otherwise(gr.clock(1.0), late == 0),
    ]


class Wall(Pendulum):
    """A reset that hidden constraints must follow."""

    def equations(self):
        return [*super().equations, gr.when(self.x < -0.3, gr.reinit(self.vx, -0.7 * gr.pre(self.vx)))]


class Delayed(gr.Model):
    """A delayed signal and a delayed state that switches."""

    k, m = gr.Parameter(0.7), gr.Parameter(0.3)
    x, u = gr.Variable(start=0.5), gr.Input()
    equations = [der(x) == gr.delay(u, m) - k * gr.delay(x, 0.45) - 0.2 * sign(x - 0.1)]


class Chain(gr.Model):
    """More relations and states than a few, in dense equations."""

    k, m = gr.Parameter(1.0), gr.Parameter(0.3)
    v = gr.Variable(start=1.0, size=26)

    def equations(self):
        total = sum(self.v[i] for i in range(26))
        return [der(self.v[i]) == 0.2 * self.k - self.m * sign(self.v[i] - 0.03 * i) - 0.01 * total for i in range(26)]


PLAIN = (Oscillator, Pendulum, Tanks, Friction, Thermostat)
MODELS = (*PLAIN, Ball, Controller, Wall, Delayed, Chain)
LENGTH = {Ball: 3.0, Wall: 3.0, Delayed: 4.0, Chain: 3.0}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Whole files at -O0, linked integrators at -O1: no level of optimization changes a digit."""
    monkeypatch.setenv("GRISAILLE_OPTIMIZATION", "quick")
    forget(monkeypatch)


def forget(monkeypatch):
    """As in a new process."""
    monkeypatch.setattr(kernel, "_known", Cache())
    monkeypatch.setattr("grisaille.simulation.plan_cache._known", Cache(8))


def simulated(model, build, monkeypatch, **options):
    forget(monkeypatch)
    monkeypatch.setenv("GRISAILLE_BUILD", build)
    times = TIMES * (LENGTH.get(model, 8.0) / 8.0)
    inputs = {"u": FORCE} if hasattr(model, "u") else {}
    return (
        gr.simulate(model(), times, inputs, hold="zoh", **options) if inputs else gr.simulate(model(), times, **options)
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen-explicit", "frozen-implicit"])
def test_linked_integrators_give_the_digits_of_one_file(model, method, monkeypatch):
    of = ["k", "d"] if model is Oscillator else ["k", "m"]
    own = {"method": method, "sensitivities": of} | ({"step": 0.01} if method.startswith("frozen") else {})
    linked, whole = (simulated(model, build, monkeypatch, **own) for build in ("linked", "whole"))
    assert linked.identical(whole)
    assert len(linked.data_vars) > 0 and int(linked.attrs["steps"]) > 10


def test_sparse_integrators_follow_a_root_where_equations_change_as_dense_ones_do(monkeypatch):
    """A size in a preprocessor's condition left that out of what is linked."""
    dense = simulated(Tanks, "linked", monkeypatch, method="implicit")
    monkeypatch.setattr("grisaille.compilation.sparse.source.is_worth_it", lambda system: True)
    sparse = simulated(Tanks, "auto", monkeypatch, method="implicit")
    assert [sparse.attrs[n] for n in ("steps", "jacobians")] == [dense.attrs[n] for n in ("steps", "jacobians")]
    assert int(dense.attrs["jacobians"]) > int(dense.attrs["steps"])
    assert np.allclose(sparse["q"], dense["q"], rtol=1e-12, atol=0.0)


def test_a_run_goes_on_in_one_file_where_steps_are_many(monkeypatch):
    once = simulated(Pendulum, "linked", monkeypatch, rtol=1e-9)
    monkeypatch.setattr(integrators, "MANY_STEPS", 50)
    monkeypatch.setattr(integrators, "PER_INSTRUCTION", 0)
    monkeypatch.setattr("grisaille.simulation.integration.SLICE", 30)
    built = []
    build_linked = integrators.build_linked
    monkeypatch.setattr(integrators, "build_linked", lambda parts: built.append(len(parts)) or build_linked(parts))
    switched = simulated(Pendulum, "auto", monkeypatch, rtol=1e-9)
    assert built == [2, 1]
    assert int(switched.attrs["steps"]) > 90
    assert switched.identical(once)


def test_a_further_model_compiles_its_functions_alone(monkeypatch, tmp_path):
    class Other(gr.Model):
        k, d = gr.Parameter(4.0), gr.Parameter(0.3)
        x, v, w, u = gr.Variable(start=1.0), gr.Variable(start=0.0), gr.Variable(start=0.0), gr.Input()
        equations = [der(x) == v, der(v) == -k * x - d * v * w + u, der(w) == x - w]

    compiled = []
    compile_ = compiler.Compiler.compile
    monkeypatch.setattr(
        compiler.Compiler, "compile",
        lambda self, sources, main, flags, kept=None: compiled.append(
            "integrator" if "gr_linked.h" in sources else "functions"
        ) or compile_(self, sources, main, flags, kept),
    )  # fmt: skip
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))
    gr.simulate(Oscillator(), TIMES)
    assert sorted(compiled) == ["functions", "integrator"]
    gr.simulate(Other(), TIMES, {"u": FORCE})
    assert sorted(compiled) == ["functions", "functions", "integrator"]


@pytest.mark.parametrize("model", [Ball, Wall, Delayed])
@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_events_go_on_in_one_file_where_steps_are_many(model, method, monkeypatch):
    once = simulated(model, "linked", monkeypatch, method=method, sensitivities=["k"])
    monkeypatch.setattr(integrators, "MANY_STEPS", 40)
    monkeypatch.setattr(integrators, "PER_INSTRUCTION", 0)
    monkeypatch.setattr("grisaille.simulation.integration.SLICE", 7)
    built = []
    build_linked = integrators.build_linked
    monkeypatch.setattr(integrators, "build_linked", lambda parts: built.append(len(parts)) or build_linked(parts))
    switched = simulated(model, "auto", monkeypatch, method=method, sensitivities=["k"])
    assert built[:2] == [2, 1]
    assert len(switched.attrs["event_times"]) > 0
    assert switched.identical(once)


def test_a_warm_up_builds_what_models_are_linked_to(monkeypatch):
    texts = [source.text for source in _sources()]
    assert len(set(texts)) == len(texts)
    for model in (*PLAIN, Ball, Controller, Delayed, Chain):
        structure = structure_of(model())
        events = structure.jumps.events
        system = structure.system if events is None else events.system
        assert can_be_linked(system)
        kind = linked_kind(system, differentiate(system), sparse=False)
        programs = {scheme.program for scheme in all_schemes()}
        assert sum(text.startswith(kind) for text in texts) == len(programs)


def test_a_warm_up_builds_each_integrator_once(monkeypatch, tmp_path):
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GRISAILLE_OPTIMIZATION", "-O0")
    few = _sources()[:2]
    monkeypatch.setattr("grisaille.compilation.warm_up._sources", lambda: few)
    count = len(few) + len(PROGRAMS)
    assert [warm_up().built, warm_up().built] == [count, 0]
    assert f"{count} integrators" in str(warm_up())
    assert not build_shared_object(few[0])
    package = Path(gr.__file__).parent
    assert sorted(PROGRAMS) == sorted(file.relative_to(package).as_posix() for file in package.rglob("*.c"))


def test_models_beyond_the_room_of_linked_events_are_built_in_one_file(monkeypatch):
    """Each of the sizes of which linked integrators have room."""
    own = gr.simulate(Chain(), [0.0, 0.2])
    system = structure_of(Chain()).jumps.events.system
    assert len(system.modes) == 26 and can_be_linked(system)
    sizes = (system.nx, system.nz, system.nu, system.np, 26, 0)
    for place, size in enumerate(sizes):
        most = tuple(size - (at == place) for at, size in enumerate(sizes))
        monkeypatch.setattr("grisaille.compilation.kernel_source.MAX_LINKED_SIZES", most)
        assert not can_be_linked(system), (place, size)
    forget(monkeypatch)
    assert gr.simulate(Chain(), [0.0, 0.2]).identical(own)


def test_what_builds_are_asked_for_is_checked(monkeypatch):
    monkeypatch.setenv("GRISAILLE_BUILD", "quickly")
    with pytest.raises(gr.CompilationError, match="GRISAILLE_BUILD='quickly' is none of auto, linked and whole"):
        gr.simulate(Oscillator(), TIMES)
