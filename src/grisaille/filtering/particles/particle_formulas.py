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
    system, scheme = _augmented(model), step_scheme(model)
    step = _deterministic(system) if scheme is None else formulate(_diffusion(model), scheme, EFFORT)
    nu, nw = int(model.u.numel()), _noises(model)
    # the noise of unit intensity is in B: its root is the identity, and its places among the signals are empty
    put = [step.p[system.np :], *(u[nu:] for u in step.signals)]
    values = [ca.densify(ca.vec(ca.SX.eye(nw))), *(ca.SX.zeros(u.numel() - nu) for u in step.signals)]
    (after,) = ca.substitute([step.after], put, values) if nw else [step.after]
    q, s, u = step.p[: system.np], step.x, ca.SX.sym("u", nu)
    X, z, rest = s[: model.n], s[model.n : model.n + model.z.numel()], s[model.n + model.z.numel() :]
    begin, every = X, ca.vertcat(u, ca.SX.zeros(nw))
    for _ in range(START_CORRECTIONS):
        begin = project(system, step.t, begin, every, q, step.nominal[: model.n]) if model.constraints.numel() else begin
    shown = ca.vertcat(model.measured, *_law_arguments(model))
    if model.z.numel():
        carried = ImplicitAsStates(system, EFFORT)
        begin = ca.vertcat(begin, carried.begin(step.t, begin, z, every, q)[0], rest)
        solved = carried.begin(step.t, X, z, every, q)[0]
    else:
        solved = z
    here = [model.t, model.X, model.z, model.u, model.q]
    seen, variance = ca.Function("seen", here, [ca.densify(shown), ca.densify(model.variance)])(
        step.t, X, solved, u, q
    )
    return ParticleFormulas(
        step.t, step.h, s, (step.signals[0][:nu], step.signals[1][:nu], step.signals[2][:nu]), step.noise, q,
        step.nominal, ca.densify(ca.cse(after)), u, ca.densify(begin), seen, variance, model.n,
        0 if scheme is None else scheme.scheme.normals_per_noise,
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
                f"The law of output '{output}' contains '{name}', which has no value at an instant, because white noise "
                f"reaches it: use gr.spectra.lowpass(bandwidth=…) in place of white noise."
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
