"""The number of steps in each cell of an ensemble's grid: found once with two realizations, then used for all.

The error of n steps per cell is estimated by comparison with 2n; Runge–Kutta steps of fourth order make

    error(n) ≈ |y_n − y_2n| / (1 − 2⁻⁴),

relative to rtol · (largest value + 0.001 nominal) of each variable; of one that stays far below a nominal value that
nobody declared, its own size takes the place of that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.model.flat import FlatModel
from grisaille.simulation.ensembles.engines import Engine, EnsembleSetup
from grisaille.simulation.ensembles.ensemble_starts import EnsembleStarts
from grisaille.simulation.ensembles.skipped_features import SkippedFeature, narrowest_skipped_feature
from grisaille.simulation.nominal_sizes import nominal_or_own
from grisaille.structure.bends import bends_of

Floats = NDArray[np.float64]
MAX_SUBSTEPS = 64
TRUSTED_SUBSTEPS = 16
"""Steps per cell from which on a realization that becomes infinite is taken to do so by itself, not by instability."""


@dataclass(frozen=True)
class Pilot:
    substeps: int
    """Zero where an integrator chose its own steps."""
    error: float
    """In units of the tolerance."""
    is_unstable: bool = False
    """Whether even the finest steps did not stay finite or did not converge: the model is stiff."""
    remark: str = ""
    passed: str = ""
    """What steps may have gone over."""


def choose_substeps(
    engine: Callable[[EnsembleSetup], Engine],
    setting: EnsembleSetup,
    model: FlatModel,
    rtol: float,
    enough: float = 0.0,
) -> Pilot:
    """Return the smallest power of two that meets the tolerance; rough paths (bridges) may miss it.

    enough : relative error with which the caller is content where no number of steps meets the tolerance

    Where states pass bumps that no step of these would meet, more steps are compared.
    """
    small = _of_two(setting)
    found = _compared(engine, small, setting, model, rtol, enough, 1)
    if found.is_unstable:
        return found
    passed = narrowest_skipped_feature(engine, replace(small, substeps=found.substeps), rtol)
    if passed is None or passed.substeps <= 2 * found.substeps:
        return found
    least = 1 << (passed.substeps - 1).bit_length()
    if least <= MAX_SUBSTEPS:
        return _compared(engine, small, setting, model, rtol, enough, least)
    return replace(found, passed=say_passed(passed, found.substeps, setting, model))


def say_passed(passed: SkippedFeature, substeps: int, setting: EnsembleSetup, model: FlatModel) -> str:
    """Warn of a bump that steps skip, and return the note on it."""
    sentence = describe_passed(passed, substeps, setting)
    warnings.warn(
        f"{model.name}: {sentence}. Give a step= that is shorter, or make it wider.", UserWarning, stacklevel=6
    )
    return sentence


def describe_passed(passed: SkippedFeature, substeps: int, setting: EnsembleSetup) -> str:
    """Return the note on a bump that steps skip."""
    h = float(np.diff(setting.grid.points).max()) / substeps
    return (
        f"steps of {h:.3g} pass what changes with the states for {passed.width:.2g} only, near t = {passed.time:.5g}, "
        f"where {passed.text} is zero: it is missed, or met by chance"
    )


def slopes_differ(
    engine: Callable[[EnsembleSetup], Engine], setting: EnsembleSetup, pilot: Pilot, enough: float
) -> bool:
    """Return whether derivatives change by more than ``enough`` of their size when steps are halved, where equations
    bend, or trajectories do so by more than their tolerance.

    Steps that end on both sides of a bend count each side by the stages that happen to lie there: trajectories are
    nearly right where derivatives are not.
    """
    moved = ca.vertcat(setting.system.x, setting.system.u)
    if not len(setting.dp) or not any(bends.numel() for bends in bends_of(setting.system.rhs, moved)):
        return False
    if pilot.passed or not pilot.error <= 1.0:
        return True
    small = _of_two(setting, moves=True)
    coarse, fine = (_slopes(engine, small, n) for n in (pilot.substeps, 2 * pilot.substeps))
    with np.errstate(invalid="ignore"):
        change, size = np.abs(fine - coarse).max(axis=(0, 1)), np.abs(fine).max(axis=(0, 1))
    told = np.isfinite(change) & (size > 0)
    return bool((change[told] > enough * size[told]).any())


def _slopes(engine: Callable[[EnsembleSetup], Engine], s: EnsembleSetup, substeps: int) -> Floats:
    (answer,) = engine(replace(s, substeps=substeps)).run([slice(0, s.grid.kept.size)], (), False, True, None)
    return np.asarray(answer.sy)


def _compared(
    engine: Callable[[EnsembleSetup], Engine], small: EnsembleSetup, setting: EnsembleSetup, model: FlatModel,
    rtol: float,
    enough: float, least: int,
) -> Pilot:  # fmt: skip
    """Return the number of steps, ``least`` or more."""
    names = [setting.system.observed_names[i] for i in setting.observed]
    nominal, is_free = np.array([nominal_of(model, n) for n in names]), has_no_nominal(model, names)
    substeps, coarse = least, _rows(engine, small, least)
    tried: list[Pilot] = []
    while True:
        fine = _rows(engine, small, 2 * substeps)
        floor = 1e-3 * nominal_or_own(nominal, is_free, names, np.abs(fine).max(axis=(0, 1), initial=0.0), rtol)
        error = _error(coarse, fine, floor, rtol, is_trusted=substeps >= TRUSTED_SUBSTEPS)
        tried.append(Pilot(substeps, error))
        if error <= 1.0:
            return tried[-1]
        if 2 * substeps > MAX_SUBSTEPS:
            break
        substeps, coarse = 2 * substeps, fine
    if error * rtol <= enough:
        too_coarse = [k for k, p in enumerate(tried) if not p.error * rtol <= enough]
        return tried[max(too_coarse, default=-1) + 1]
    unstable = not np.isfinite(error)
    if not unstable and setting.between != "exact":
        warnings.warn(
            f"{model.name}: {substeps} steps per cell leave an error of {error:.2g} times rtol; the model may not be "
            f"smooth. Give a smaller step=, or a larger rtol=.",
            UserWarning,
            stacklevel=5,
        )
    return Pilot(substeps, error, unstable)


def _of_two(s: EnsembleSetup, moves: bool = False) -> EnsembleSetup:
    """Return the first two realizations, with derivatives where ``moves``."""
    count = min(2, s.count)
    own = (s.starts.x, s.starts.z) if s.starts.x.ndim == 1 else (s.starts.x[:count], s.starts.z[:count])
    if moves:
        slopes = (a[:count] if a.ndim == 3 else a for a in (s.starts.sx, s.starts.sz))
        return replace(s, count=count, starts=EnsembleStarts(*own, *slopes))
    nothing = EnsembleStarts(*own, np.zeros((0, s.starts.x.shape[-1])), np.zeros((0, s.starts.z.shape[-1])))
    values = replace(s.values, dp=np.zeros((0, s.dp.shape[1])), dscales={})
    return replace(s, count=count, starts=nothing, dp=values.dp, values=values)


def _rows(engine: Callable[[EnsembleSetup], Engine], s: EnsembleSetup, substeps: int) -> Floats:
    (answer,) = engine(replace(s, substeps=substeps)).run([slice(0, s.grid.kept.size)], (), False, True, None)
    return np.asarray(answer.y)


def _error(coarse: Floats, fine: Floats, floor: Floats, rtol: float, is_trusted: bool) -> float:
    """Return the largest scaled change; infinite where it has no value."""
    counted = np.ones(fine.shape[:2], dtype=bool)
    for m in range(len(fine)):
        ends = [_first_bad(y[m]) for y in (coarse, fine)]
        if min(ends) < fine.shape[1]:
            if not is_trusted or abs(ends[0] - ends[1]) > 1 + 0.1 * max(ends):
                return float("inf")
            # near the instant at which it becomes infinite no step is short enough
            counted[m, min(ends) // 2 :] = False
    with np.errstate(invalid="ignore"):
        change = np.where(counted[..., None], np.abs(fine - coarse), 0.0) / (1 - 2.0**-4)
        size = np.where(counted[..., None], np.abs(fine), 0.0)
    largest = np.nan_to_num(size, nan=0.0).max(axis=(0, 1), initial=0.0) + floor
    worst = np.nan_to_num(change, nan=0.0).max(axis=(0, 1), initial=0.0)
    return float((worst / largest).max(initial=0.0)) / rtol


def _first_bad(y: Floats) -> int:
    """Return the first instant from which on something that was finite is not."""
    bad = (~np.isfinite(y) & np.isfinite(y[0])).any(axis=1)
    return int(np.argmax(bad)) if bad.any() else len(y)


def has_no_nominal(model: FlatModel, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which quantities have no declared nominal value."""
    return np.array([n not in model.variables or not model.variables[n].nominal for n in names], dtype=bool)


def nominal_of(model: FlatModel, name: str) -> float:
    """Return the nominal size of a variable; one for other quantities."""
    variable = model.variables.get(name)
    return float(variable.nominal) if variable is not None and variable.nominal else 1.0
