"""Start conditions of direct collocation: as many known starts as the first point has freedom.

Candidates, in this order: starts that are estimated, starts that a record gives, those declared ``fixed=True``, other
declared ones, then the states themselves. Each is taken if it is independent of the hidden constraints and of those
taken before, at the consistent start of the first record. Its value is the estimated one, the record's, or the declared
formula; a wish that the constraints do not let come true keeps the value of that consistent start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.collocation.direct.mesh import DirectRecord, Floats
from grisaille.collocation.direct.model import DirectModel
from grisaille.errors import EstimationError
from grisaille.structure.starts.initialization import Initializer, Start

RANK = 1e-7
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


def choose_conditions(
    model: DirectModel, records: Sequence[DirectRecord], parameters: Floats, slots: Floats, names: Sequence[str]
) -> tuple[StartConditions, list[Start]]:
    """Conditions, and the consistent start of every record at the guess.

    parameters : (R, all); slots : (R, slots) at the guess; names : of the slots
    """
    structure, initializer = model.structure, Initializer(model.structure)
    estimated = {n[6:-1]: k for k, n in enumerate(names) if n.startswith("start(")}
    starts = []
    for r, record in enumerate(records):
        demands = {**record.trial.demands, **{n: float(slots[r, k]) for n, k in estimated.items()}}
        u = record.signals.at(float(record.times[0]))
        starts.append(initializer.solve(float(record.times[0]), u, parameters[r], demands))
    system, declared = structure.system, initializer.declared
    fixed = [n for n, f in zip(declared.names, declared.fixed, strict=True) if f]
    candidates = [
        *estimated,
        *(n for r in records for n in r.trial.demands),
        *fixed,
        *declared.names,
        *system.state_names,
    ]
    candidates = list(dict.fromkeys(n for n in candidates if n in system.observed_names or n in system.state_names))
    rows = {**dict(zip(system.state_names, ca.vertsplit(system.x), strict=True))} if system.nx else {}
    rows |= dict(zip(system.observed_names, ca.vertsplit(system.observed), strict=True)) if system.ny else {}
    first = (float(records[0].times[0]), records[0].signals.at(float(records[0].times[0])), parameters[0])
    chosen = _independent(model, initializer, [rows[n] for n in candidates], starts[0], first)
    picked = [candidates[k] for k in chosen]
    for name in estimated:
        if name not in picked:
            raise EstimationError(
                f"'start({name})' cannot be chosen freely: hidden constraints or other estimated starts dictate it. "
                "Estimate fewer starts."
            )
    return _conditions(model, initializer, records, parameters, estimated, picked, rows, starts), starts


def _conditions(
    model: DirectModel, initializer: Initializer, records: Sequence[DirectRecord], parameters: Floats,
    estimated: dict[str, int], picked: list[str], rows: dict[str, ca.SX], starts: list[Start],
) -> StartConditions:  # fmt: skip
    declared, system = initializer.declared, model.structure.system
    referred = ca.DM.zeros(len(declared.referred))
    formulas = ca.substitute(
        declared.formulas, ca.vertcat(declared.is_given, declared.given), ca.vertcat(referred, referred)
    )
    place = {n: k for k, n in enumerate(declared.names)}
    wanted: list[ca.SX] = []
    is_given, given = np.zeros((len(records), len(picked))), np.zeros((len(records), len(picked)))
    for k, name in enumerate(picked):
        if name in estimated:
            wanted.append(model.q[model.quantities.index(f"start({name})")])
            continue
        wanted.append(formulas[place[name]] if name in place else ca.SX(0))
        value = ca.Function("start", [system.t, ca.vertcat(system.x, system.z), system.u, system.p], [rows[name]])
        for r, record in enumerate(records):
            t0 = float(record.times[0])
            at = (t0, np.concatenate([starts[r].x, starts[r].z]), record.signals.at(t0), parameters[r])
            met = name in place and name not in record.trial.demands and name not in starts[r].wishes_missed
            if not met or declared.referred:
                is_given[r, k] = 1.0
                given[r, k] = record.trial.demands.get(name, float(value(*at)))
    chosen = ca.vertcat(*(rows[n] for n in picked)) if picked else ca.SX(0, 1)
    return StartConditions(tuple(picked), chosen, ca.vertcat(*wanted) if wanted else ca.SX(0, 1), is_given, given)


def _independent(
    model: DirectModel, initializer: Initializer, rows: list[ca.SX], start: Start, at: tuple[float, Floats, Floats]
) -> list[int]:
    """Which of the formulas to take, in their order."""
    system = model.structure.system
    hard = ca.vertcat(system.constraints, system.residual)
    w = ca.vertcat(system.x, system.z)
    function = ca.Function(
        "j", [system.t, w, system.u, system.p], [ca.densify(ca.jacobian(ca.vertcat(hard, *rows), w))]
    )
    t, u, p = at
    J = function(t, np.concatenate([start.x, start.z]), u, p).full() * initializer.nominal
    basis = np.zeros((0, J.shape[1]))
    chosen = []
    for k, row in enumerate(J):
        size = np.linalg.norm(row)
        rest = row - basis.T @ (basis @ row)
        rest -= basis.T @ (basis @ rest)
        if size > 0 and np.linalg.norm(rest) > RANK * size:
            basis = np.vstack([basis, rest / np.linalg.norm(rest)])
            if k >= hard.numel():
                chosen.append(k - hard.numel())
        elif k < hard.numel():
            raise EstimationError(
                f"The hidden constraints of {model.structure.model.name} depend on each other at the start; "
                "collocation needs independent ones."
            )
    if len(basis) < J.shape[1]:
        raise EstimationError(f"The start of {model.structure.model.name} is not determined by its variables.")
    return chosen
