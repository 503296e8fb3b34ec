"""Events of a model as a map of one particle: each follows its own.

At the end of a step, with d the discrete variables and c the conditions of the last look,

    fired_i = condition_i and not c_i, the first of each when        x, d ← their new values        c ← conditions

again and again until nothing fires, as ``gr_when.h`` has it for clauses that do not need each other's new values. An
instant inside a step is not located: steps are halved until that does not matter (``pilot``). Ticks of clocks are ends
of cells, and exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from grisaille.compilation.step import project
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError
from grisaille.structure.system import Reactions, System

NEAR_A_TICK = 1e-12
"""Of an instant, in parts of it."""


@dataclass(frozen=True, eq=False)
class ParticleEvents:
    """The events of a model over its symbols and those of what a particle carries for them.

    carried : discrete variables, what conditions remember, conditions
    pulses : 1 for clocks that tick
    counters : places in u of the signals that count their ticks
    """

    reactions: Reactions
    places: tuple[int, ...]
    """Of discrete variables in p."""
    carried: ca.SX
    pulses: ca.SX

    @classmethod
    def of(cls, model: StochasticModel) -> ParticleEvents | None:
        """Return the events of a model that are not signals; None where there are none."""
        system = model.structure.system
        r = system.reactions
        if r is None:
            return None
        _refuse(model, r)
        places = tuple(system.parameter_names.index(n) for n in model.structure.model.discretes)
        size = len(places) + int(r.was.numel()) + len(r.texts)
        return cls(r, places, ca.SX.sym("carried", size), ca.SX.sym("pulses", len(r.ticks)))

    @property
    def counters(self) -> tuple[int, ...]:
        return self.reactions.counters

    def parts(self, carried: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return discrete variables, what is remembered, and conditions."""
        nd, nb = len(self.places), int(self.reactions.was.numel())
        discretes, was, held = ca.vertsplit(carried, [0, nd, nd + nb, carried.numel()])
        return discretes, was, held

    def with_discretes(self, model: StochasticModel, carried: ca.SX) -> ca.SX:
        """Return q with discrete variables as a particle carries them."""
        q = ca.SX(model.q)
        discretes = self.parts(carried)[0]
        for k, place in enumerate(self.places):
            q[place] = discretes[k]
        return q

    def start(self, model: StochasticModel, t: ca.SX, X: ca.SX, z: ca.SX, u: ca.SX, q: ca.SX) -> ca.SX:
        """Return what a particle carries before the first step: no condition that holds there fires."""
        discretes = ca.vertcat(*(q[k] for k in self.places)) if self.places else ca.SX(0, 1)
        conditions, memory, _ = self._formulas(model)
        nothing = ca.SX.zeros(self.pulses.numel())
        none = ca.SX.zeros(len(self.reactions.texts))
        was = memory(t, X, z, u, q, ca.SX.zeros(self.reactions.was.numel()), nothing, none)
        return ca.vertcat(discretes, was, conditions(t, X, z, u, q, was, nothing, none))

    def happened(self, model: StochasticModel, system: System, nominal: ca.SX) -> tuple[list[ca.SX], list[ca.SX]]:
        """Return arguments (t, X, z, u, q, carried, pulses) and results (X, carried, how many clauses have fired)."""
        r, q = self.reactions, self.with_discretes(model, self.carried)
        _, was, held = self.parts(self.carried)
        conditions, memory, values = self._formulas(model)
        none = ca.SX.zeros(len(r.texts))
        now = conditions(model.t, model.X, model.z, model.u, q, was, self.pulses, none)
        fired = ca.SX.zeros(len(r.texts))
        for i in range(len(r.texts)):
            becomes = now[i] if r.lasting[i] else ca.logic_and(now[i], ca.logic_not(held[i]))
            for j in range(i):
                if r.group[j] == r.group[i]:
                    becomes = ca.logic_and(becomes, ca.logic_not(fired[j]))
            fired[i] = becomes
        new = values(model.t, model.X, model.z, model.u, q, was, self.pulses, fired)
        X, discretes, nx = ca.SX(model.X), ca.SX(self.parts(self.carried)[0]), model.structure.system.nx
        for k, target in enumerate(r.targets):
            if target < nx:
                is_set = ca.SX(0)
                for i, resets in enumerate(r.resets):
                    is_set = ca.logic_or(is_set, fired[i]) if target in resets else is_set
                X[target] = ca.if_else(is_set, new[k], X[target])
            elif target - nx in self.places:
                discretes[self.places.index(target - nx)] = new[k]
        if model.constraints.numel() and any(r.resets):
            X = project(system, model.t, X, ca.vertcat(model.u, ca.SX.zeros(system.nu - model.u.numel())), q, nominal)
        later = self.with_discretes(model, ca.vertcat(discretes, was, held))
        remembered = memory(model.t, X, model.z, model.u, later, was, self.pulses, none)
        arguments = [model.t, model.X, model.z, model.u, model.q, self.carried, self.pulses]
        return arguments, [X, ca.vertcat(discretes, remembered, now), ca.sum1(fired)]

    def _formulas(self, model: StochasticModel) -> tuple[ca.Function, ca.Function, ca.Function]:
        r = self.reactions
        system = model.structure.system
        ticks = ca.vertcat(*(tick.pulse for tick in r.ticks)) if r.ticks else ca.SX(0, 1)
        # states of disturbances stand for their signals
        put = ca.substitute(
            [ca.densify(ca.vertcat(r.conditions)), ca.densify(r.memory), ca.densify(r.values)],
            [system.u],
            [model.signals],
        )
        given = [model.t, model.X, model.z, model.u, model.q, r.was, ticks, r.fired]
        sizes = (len(r.texts), int(r.was.numel()), len(r.targets))
        # what is empty has a shape of its own
        put = [f if size else ca.SX(0, 1) for f, size in zip(put, sizes, strict=True)]
        c, m, v = (ca.Function(n, given, [f]) for n, f in zip(("c", "m", "v"), put, strict=True))
        return c, m, v


def without_discretes(model: StochasticModel) -> StochasticModel:
    """Return the model in which names that depend on discrete variables are not estimated as formulas of the states:
    each particle has discrete variables of its own.
    """
    system = model.structure.system
    discretes = ca.vertcat(*(model.q[system.parameter_names.index(n)] for n in model.structure.model.discretes))
    names = zip(model.observed_names, ca.vertsplit(model.observed), strict=True)
    moved = [n for n, formula in names if discretes.numel() and ca.depends_on(formula, discretes)]
    return replace(model, infinite=tuple(dict.fromkeys((*model.infinite, *moved))))


def _refuse(model: StochasticModel, r: Reactions) -> None:
    name = model.structure.model.name
    if any(rank != r.ranks[0] for rank in r.ranks):
        raise EstimationError(
            f"Events of {name} at one instant need each other's new values (gr.when({r.texts[0]}) among them), which "
            f"particles do not follow: write gr.pre(…) where the value before is meant, or use gr.SimulatedPEM()."
        )
    if -1 in r.counters:
        raise EstimationError(
            f"{name} has an event at the start of a run, which particles do not follow: give start values instead."
        )


def refuse_ticks_at_the_start(model: StochasticModel, t: float, u: Floats, q: Floats) -> None:
    """Refuse clocks that tick at the first instant, t, where signals are u: particles begin after it."""
    system = model.structure.system
    r = system.reactions
    if r is None or not r.ticks:
        return
    instants = ca.Function("instants", [system.u, system.p], [ca.vertcat(*(tick.instant for tick in r.ticks))])
    last = np.array(instants(u[: system.u.numel()], q[: system.np])).ravel()
    for tick, place, instant in zip(r.ticks, r.counters, last.tolist(), strict=True):
        if place >= 0 and u[place] >= 0 and abs(instant - t) <= NEAR_A_TICK * max(abs(t), 1e-300):
            raise EstimationError(
                f"{tick.text} of {model.structure.model.name} ticks at the "
                f"start of the record, t = {t:g}, which particles do not follow: give start values instead, and let "
                f"the clock begin one period later."
            )
