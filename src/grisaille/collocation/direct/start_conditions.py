"""Start conditions of direct collocation: as many known starts as the first point has freedom.

Candidates, in this order: the model's initial equations, starts that are estimated, starts that a record gives, those
declared ``fixed=True``, other declared ones, then the states themselves. Each is taken if it is independent of the
hidden constraints and of those taken before, at the consistent start of the first record. Its value is the estimated
one, the record's, or the declared formula; a wish that the constraints do not let come true keeps the value of that
consistent start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np

from grisaille.bound_experiment import ExperimentPoint
from grisaille.collocation.array_types import Floats
from grisaille.collocation.direct.direct_model import DirectModel
from grisaille.errors import EstimationError
from grisaille.structure.system import System

RANK_TOLERANCE = 1e-7
"""A candidate counts where at least this part of its scaled gradient is new."""


@dataclass(frozen=True, eq=False)
class StartConditions:
    names: tuple[str, ...]
    formulas: ca.SX
    """Of the first point, over the model's symbols."""
    wanted: ca.SX
    """Their values, over the model's q."""
    is_given: Floats
    """(R, conditions): 1 where a record's number replaces the formula."""
    given: Floats


def choose_conditions(model: DirectModel, points: Sequence[ExperimentPoint]) -> StartConditions:
    """Return conditions that are met by the trials at the guess."""
    estimated = [n[6:-1] for n in model.quantities if n.startswith("start(")]
    system, declared, initial = model.structure.system, points[0].initializer.declared, _initial(points[0])
    fixed = [n for n, f in zip(declared.names, declared.fixed, strict=True) if f]
    given = [n for p in points for n in p.trial.demands]
    rows = dict(zip(system.state_names, ca.vertsplit(system.x), strict=True)) if system.nx else {}
    rows |= dict(zip(system.observed_names, ca.vertsplit(system.observed), strict=True)) if system.ny else {}
    named = dict.fromkeys([*estimated, *given, *fixed, *declared.names, *system.state_names])
    candidates, rows = [*initial, *(n for n in named if n in rows)], rows | initial
    picked = [candidates[k] for k in _independent(model, points[0], {n: rows[n] for n in candidates})]
    lost = [text for text in initial if text not in picked]
    if lost:
        raise EstimationError(
            f"'{lost[0]}' says nothing that hidden constraints and the other initial equations do not say: "
            "collocation needs independent ones. Leave it out."
        )
    for name in estimated:
        if name not in picked:
            raise EstimationError(
                f"'start({name})' cannot be chosen freely: hidden constraints, initial equations or other estimated "
                "starts dictate it. Estimate fewer starts."
            )
    return _conditions(model, points, estimated, picked, rows)


def _conditions(
    model: DirectModel,
    points: Sequence[ExperimentPoint],
    estimated: list[str],
    picked: list[str],
    rows: dict[str, ca.SX],
) -> StartConditions:
    declared, system = points[0].initializer.declared, model.structure.system
    referred = ca.DM.zeros(len(declared.referred))
    formulas = ca.substitute(
        declared.formulas, ca.vertcat(declared.is_given, declared.given), ca.vertcat(referred, referred)
    )
    place = {n: k for k, n in enumerate(declared.names)}
    wanted: list[ca.SX] = []
    is_given, given = np.zeros((2, len(points), len(picked)))
    for k, name in enumerate(picked):
        if name in estimated:
            wanted.append(model.q[model.quantities.index(f"start({name})")])
            continue
        wanted.append(formulas[place[name]] if name in place else ca.SX(0))
        if name in system.initial_texts:
            continue
        value = model.cached_value(("start", name), partial(_of_first_point, system, "start", rows[name]))
        for r, p in enumerate(points):
            met = name in place and name not in p.trial.demands and name not in p.start.guesses_missed
            if not met or declared.referred:
                is_given[r, k] = 1.0
                given[r, k] = p.trial.demands.get(name, float(value(*_first(p))))
    chosen = ca.vertcat(*(rows[n] for n in picked)) if picked else ca.SX(0, 1)
    return StartConditions(tuple(picked), chosen, ca.vertcat(*wanted) if wanted else ca.SX(0, 1), is_given, given)


def _initial(point: ExperimentPoint) -> dict[str, ca.SX]:
    """Return what the model's initial equations say is zero; a steady start takes their place."""
    system = point.structure.system
    if point.trial.steady or not system.initial_texts:
        return {}
    return dict(zip(system.initial_texts, ca.vertsplit(system.initial), strict=True))


def _first(point: ExperimentPoint) -> tuple[float, Floats, Floats, Floats]:
    """Return t, (x, z), u and p at the start."""
    return point.t0, np.concatenate([point.start.x, point.start.z]), point.u, point.p


def _of_first_point(system: System, name: str, formula: ca.SX) -> ca.Function:
    """Return a function of t, (x, z), u and p."""
    return ca.Function(name, [system.t, ca.vertcat(system.x, system.z), system.u, system.p], [formula])


def _independent(model: DirectModel, point: ExperimentPoint, rows: Mapping[str, ca.SX]) -> list[int]:
    """Return which of the formulas to take, in their order."""
    system, name = point.structure.system, point.structure.model.name
    hard = ca.vertcat(system.constraints, system.residual)

    def make() -> ca.Function:
        slopes = ca.jacobian(ca.vertcat(hard, *rows.values()), ca.vertcat(system.x, system.z))
        return _of_first_point(system, "j", ca.densify(slopes))

    function = model.cached_value(("independent", *rows), make)
    J = function(*_first(point)).full() * point.initializer.nominal
    basis = np.zeros((0, J.shape[1]))
    chosen = []
    for k, row in enumerate(J):
        size = np.linalg.norm(row)
        rest = row - basis.T @ (basis @ row)
        rest -= basis.T @ (basis @ rest)
        if size > 0 and np.linalg.norm(rest) > RANK_TOLERANCE * size:
            basis = np.vstack([basis, rest / np.linalg.norm(rest)])
            if k >= hard.numel():
                chosen.append(k - hard.numel())
        elif k < hard.numel():
            raise EstimationError(
                f"The hidden constraints of {name} depend on each other at the start; "
                "collocation needs independent ones."
            )
    if len(basis) < J.shape[1]:
        raise EstimationError(f"The start of {name} is not determined by its variables.")
    return chosen
