"""From the reduced system to the functions integrators call, all of ``(t, x, z, u, p)``::

    F  = [rhs; residual]        J  = ∂F/∂[x; z]        FP = ∂F/∂p
    C  = constraints            CJ = ∂C/∂x             CP = ∂C/∂p
    O  = observed               OJ = ∂O/∂[x; z]        OP = ∂O/∂p
    S  = gaps of the switches of x and z in F, without those of pieces held in z (``structure/switch_sides.py``)
    B  = gaps of the bends of F BW = values that are whole at one   (``structure/bends.py``)
    G  = gaps of the modes      GD = their rates       GJ = ∂G/∂[x; z]       GP = ∂G/∂p   (``structure/held_events.py``)
    W  = [conditions; memory]   T  = instants of ticks TP = ∂T/∂p           of events
    (``structure/when_lowering.py``)
    R  = what targets become    RD = its rate          RJ = ∂R/∂[x; z]       RP = ∂R/∂p

CasADi differentiates ``where(c, a, b)`` by selecting between ``a'`` and ``b'``, so the branch that was not taken cannot
put its NaN or infinity into a derivative; a test guards this.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from grisaille.compilation.sparse.pattern import with_diagonal
from grisaille.structure.bends import bends_of
from grisaille.structure.switch_sides import sides_of
from grisaille.structure.system import System

PLAIN_FUNCTIONS = ("F", "J", "C", "CJ", "O", "S", "B", "BW")
PARAMETER_DERIVATIVES = ("FP", "CP", "OJ", "OP")
SENSITIVITY_FUNCTIONS = (*PARAMETER_DERIVATIVES, "GP", "RD", "RJ", "RP", "TP")
"""What only sensitivities need."""

SPARSE_MATRICES = ("J", "CJ", "FP", "CP", "OJ", "OP")
"""Matrices of which sparse kernels know the nonzeros only."""


def differentiate(system: System, *, sensitive: bool = False, sparse: bool = False) -> Mapping[str, ca.Function]:
    """Return the functions by name; those with ∂/∂p only if ``sensitive``. All outputs are dense, but those in
    ``SPARSE_MATRICES`` of sparse kernels; J holds the whole diagonal of the states there.
    """
    unknowns = ca.vertcat(system.x, system.z)
    rates, hidden, seen = ca.vertcat(system.rhs, system.residual), system.constraints, system.observed
    formulas = {"F": rates, "J": jacobian(rates, unknowns), "C": hidden, "CJ": jacobian(hidden, system.x), "O": seen}
    held = len(system.pieces)
    formulas |= {"S": sides_of(rates[: rates.numel() - held], unknowns[: unknowns.numel() - held])}
    formulas |= _bends(system, rates[: rates.numel() - held], unknowns[: unknowns.numel() - held])
    if system.modes:
        formulas |= {"G": system.gaps, "GD": system.gap_rates, "GJ": jacobian(system.gaps, unknowns)}
        formulas |= dict(zip(("GB", "GW"), _bends(system, system.gaps, unknowns).values(), strict=True))
    formulas |= _reactions(system, unknowns, sensitive)
    if sensitive:
        formulas |= {"GP": jacobian(system.gaps, system.p)} if system.modes else {}
        formulas |= {"FP": jacobian(rates, system.p), "CP": jacobian(hidden, system.p)}
        formulas |= {"OJ": jacobian(seen, unknowns), "OP": jacobian(seen, system.p)}
    arguments = [system.t, system.x, system.z, system.u, system.p]
    if sparse:
        formulas["J"] = with_diagonal(formulas["J"], system.nx)
    kept = SPARSE_MATRICES if sparse else ()
    return {name: as_function(name, arguments, formula, name in kept) for name, formula in formulas.items()}


def _bends(system: System, rates: ca.SX, unknowns: ca.SX) -> dict[str, ca.SX]:
    signals = [system.u[k] for k, s in enumerate(system.signals) if s.kind in ("input", "disturbance", "delayed")]
    gaps, wholes = bends_of(rates, ca.vertcat(unknowns, *signals))
    return {"B": gaps, "BW": wholes}


def _reactions(system: System, unknowns: ca.SX, sensitive: bool) -> dict[str, ca.SX]:
    r = system.reactions
    if r is None or not system.modes:
        return {}
    instants = ca.vertcat(*(t.instant for t in r.ticks)) if r.ticks else ca.SX(0, 1)
    formulas = {"W": ca.vertcat(r.conditions, r.memory), "R": r.values, "T": instants}
    if sensitive:
        formulas |= {"RD": r.rates, "RJ": jacobian(r.values, unknowns), "RP": jacobian(r.values, system.p)}
        formulas |= {"TP": jacobian(instants, system.p)}
    return formulas


def as_function(name: str, arguments: list[ca.SX], formula: ca.SX, sparse: bool = False) -> ca.Function:
    """Return ``formula`` as a function with shared subexpressions, its output dense or as sparse as the formula is."""
    # of the nonzeros alone: CasADi would look through all entries of a sparse matrix
    shared = ca.SX(formula.sparsity(), ca.cse(formula.nz[:])) if formula.nnz() else ca.SX(formula)
    return ca.Function(name, arguments, [shared if sparse else ca.densify(shared)])


def jacobian(formula: ca.SX, variables: ca.SX) -> ca.SX:
    """Return ∂formula/∂variables, also where either is empty."""
    if formula.numel() == 0 or variables.numel() == 0:
        return ca.SX(formula.numel(), variables.numel())
    return ca.jacobian(formula, variables)
