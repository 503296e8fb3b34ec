"""What output error misses by holding disturbances at zero: means of outputs that are not their values at w = 0.

A disturbance that enters linearly leaves the mean of the equations where it was. One in a square, an exponential or
beside a state moves it. How far is found by simulating with w held at ±hσ:

    E y − y(0) ≈ (y(hσ) + y(−hσ) − 2 y(0)) / (2h²)

With h = √3 these are the nodes of Gauss and Hermite: exact for squares in linear equations, whatever the bandwidth. A
disturbance that enters linearly beside a state does so much only where it is slow; there h is small and tells the
second derivative. Least squares turns a shift s of standardised predictions into −(JᵀJ)⁻¹ Jᵀ s of unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.errors import GrisailleError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.structure.descriptor.finite_variance import NoiseFilter
from grisaille.structure.descriptor.noise_filters import noise_filters
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.reduction import Structure
from grisaille.structure.switching_pieces import is_affine

CURVED, BESIDE = float(np.sqrt(3.0)), 0.1
"""h of disturbances that enter nonlinearly, and of those that only multiply what moves."""
MIN_SHIFT_TOLD = 0.3
"""Standard errors by which an estimate must be off for the shift to be told."""


def shifted_means(problem: EstimationProblem, evaluation: Evaluation, covariance: np.ndarray) -> list[str]:
    """Return notes on disturbances that shift the mean of the outputs so far that estimates are biased."""
    notes = []
    structure, outputs = problem.cases[0].trial.structure, problem.outputs
    for name, h in structure.cached_value(
        ("curved", *outputs), lambda: _entering_nonlinearly(structure, outputs)
    ).items():
        shifts = [_shift_of(problem, case, name, h, evaluation) for case in problem.cases]
        found = [s for s in shifts if s is not None]
        if len(found) < len(shifts):
            notes.append(f"{_enters(name, h)}. {_REMEDY}")
        else:
            notes += _shift_sentence(problem, _enters(name, h), found, evaluation, covariance)
    return notes


@dataclass(frozen=True)
class _Shift:
    """Of the means of one experiment's samples: standardised, and the largest one in words."""

    standardised: np.ndarray
    largest: str

    @property
    def size(self) -> float:
        return float(np.abs(self.standardised).max(initial=0.0))


def _shift_of(
    problem: EstimationProblem, case: ExperimentTerm, name: str, h: float, evaluation: Evaluation
) -> _Shift | None:
    """Return the shift by a disturbance; None where it has no variance, or the model cannot be simulated that far
    away.
    """
    theta = case.own(evaluation.theta)
    deviation = _deviation(case, name, theta)
    if case.trial.is_static or deviation is None:
        return None
    try:
        steps = case.discretisation or case.runner.discretise(theta)
        low, middle, high = (
            case.runner.predict_holding(theta, steps, {name: k * h * deviation}) for k in (-1.0, 0.0, 1.0)
        )
    except GrisailleError:
        return None
    if not (low.completed and middle.completed and high.completed):
        return None
    mean = (low.y + high.y - 2 * middle.y) / (2 * h**2)
    shifts, largest, size = [], "", 0.0
    for s in case.samples:
        column = case.column(s.output)
        sigma = problem.deviations(case, s.output, s.rows, middle, evaluation.theta)
        own = mean[s.rows, column]
        shifts.append(s.weights * own / sigma)
        k = int(np.argmax(np.abs(own))) if len(own) else 0
        if len(own) and abs(own[k] / sigma[k]) > size:
            size = float(abs(own[k] / sigma[k]))
            largest = (
                f"{s.output} moves by {own[k]:.2g} ({size:.2g} σ) at t = {case.grid[s.rows[k]]:.4g} of '{case.name}'"
            )
    return _Shift(np.concatenate(shifts) if shifts else np.zeros(0), largest)


def _shift_sentence(
    problem: EstimationProblem, enters: str, shifts: Sequence[_Shift], evaluation: Evaluation, covariance: np.ndarray
) -> list[str]:
    s = np.concatenate([shift.standardised for shift in shifts])
    error = np.sqrt(np.where(np.diag(covariance) > 0, np.diag(covariance), np.inf))
    scaled = evaluation.jacobian[: problem.count] * np.where(np.isfinite(error), error, 0.0)
    moved = -np.linalg.pinv(scaled, rcond=1e-10) @ s
    if not np.abs(moved).max(initial=0.0) > MIN_SHIFT_TOLD:
        return []
    k, worst = int(np.argmax(np.abs(moved))), max(shifts, key=lambda shift: shift.size)
    return [
        f"{enters}: {worst.largest}, and {problem.unknowns[k].name} with it by about {moved[k] * error[k]:.2g}, "
        f"{abs(moved[k]):.2g} of its standard errors. {_REMEDY}"
    ]


_REMEDY = "Use method=gr.SimulatedPEM(), which compares means."


def _enters(name: str, h: float) -> str:
    if h == CURVED:
        return f"shifted mean: {name} enters nonlinearly, so outputs where it is held at zero are not their means"
    return (
        f"shifted mean: {name} multiplies what moves, so outputs where it is held at zero are not their means; for a "
        f"slow {name}"
    )


def _entering_nonlinearly(structure: Structure, outputs: Sequence[str]) -> dict[str, float]:
    """Return coloured disturbances of which the equations are no affine function with one gain for all states, with
    h.
    """
    system, found = structure.system, {}
    measured = [system.observed[system.observed_names.index(o)] for o in outputs]
    seen = ca.vertcat(system.rhs, system.residual, *measured)
    for name, own in _symbols(structure).items():
        if structure.model.disturbances[name].spectrum.is_white:
            continue  # enters linearly, or was refused
        inside = ca.vertcat(own, system.z) if ca.depends_on(system.residual, own) else own
        if not is_affine(seen, inside):
            found[name] = CURVED
        elif ca.depends_on(ca.jacobian(seen, own), ca.vertcat(system.x, system.z)):
            found[name] = BESIDE
    return found


def _symbols(structure: Structure) -> dict[str, ca.SX]:
    """Return disturbance → its entries of u, with derivatives."""
    system = structure.system
    places: dict[str, list[int]] = {}
    for k, signal in enumerate(system.signals):
        if signal.kind == "disturbance":
            places.setdefault(signal.name, []).append(k)
    return {name: ca.vertcat(*(system.u[k] for k in mine)) for name, mine in places.items()}


def _deviation(case: ExperimentTerm, name: str, theta: np.ndarray) -> float | None:
    """Return the standard deviation of a stationary disturbance: C P Cᵀ with A P + P Aᵀ + B Bᵀ = 0."""
    import scipy.linalg

    flat = case.trial.flat
    values = evaluate_parameters(flat, case.trial.at(theta).known)
    found: NoiseFilter = noise_filters(flat, values)[list(flat.disturbances).index(name)]
    if not found.A.size or np.linalg.eigvals(found.A).real.max() >= 0:
        return None
    P = scipy.linalg.solve_continuous_lyapunov(found.A, -found.B @ found.B.T)
    return float(np.sqrt(max((found.C @ P @ found.C.T).item(), 0.0)))
