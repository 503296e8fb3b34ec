"""The number of substeps of a nonlinear filter between samples: chosen at the guess, then fixed.

Steps per cell are doubled until log L stays. Runge–Kutta steps of the moments converge with the fourth power of their
length, linearised ones with the second; the change by the last doubling, divided by 15 or 3, is what the finer
steps still miss, unless it is small by chance: errors of many cells may cancel. So it must not be much smaller than the
change before says, nor, where there is none before, than what single cells commit. From ``ALWAYS_ALLOWED_STEPS`` steps
on only
those cells are refined that need it (``local_errors``): together they make up nearly all of the error that single cells
commit. Fewer than ``COMPARISON_STEPS`` steps are taken only where so many say the same. Bumps that no step meets are
looked for
along the mean (``passed_steps``). Where the search has ended, steps are taken away again from cells that do not need
them (``step_thinning``).

Beyond ``MAX_OPERATIONS``, counted in operations so that every machine decides alike, steps are taken that move log L
by less than
``MIN_EFFECT``: a change by 0.02 moves an estimate by at most a fifth of its standard error.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.errors import EstimationError
from grisaille.filtering.algebraic_roots import UnsolvedError
from grisaille.filtering.kalman import Whole
from grisaille.filtering.passes import Passes
from grisaille.filtering.stepping.expm_scaling import freeze_doublings, lower_doublings
from grisaille.filtering.stepping.local_errors import local_errors
from grisaille.filtering.stepping.skipped_features import cut_to_meet
from grisaille.filtering.stepping.step_passes import StepPasses
from grisaille.filtering.stepping.step_thinning import thin_steps

ALWAYS_ALLOWED_STEPS = 16
"""Steps that every cell may have."""
USUAL_STEPS = 128
"""Steps per cell that are never too much work on average."""
MAX_OPERATIONS = 2e8
"""Operations of one pass over a record without derivatives."""
NEARLY_ALL = 0.98
"""Part of the error whose cells are refined."""
MIN_EFFECT = 0.02
MAX_USELESS_REFINEMENTS = 3
"""Refinements in a row that do not lower the change by a doubling, until a model counts as hopeless."""
MAX_NEWTON = 32
CHANCE_TOLERANCES = {"moments": 24.0, "square-root": 24.0, "linearize": 6.0}
"""Tolerances by which log L may have changed with the doubling before: its order, and a half more."""
COMPARISON_STEPS = 8
"""Steps everywhere with which log L is compared before fewer are taken: those may all step over what is sharp."""
OPERATIONS_ALWAYS_ALLOWED = 4e6
"""Operations of a pass that are never too many to meet bumps."""
MAX_BUMP_SEARCHES = 2
"""How often bumps that steps pass are looked for."""
MAX_HIDDEN_ERROR = 0.5
"""Errors of single cells, √Σ e² in standard deviations, that a first doubling does not hide."""
TOLERANCE = {"moments": (1e-6, 1e-7), "square-root": (1e-6, 1e-7), "linearize": (1e-3, 1e-5)}
"""Change of log L by a doubling that ends the search: absolute, and relative to |log L|."""


def choose_substeps(filter: Passes, q: Floats, x0: Floats, z0: Floats | None = None, values: str = "") -> None:
    """Choose steps for every cell from which on halving them does not change log L, and set them on the filter.

    values : of the unknowns, in words, for a refusal
    """
    passes = StepPasses(filter, q, x0, z0)
    filter.substeps, filter.finer = 1, None
    freeze_doublings(passes)
    while True:
        try:
            value, change = _choose(passes, values)
            break
        except UnsolvedError:
            if filter.newton >= MAX_NEWTON:
                raise
            filter.newton *= 2
            filter.substeps, filter.finer = 1, None
    value, change = _meet_bumps(passes, value, change, values)
    if not filter.has_moving_cells:
        thin_steps(passes, value, max(change, tolerance(filter, value)))
    lower_doublings(passes)


def _meet_bumps(passes: StepPasses, value: float, change: float, values: str) -> tuple[float, float]:
    """Shorten steps that skip bumps, where log L depends on them: a bump that no step meets does not show in log L."""
    filter = passes.filter
    for _ in range(MAX_BUMP_SEARCHES):
        before = filter.substeps, filter.finer
        if not cut_to_meet(passes, OPERATIONS_ALWAYS_ALLOWED):
            break
        if abs(passes.value() - value) < tolerance(filter, value):
            filter.substeps, filter.finer = before
            break
        value, change = _choose(passes, values)
    return value, change


def tolerance(filter: Passes, value: float) -> float:
    """Change of log L by a doubling of all steps that ends the search for them."""
    absolute, relative = TOLERANCE[filter.kind.propagation]
    return absolute + relative * abs(value)


def _choose(passes: StepPasses, values: str) -> tuple[float, float]:
    """Return log L with the steps that were found, and how far it was without the last doubling."""
    filter = passes.filter
    value, best, stalled, before = passes.value(), np.inf, 0, np.nan
    while True:
        steps = filter.steps(passes.q)
        filter.substeps *= 2
        finer = passes.value()
        change = abs(finer - value) if np.isfinite(finer) and np.isfinite(value) else np.inf
        if change < tolerance(filter, finer) and not _is_chance(passes, steps, finer, before):
            if filter.substeps >= COMPARISON_STEPS:
                return finer, change
            look = passes.value(filter.on(replace(filter.discretisation, substeps=COMPARISON_STEPS)))
            if not abs(look - finer) > tolerance(filter, finer):
                return finer, change
            filter.substeps, finer, change = COMPARISON_STEPS, look, abs(look - finer)
        before = change
        if filter.substeps < ALWAYS_ALLOWED_STEPS:
            value = finer
            continue
        if filter.roots is not None:
            passes.require_solved()
        is_too_much = filter.operations(passes.q) > max(
            MAX_OPERATIONS, USUAL_STEPS * len(steps) * filter.program.instructions
        )
        stalled = stalled + 1 if steps.max() >= USUAL_STEPS / 2 and not change < best else 0
        if is_too_much or stalled == MAX_USELESS_REFINEMENTS or (stalled and not np.isfinite(finer)):
            if change < MIN_EFFECT:
                return finer, change
            raise EstimationError(_too_stiff(filter, passes.q, value, finer, values))
        best = min(best, change)
        value = _refine(passes, steps, value, finer)


def _is_chance(passes: StepPasses, steps: Whole, value: float, before: float) -> bool:
    """Return whether a change of log L below the tolerance contradicts the one before, or the errors of single
    cells.
    """
    if not np.isnan(before):
        return before > CHANCE_TOLERANCES[passes.filter.kind.propagation] * tolerance(passes.filter, value)
    return bool(np.sqrt(np.sum(local_errors(passes, steps) ** 2)) > MAX_HIDDEN_ERROR)


def _refine(passes: StepPasses, steps: Whole, value: float, finer: float) -> float:
    """Halve the steps of the cells that need it; return log L with the steps that are then taken."""
    filter = passes.filter
    if filter.has_moving_cells or not (np.isfinite(value) and np.isfinite(finer)):
        return finer
    errors = local_errors(passes, steps)
    order = np.argsort(errors)[::-1]
    total = np.cumsum(errors[order])
    if not (np.isfinite(total[-1]) and total[-1] > 0):
        return finer
    marked = order[: 1 + int(np.searchsorted(total, NEARLY_ALL * total[-1]))]
    if len(marked) > 0.8 * len(errors):
        return finer
    chosen = steps.copy()
    chosen[marked] *= 2
    filter.substeps = int(np.gcd.reduce(chosen))
    filter.finer = chosen // filter.substeps
    return passes.value()


def _too_stiff(filter: Passes, q: Floats, value: float, finer: float, values: str) -> str:
    stiff = (
        "the model is too stiff for explicit steps, or runs away. Try gr.KalmanML(propagation='linearize'), another "
        if filter.kind.propagation != "linearize"
        else "the model changes fast between samples, or runs away. Try another "
    )
    most, at = int(filter.steps(q).max()), f" at {values}" if values else ""
    return (
        f"The {filter.kind.update} filter needs more than {most} steps between samples{at} (log L = {finer:.6g} with "
        f"{most}, {value:.6g} with {most // 2}): {stiff}guess, or set gr.KalmanML(substeps=…)."
    )
