"""Derivatives of disturbances that have no value at an instant, taken out of the equations of motion.

Where a state obeys x' = f(t, x, u) + g(p) w⁽ᵈ⁾ and w can be differentiated d − 1 times only, w⁽ᵈ⁾ has infinite variance
but x has not: q = x − g w⁽ᵈ⁻¹⁾ obeys

    q' = f(t, q + g w⁽ᵈ⁻¹⁾, u),

an ordinary equation under a disturbance that has values. Answers stay in the user's variables. What is not of this form
(g that moves with states, signals or time; constraints; equations that stay implicit) is refused.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from grisaille.bound_experiment import ExperimentPoint
from grisaille.errors import ModelError
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.initialization import Initializer
from grisaille.structure.starts.start_functions import StartFunctions
from grisaille.structure.system import FORMULA_FIELDS, System


def without_rough_signals(posed: ExperimentPoint) -> ExperimentPoint:
    """Return the same run on steps that stay, in coordinates whose equations need no derivative of infinite
    variance.
    """
    posed = posed.on_standing_steps()
    rough = _rough(posed.structure)
    if not rough:
        return posed
    structure = posed.structure
    for place in rough:
        structure = _shifted(structure, place)
    return posed.with_structure(structure, Initializer(structure))


def _rough(structure: Structure) -> list[int]:
    """Return places in u of derivatives of infinite variance that equations of motion contain."""
    system = structure.system
    found = [
        k
        for k, s in enumerate(system.signals)
        if s.kind == "disturbance"
        and s.order >= 1
        and not structure.model.disturbances[s.name].spectrum.is_white
        and s.order >= structure.model.disturbances[s.name].spectrum.pole_excess
    ]
    moving = ca.vertcat(system.rhs, system.residual, system.constraints) if found else ca.SX()
    return [k for k in found if ca.depends_on(moving, system.u[k])]


def _shifted(structure: Structure, place: int) -> Structure:
    system = structure.system
    signal = system.signals[place]
    lower = next(
        (k for k, s in enumerate(system.signals) if (s.name, s.order) == (signal.name, signal.order - 1)), None
    )
    gain = ca.simplify(ca.jacobian(system.rhs, system.u[place]))
    others = ca.vertcat(ca.vec(system.residual), ca.vec(system.constraints))
    moves = ca.depends_on(gain, ca.vertcat(system.t, system.x, system.u, system.z))
    excess = structure.model.disturbances[signal.name].spectrum.pole_excess
    if lower is None or moves or ca.depends_on(others, system.u[place]) or signal.order > excess:
        _refuse(structure, place)
    assert lower is not None
    position = system.x + gain * system.u[lower]
    # affine in the derivative, because the gain does not depend on it
    smooth = ca.substitute(system.rhs, system.u[place], ca.SX(0))
    formulas = [smooth, system.residual, system.constraints, system.observed]
    moved = ca.substitute(formulas, [system.x], [position])
    changed: System = replace(system, **{n: ca.simplify(f) for n, f in zip(FORMULA_FIELDS, moved, strict=True)})
    return replace(structure, system=changed, start_functions=StartFunctions(changed))


def _refuse(structure: Structure, place: int) -> None:
    system, signal = structure.system, structure.system.signals[place]
    rows = sorted(set(ca.jacobian_sparsity(system.rhs, system.u[place]).row()))
    named = ", ".join(system.state_names[i] for i in rows) or ", ".join(system.implicit_names)
    derivative = f"der({signal.name})" if signal.order == 1 else f"der({signal.name}, {signal.order})"
    raise ModelError(
        f"{structure.model.name} drives {named} by {derivative}, which has no value at an instant: the spectrum of "
        f"{signal.name} has the pole excess {structure.model.disturbances[signal.name].spectrum.pole_excess}. Its "
        f"integral may be finite all the same (gr.well_posedness says so), but is simulated only where {derivative} "
        f"enters an ordinary differential equation with a constant factor: write the equation for the difference, such "
        f"as q == {named.split(', ')[0]} - {signal.name}, or take a spectrum with a higher pole excess."
    )
