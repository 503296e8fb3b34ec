"""What collocation cannot estimate together with trajectories: levels of noise, unless they are integrated out.

A level that is minimised with what it divides would only be made large (scales, and the motion of spectra), or small
while trajectories run through the data (measurement noise).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.direct.direct import DirectProgram
from grisaille.disturbance import group_correlated
from grisaille.disturbance.free_levels import symbolic_process
from grisaille.errors import EstimationError
from grisaille.model.expression import Name, postorder
from grisaille.structure.parameters import evaluate_parameters, formulas_of
from grisaille.structure.reduction import Structure
from grisaille.trial import Point
from grisaille.trial.unknown import Unknown


def refuse_open_noise(structure: Structure, data: Sequence[Any]) -> None:
    """Measurement noise must be declared where it is not estimated."""
    for e in data:
        for o in e.outputs:
            if structure.model.outputs[o].noise is None:
                raise EstimationError(
                    f"The noise of output '{o}' is unknown, and collocation weighs data against the model by it: "
                    f"declare gr.Output(…, noise=…), or estimate it with gr.Collocation(criterion='laplace')."
                )


def refuse_levels(unknowns: Sequence[Unknown], inside: Iterable[str]) -> None:
    """Neither measurement noise nor parameters ``inside`` formulas of noise and spectra."""
    names = set(inside)
    for u in unknowns:
        if u.kind == "noise" or (u.kind == "parameter" and u.target in names):
            raise EstimationError(
                f"'{u.name}' is a noise level, or shapes a spectrum: estimated together with the trajectories it would "
                f"run away. Use gr.Collocation(criterion='laplace'); intensities='estimate' finds scales from known "
                f"noise."
            )


def level_parameters(structure: Structure, unknowns: Sequence[Unknown], outputs: Sequence[str]) -> set[str]:
    """Estimated parameters that scales, spectra, correlations or measurement noise contain, through formulas too."""
    system, flat = structure.system, structure.model
    own = {u.target: u.guess for u in unknowns if u.kind == "parameter"}
    known = evaluate_parameters(flat, own)
    numbers = dict(zip(known.names, known.values.tolist(), strict=True))
    place = {n: k for k, n in enumerate(system.parameter_names)}
    parts = []
    for group in group_correlated(flat.disturbances):
        p = symbolic_process(group, (), lambda path: system.p[place[path]], numbers)
        parts += [ca.vec(ca.densify(ca.SX(m))) for m in (p.A, p.B, p.C, p.D) if ca.SX(m).numel()]
    depends = _inside(ca.vertcat(*parts), system.p) if parts else set()
    moved = {system.parameter_names[k] for k in depends} | _in_noise(structure, outputs)
    return behind(structure, unknowns, moved)


def behind(structure: Structure, unknowns: Sequence[Unknown], names: Iterable[str]) -> set[str]:
    """Estimated parameters that move some parameters, themselves or through formulas."""
    own = {u.target: u.guess for u in unknowns if u.kind == "parameter"}
    tied = formulas_of(structure.model, own).differentiate(own)
    rows = [tied.names.index(n) for n in names if n in tied.names]
    return {n for n in own if np.any(tied.jacobian[rows, tied.names.index(n)])}


def refuse_zero_noise(program: DirectProgram, points: Sequence[Point]) -> None:
    """Noise levels that do not depend on states must be positive, at the guess."""
    model, slots = program.model, program.slots
    sigma = ca.densify(ca.diag(model.variance))
    if ca.depends_on(sigma, ca.vertcat(model.t, model.X, model.Z, model.u, model.v)):
        return
    function = ca.Function("variances", [model.q], [sigma])
    for point, values in zip(points, slots.values(program.guess), strict=True):
        levels = dict(zip(slots.names, values.tolist(), strict=True))
        found = np.array(function([point.known.get(n, levels.get(n)) for n in model.quantities])).ravel()
        for output, variance in zip(model.outputs, found, strict=True):
            if not (np.isfinite(variance) and variance > 0):
                raise EstimationError(
                    f"Experiment '{point.trial.name}': the noise of '{output}' is {np.sqrt(max(variance, 0.0)):g}, so "
                    f"its weight is infinite; declare a positive gr.Output(…, noise=…)."
                )


def _inside(formulas: ca.SX, symbols: ca.SX) -> set[int]:
    return set(ca.jacobian_sparsity(formulas, symbols).get_col())


def _in_noise(structure: Structure, outputs: Sequence[str]) -> set[str]:
    """Names of parameters in the noise formulas of some outputs."""
    flat = structure.model
    formulas = [flat.outputs[o].noise for o in outputs]
    formulas += [f for (a, b), f in flat.noise_covariance.items() if a in outputs and b in outputs]
    nodes = postorder(f for f in formulas if f is not None)
    return {node.path for node in nodes if isinstance(node, Name) and node.path in flat.parameters}
