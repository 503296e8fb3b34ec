"""Starting points of a multistart, spread over the ranges of the unknowns (of logarithms where these are searched).

    sobol   low-discrepancy sequence, shifted by the seed modulo 1; the first n points do not depend on how many follow
    latin   Latin hypercube: each of n equal slices of every range holds one point
    grid    centres of equal cells, as nearly ``starts`` as a whole number per unknown allows

Reference: I. M. Sobol', USSR Comput. Math. Math. Phys. 7 (1967) 86; shift: R. Cranley, T. Patterson, SIAM J. Numer.
Anal. 13 (1976) 904.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.problem import EstimationProblem
from grisaille.laws import Law
from grisaille.memory import BYTES_PER_DOUBLE, require_memory
from grisaille.study.seeds import uniforms

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

SAMPLINGS = ("sobol", "latin", "grid")
COPIES_PER_NUMBER = 8
"""Numbers that are held for each number of a start, at most."""


@dataclass(frozen=True)
class StartingPoints:
    """A variation that changes the guess and keeps the data."""

    points: np.ndarray
    """(starts, unknowns); NaN: where ``gr.fit`` would begin."""
    label: str
    changes_guess = True

    def vary(self, problem: EstimationProblem, run: int, seed: int) -> EstimationProblem:
        point = self.points[run]
        return problem.renewed(guess=np.where(np.isnan(point), problem.guess, point))

    def experiments(self, problem: EstimationProblem, run: int, seed: int) -> list[Experiment]:
        return [c.experiment for c in problem.cases]

    def header(self) -> dict[str, str]:
        """Return what must not change: a Sobol sequence may go on later, other points are a whole."""
        fixed = "" if self.label.startswith("sobol") else hashlib.sha256(self.points.tobytes()).hexdigest()[:16]
        return {"sampling": f"{self.label} {fixed}".strip()}


def make_starts(
    unknowns: Sequence[Unknown], sampling: Any, starts: int, seed: int, ranges: Mapping[str, tuple[float, float]]
) -> StartingPoints:
    """Return the points that ``sampling=`` asks for."""
    if not isinstance(sampling, str):
        points = _given_points(unknowns, sampling)
        _check_inside(unknowns, points)
        return StartingPoints(points, "given")
    if sampling not in SAMPLINGS:
        raise EstimationError(
            f"sampling is {sampling!r}; give {', '.join(map(repr, SAMPLINGS))}, a dict of values by name (a grid), a "
            f"DataFrame, or an array with one row per start."
        )
    if isinstance(starts, bool) or not isinstance(starts, int) or starts < 1:
        raise EstimationError(f"starts is {starts!r}; it must be a whole number above zero.")
    spans = [_range(u, ranges) for u in unknowns]
    _refuse_strangers(unknowns, ranges)
    _require_room(starts, len(unknowns))
    shares = {"sobol": _sobol, "latin": _latin, "grid": _grid}[sampling](starts, len(unknowns), seed)
    columns = [_place(u, span, s) for u, span, s in zip(unknowns, spans, shares.T, strict=True)]
    return StartingPoints(
        np.column_stack(columns), f"{sampling} in {[(u.name, *s) for u, s in zip(unknowns, spans, strict=True)]}"
    )


def _require_room(starts: int, dimensions: int) -> None:
    """Numbers that fill a space are powers of two, and there are some copies of them."""
    each = COPIES_PER_NUMBER * BYTES_PER_DOUBLE * dimensions
    require_memory(
        each * starts, f"{starts} starts of {dimensions} unknowns",
        lambda available: f"{available // each} starts would fit: ask for fewer.",
    )  # fmt: skip


def _sobol(starts: int, dimensions: int, seed: int) -> np.ndarray:
    from scipy.stats.qmc import Sobol

    points = Sobol(dimensions, scramble=False).random_base2(max(starts - 1, 0).bit_length())[:starts]
    return np.asarray((points + uniforms(seed, "sobol", 1, dimensions)) % 1.0)


def _latin(starts: int, dimensions: int, seed: int) -> np.ndarray:
    order = np.argsort(uniforms(seed, "latin order", starts, dimensions), axis=0)
    return np.asarray((order + uniforms(seed, "latin place", starts, dimensions)) / starts)


def _grid(starts: int, dimensions: int, seed: int) -> np.ndarray:
    each = max(1, round(starts ** (1 / dimensions)))
    centres = (np.arange(each) + 0.5) / each
    return np.array(list(itertools.product(centres, repeat=dimensions)))


def _place(unknown: Unknown, span: tuple[float, float], share: np.ndarray) -> np.ndarray:
    lower, upper = span
    if unknown.logarithmic:
        return np.asarray(np.clip(lower * (upper / lower) ** share, lower, upper))
    return np.asarray(np.clip(lower + (upper - lower) * share, lower, upper))


def _range(unknown: Unknown, ranges: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """Return the given range, the bounds, or the central 95 % of a prior; levels of noise may begin where ``gr.fit``
    would.
    """
    base = unknown.name.partition("@")[0]
    lower, upper = ranges.get(unknown.name, ranges.get(base, _believed(unknown)))
    lower, upper = max(float(lower), unknown.lower), min(float(upper), unknown.upper)
    if unknown.kind in ("scale", "noise") and not np.isfinite(upper):
        return np.nan, np.nan
    if unknown.logarithmic and np.isfinite(upper) and lower <= 0:
        lower = np.nan
    if not (np.isfinite(lower) and np.isfinite(upper)):
        raise EstimationError(
            f"Starts of '{unknown.name}' need a finite range{' above zero' if unknown.logarithmic else ''}: give "
            f"bounds={{'{unknown.name}': (…, …)}}, or ranges={{…}} if the fit itself is to stay free."
        )
    if not lower <= upper:
        raise EstimationError(f"The range of '{unknown.name}' is ({lower:g}, {upper:g}): nothing lies in it.")
    return lower, upper


def _believed(unknown: Unknown) -> tuple[float, float]:
    prior = unknown.prior
    if np.isfinite(unknown.lower) and np.isfinite(unknown.upper):
        return unknown.lower, unknown.upper
    if isinstance(prior, Law):
        return prior.central
    return unknown.lower, unknown.upper


def _given_points(unknowns: Sequence[Unknown], sampling: Any) -> np.ndarray:
    """Return a dict spans a grid, a frame names its columns, an array has one column per unknown."""
    names = [u.name for u in unknowns]
    if isinstance(sampling, Mapping) or hasattr(sampling, "columns"):
        if not len(sampling):
            raise EstimationError("sampling= holds no points.")
        columns = list(sampling) if isinstance(sampling, Mapping) else [str(c) for c in sampling.columns]
        _refuse_strangers(unknowns, dict.fromkeys(columns), "sampling")
        if isinstance(sampling, Mapping):
            _require_room(math.prod(len(values) for values in sampling.values()), len(columns))
        rows = itertools.product(*sampling.values()) if isinstance(sampling, Mapping) else sampling.to_numpy()
        listed = np.array(list(rows), dtype=float).reshape(-1, len(columns))
        points = np.full((len(listed), len(names)), np.nan)
        points[:, [names.index(c) for c in columns]] = listed
    else:
        points = np.array(sampling, dtype=float)
        if points.ndim != 2 or points.shape[1] != len(names):
            raise EstimationError(
                f"sampling is an array of shape {points.shape}; it needs one column for each of {', '.join(names)}."
            )
    if not len(points):
        raise EstimationError("sampling= holds no points.")
    return points


def _check_inside(unknowns: Sequence[Unknown], points: np.ndarray) -> None:
    for k, unknown in enumerate(unknowns):
        outside = (points[:, k] < unknown.lower) | (points[:, k] > unknown.upper) | np.isinf(points[:, k])
        if unknown.logarithmic:
            outside |= points[:, k] <= 0
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            raise EstimationError(
                f"sampling=: start {row} has {unknown.name} = {points[row, k]:g}, outside ({unknown.lower:g}, "
                f"{unknown.upper:g})."
            )


def _refuse_strangers(unknowns: Sequence[Unknown], given: Mapping[str, object], what: str = "ranges") -> None:
    names = {u.name for u in unknowns}
    allowed = names | {n.partition("@")[0] for n in names} if what == "ranges" else names
    for name in given:
        if name not in allowed:
            raise EstimationError(
                f"{what}= names '{name}', which is not estimated; estimated: {', '.join(sorted(names))}."
            )
