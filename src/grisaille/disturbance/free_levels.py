"""Disturbances and measurement noise whose levels may be unknowns: ``scale(w)`` and ``noise(y)`` instead of formulas.

Filters and collocation read both from here, over symbols of their own: ``levels`` names those that are free, and a leaf
gives the symbol of every name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import casadi as ca

from grisaille.disturbance.process import Process
from grisaille.disturbance.process_assembly import build_symbolic_process, correlation_matrix
from grisaille.errors import EstimationError
from grisaille.model.expression import Expression, Name, as_expression
from grisaille.model.flat import FlatDisturbance, FlatModel
from grisaille.model.lowering.lowering import Leaf, lower
from grisaille.model.measurement.noise_covariances import covariance_formulas
from grisaille.structure.stochastic.diffusion import Diffusion


def scale_formulas(group: Sequence[FlatDisturbance], levels: Sequence[str]) -> list[Expression]:
    """Return the scale of each disturbance: its own name where it is free, the declared formula otherwise."""
    return [
        Name(f"scale({d.name})") if f"scale({d.name})" in levels else as_expression(1.0 if d.scale is None else d.scale)
        for d in group
    ]


def correlation_of(group: Sequence[FlatDisturbance]) -> list[list[Expression]] | None:
    """None for a disturbance by itself."""
    return correlation_matrix(group) if len(group) > 1 else None


def symbolic_process(
    group: Sequence[FlatDisturbance], levels: Sequence[str], leaf: Leaf, known: Mapping[str, float]
) -> Process:
    """Return the process of correlated disturbances; ``known`` decides the rank of correlations only."""
    names, spectra = [d.name for d in group], [d.spectrum for d in group]
    return build_symbolic_process(names, spectra, scale_formulas(group, levels), correlation_of(group), leaf, known)


def filter_state_names(coloured: Sequence[Process]) -> list[str]:
    """Return ``w[0]``, ``w[1]``, … of every disturbance w."""
    return [f"{name}[{k}]" for p in coloured for name, n in zip(p.names, p.blocks, strict=True) for k in range(n)]


def noise_root(diffusion: Diffusion, white: Sequence[Process]) -> ca.SX:
    """Return D of all white noise in the order of the diffusion: E w wᵀ = D Dᵀ δ."""
    D = ca.SX(diffusion.nw, diffusion.nw)
    for process in white:
        at = [diffusion.names.index(n) for n in process.names if n in diffusion.names]
        if at:
            D[at, at] = process.D
    return ca.densify(D)


def measurement_covariance(
    flat: FlatModel, outputs: Sequence[str], levels: Sequence[str], leaves: Mapping[str, ca.SX]
) -> ca.SX:
    """Return R, (ny, ny), from the noise of each output and ``noise_covariance``; 1 for outputs that are measured by
    laws.
    """
    R = ca.SX(len(outputs), len(outputs))
    for i, y in enumerate(outputs):
        if flat.outputs[y].distribution is not None:
            R[i, i] = 1.0
            continue
        formula = Name(f"noise({y})") if f"noise({y})" in levels else flat.outputs[y].noise
        if formula is None:
            raise EstimationError(f"The noise of output '{y}' is unknown: estimate 'noise({y})'.")
        R[i, i] = lower([formula], leaves.__getitem__)[0] ** 2
    for (a, b), formula in covariance_formulas(flat, outputs, levels).items():
        value = lower([formula], leaves.__getitem__)[0]
        R[outputs.index(a), outputs.index(b)] = R[outputs.index(b), outputs.index(a)] = value
    return R
