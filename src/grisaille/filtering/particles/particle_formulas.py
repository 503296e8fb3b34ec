"""A stochastic model as a particle filter steps and looks at it.

    dX = f(t, X, u, q) dt + B(t, X, u, q) dV        0 = c(t, X, u, q)        0 = g(t, X, z, u, q)

The step is the one of highest order that the noise allows (``compilation.stochastic_step``), Runge and Kutta's where
there is none; disturbances are states of X. Algebraic unknowns are carried along and solved inside.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from grisaille.structure.stochastic.diffusion import Diffusion, split_noise
from grisaille.structure.system import Signal, System

START_CORRECTIONS = 4
"""Gauss–Newton corrections of states drawn at the start, each of which squares the violation of constraints."""
EFFORT = ALGEBRAIC_EFFORTS[0]


def particle_formulas(model: StochasticModel, further: Sequence[str] = ()) -> ParticleFormulas:
    """Return the formulas of a model, made once.

    further : observed names that are seen at samples besides the outputs
    """
    return model.cached_value(("particles", tuple(further)), lambda: _formulas(model, tuple(further)))


def step_scheme(model: StochasticModel) -> SchemeChoice | None:
    """Return the scheme of the step; None where nothing is white."""
    return model.cached_value("particle scheme", lambda: choose_scheme(_diffusion(model))) if _noises(model) else None


def _noises(model: StochasticModel) -> int:
    return int(model.noise.size2()) if model.noise.nnz() else 0


def _formulas(model: StochasticModel, further: tuple[str, ...]) -> ParticleFormulas:
    system, scheme = _augmented(model), step_scheme(model)
    step = _deterministic(system) if scheme is None else formulate(_diffusion(model), scheme, EFFORT)
    nu, nw = int(model.u.numel()), _noises(model)
    # the noise of unit intensity is in B: its root is the identity, and its places among the signals are empty
    put = [step.p[system.np :], *(u[nu:] for u in step.signals)]
    values = [ca.vec(ca.DM.eye(nw)), *(ca.DM.zeros(u.numel() - nu) for u in step.signals)]
    (after,) = ca.substitute([step.after], put, [ca.SX(v) for v in values]) if nw else [step.after]
    q, s, u = step.p[: system.np], step.x, ca.SX.sym("u", nu)
    X, z, rest = s[: model.n], s[model.n : model.n + model.z.numel()], s[model.n + model.z.numel() :]
    begin = X
    for _ in range(START_CORRECTIONS):
        begin = project(system, step.t, begin, u, q, step.nominal[: model.n]) if model.constraints.numel() else begin
    shown = ca.vertcat(model.measured, *(_observed(model, name) for name in further))
    if model.z.numel():
        carried = ImplicitAsStates(system, EFFORT)
        begin = ca.vertcat(begin, carried.begin(step.t, begin, z, u, q)[0], rest)
        solved = carried.begin(step.t, X, z, u, q)[0]
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


def _observed(model: StochasticModel, name: str) -> ca.SX:
    if name in model.infinite:
        raise EstimationError(
            f"'{name}' has no value at an instant, because white noise reaches it, and the law of an output contains "
            f"it: use gr.spectra.lowpass(bandwidth=…) in place of white noise."
        )
    return model.observed[model.observed_names.index(name)]


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
