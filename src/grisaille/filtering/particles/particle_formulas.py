"""A stochastic model as a particle filter steps and looks at it.

    dX = f(t, X, u, q) dt + B(t, X, u, q) dV        0 = c(t, X, u, q)        0 = g(t, X, z, u, q)

The step is the one of highest order that the noise allows (``compilation.stochastic_step``), Runge and Kutta's where
there is none; disturbances are states of X. Algebraic unknowns are carried along and solved inside.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from grisaille.compilation.implicit_as_states import ALGEBRAIC_EFFORTS, ImplicitAsStates
from grisaille.compilation.implicit_step import formulate_implicit_step
from grisaille.compilation.particles import ParticleFormulas
from grisaille.compilation.step import StepFormula, formulate_step, project
from grisaille.compilation.stochastic_step import SchemeChoice, choose_scheme, formulate
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError
from grisaille.filtering.particles.particle_events import ParticleEvents
from grisaille.model.expression import Expression, Name, postorder
from grisaille.model.lowering.lowering import lower
from grisaille.model.measurement.distributions import law_formulas
from grisaille.structure.stochastic.diffusion import Diffusion, split_noise
from grisaille.structure.system import Signal, System

START_CORRECTIONS = 4
"""Gauss–Newton corrections of states drawn at the start, each of which squares the violation of constraints."""
EFFORT = ALGEBRAIC_EFFORTS[0]


def particle_formulas(model: StochasticModel) -> ParticleFormulas:
    """Return the formulas of a model, made once."""
    return model.cached_value("particles", lambda: _formulas(model))


def step_scheme(model: StochasticModel) -> SchemeChoice | None:
    """Return the scheme of the step; None where nothing is white."""
    return model.cached_value("particle scheme", lambda: choose_scheme(_diffusion(model))) if _noises(model) else None


def _noises(model: StochasticModel) -> int:
    return int(model.noise.size2()) if model.noise.nnz() else 0


def _formulas(model: StochasticModel) -> ParticleFormulas:
    system, scheme, events = _augmented(model), step_scheme(model), ParticleEvents.of(model)
    step = _deterministic(system) if scheme is None else formulate(_diffusion(model), scheme, EFFORT)
    nu, nw = int(model.u.numel()), _noises(model)
    # the noise of unit intensity is in B: its root is the identity, and its places among the signals are empty
    put = [step.p[system.np :], *(u[nu:] for u in step.signals)]
    values = [ca.densify(ca.vec(ca.SX.eye(nw))), *(ca.SX.zeros(u.numel() - nu) for u in step.signals)]
    (after,) = ca.substitute([step.after], put, values) if nw else [step.after]
    q, u, nominal = step.p[: system.np], ca.SX.sym("u", nu), step.nominal[: model.n]
    X, z, rest = ca.vertsplit(step.x, [0, model.n, model.n + model.z.numel(), step.x.numel()])
    every = ca.vertcat(u, ca.SX.zeros(nw))
    begin, start, solved = X, z, z
    for _ in range(START_CORRECTIONS):
        begin = project(system, step.t, begin, every, q, nominal) if model.constraints.numel() else begin
    if model.z.numel():
        carried = ImplicitAsStates(system, EFFORT)
        start, solved = (carried.begin(step.t, x, z, every, q)[0] for x in (begin, X))
    shown = ca.vertcat(model.measured, *_law_arguments(model))
    here = [model.t, model.X, model.z, model.u, model.q]
    look = ca.Function("seen", here, [ca.densify(shown), ca.densify(model.variance)])
    seen, variance = look(step.t, X, solved, u, q)
    found = ParticleFormulas(
        step.t, step.h, step.x, tuple(s[:nu] for s in step.signals), step.noise, q, step.nominal,
        ca.densify(ca.cse(after)), u, ca.densify(ca.vertcat(begin, start, rest)), seen, variance, model.n,
        0 if scheme is None else scheme.scheme.normals_per_noise,
    )  # fmt: skip
    return found if events is None else _with_events(model, events, system, found)


def _with_events(
    model: StochasticModel, events: ParticleEvents, system: System, f: ParticleFormulas
) -> ParticleFormulas:
    """Return the same with discrete variables and conditions among the numbers of a particle."""
    n, nz, size = model.n, int(model.z.numel()), int(f.s.numel())
    X, z, carried = f.s[:n, 0], f.s[n : n + nz, 0], events.carried
    discretes = events.parts(carried)[0]
    own = ca.SX(f.q)
    for k, place in enumerate(events.places):
        own[place] = discretes[k]
    # discrete variables are parameters to the equations
    after, seen, variance = ca.substitute([f.after, f.seen, f.variance], [f.q], [own])
    start = events.start(model, f.t, f.begin[:n, 0], f.begin[n : n + nz, 0], f.u, f.q)
    arguments, results = events.happened(model, system, f.nominal[:n])
    happened = ca.Function("event", [*arguments, f.nominal], results)
    moved, kept, fired = happened(f.t, X, z, f.u, f.q, carried, events.pulses, f.nominal)
    return replace(
        f, s=ca.vertcat(f.s, carried), after=ca.vertcat(after, carried), seen=seen, variance=variance,
        nominal=ca.vertcat(f.nominal, ca.SX.sym("unused", carried.numel())),
        begin=ca.densify(ca.vertcat(f.begin, start)),
        event=ca.densify(ca.vertcat(moved, f.s[n:size, 0], kept)), fired=ca.densify(fired), pulses=events.pulses,
        counters=events.counters,
    )  # fmt: skip


def _law_arguments(model: StochasticModel) -> list[ca.SX]:
    """Return the arguments of the laws of outputs, output by output (``measurement_laws.LawColumns``)."""
    flat, found = model.structure.model, []
    leaves = {
        **{n: model.observed[k] for k, n in enumerate(model.observed_names)},
        **{n: model.q[k] for k, n in enumerate(model.quantities)}, "time": model.t,
    }  # fmt: skip
    for output in model.outputs:
        for formula in law_formulas(flat.outputs[output]).values():
            _refuse_white(model, output, formula)
            found.append(lower([formula], leaves.__getitem__)[0])
    return found


def _refuse_white(model: StochasticModel, output: str, formula: Expression) -> None:
    inside = {node.path for node in postorder([formula]) if isinstance(node, Name)}
    for name in model.infinite:
        if name in inside:
            raise EstimationError(
                f"The law of output '{output}' contains '{name}', which has no value at an instant, because white "
                f"noise reaches it: use gr.spectra.lowpass(bandwidth=…) in place of white noise."
            )


def _augmented(model: StochasticModel) -> System:
    """Return the system of X, disturbances included, with white noise among its signals."""
    s, nw = model.structure.system, _noises(model)
    white = ca.SX.sym("white", nw)
    rhs = model.drift + ca.mtimes(ca.densify(model.noise), white) if nw else model.drift
    signals = tuple(Signal(f"white[{k}]", 0, "disturbance") for k in range(nw))
    return replace(
        s, x=model.X, z=model.z, u=ca.vertcat(model.u, white), p=model.q, rhs=ca.densify(rhs), residual=model.residual,
        constraints=model.constraints, state_names=model.names, parameter_names=model.quantities,
        signals=(*s.signals, *signals),
    )  # fmt: skip


def _diffusion(model: StochasticModel) -> Diffusion:
    def make() -> Diffusion:
        nu, nw = int(model.u.numel()), _noises(model)
        return split_noise(_augmented(model), range(nu, nu + nw), mask=np.eye(nw, dtype=bool))

    return model.cached_value("particle diffusion", make)


def _deterministic(system: System) -> StepFormula:
    return formulate_step(system) if not system.nz else formulate_implicit_step(system, EFFORT)[0]
