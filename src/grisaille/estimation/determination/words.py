"""Which unknowns the data determined, in words.

*dead*: the outputs do not move with it; *flat direction*: a combination that the outputs hardly see; *trade-off*: two
estimates that move together; *not pinned*: an interval wider than the allowed range; *at bound*: a bound, not the data,
decided. Never allowed to break a fit: it only looks at numbers that are there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.estimation.determination.combinations import Same, find_combinations
from grisaille.estimation.uncertainty import correlation_of
from grisaille.trial.unknown import Unknown

DEAD, FLAT, TRADE_OFF = 1e-6, 1e-3, 0.95


def describe_determination(
    unknowns: Sequence[Unknown],
    theta: np.ndarray,
    jacobian: np.ndarray,
    covariance: np.ndarray,
    free: np.ndarray,
    same: Same | None = None,
    unseen: np.ndarray | bool = False,
) -> list[str]:
    """Sentences, the most serious first; empty when everything is determined.

    same : whether the criterion at other values is that of the estimate
    unseen : unknowns that a search has held because nothing moved with them
    """
    notes = []
    names = [u.name for u in unknowns]
    sizes = np.array(
        [u.slope(v) if u.logarithmic else max(abs(v), u.size) for u, v in zip(unknowns, theta, strict=True)]
    )
    scaled = jacobian * sizes
    norms = np.linalg.norm(scaled, axis=0)
    largest = norms.max(initial=0.0)
    dead = norms <= DEAD * largest if largest > 0 else np.ones(len(names), dtype=bool)
    # sizes were learnt on the way; what has an error smaller than itself at the end is not dead, wherever it has been
    error = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    dead = (dead | unseen) & ~(free & (norms > 0) & (error > 0) & (error < np.abs(theta)))
    for k in map(int, np.flatnonzero(dead)):
        notes.append(f"dead: no output moves with {names[k]}; fix it, or measure something that depends on it.")
    for k in map(int, np.flatnonzero(~free & ~dead)):
        side = "lower" if abs(theta[k] - unknowns[k].lower) <= abs(theta[k] - unknowns[k].upper) else "upper"
        bound = getattr(unknowns[k], side)
        notes.append(f"at bound: {names[k]} stopped at its {side} bound {bound:g}; widen the bound or doubt the model.")
    alive = free & ~dead
    notes += _flat_directions(scaled[:, alive], [n for n, a in zip(names, alive, strict=True) if a])
    for c in find_combinations(names, theta, jacobian, alive, same):
        if not np.isfinite(covariance[c.unknowns[0], c.unknowns[0]]):
            told = " and ".join(names[k] for k in c.unknowns)
            notes.append(f"determined: {c.text} = {c.value:.6g} ± {c.std_error:.2g}, all that the data tell of {told}.")
    notes += _not_told(covariance, names, alive, notes)
    notes += _trade_offs(covariance, names, alive)
    notes += _not_pinned(unknowns, covariance, alive)
    return notes


def _flat_directions(scaled: np.ndarray, names: list[str]) -> list[str]:
    if scaled.shape[1] < 2:
        return []
    columns = scaled / np.linalg.norm(scaled, axis=0)
    _, s, vt = np.linalg.svd(columns, full_matrices=False)
    notes = []
    for value, direction in zip(s, vt, strict=True):
        if value < FLAT * s[0]:
            order = np.argsort(-np.abs(direction))
            parts = [f"{direction[k]:+.2f} {names[k]}" for k in order if abs(direction[k]) > 0.1][:5]
            notes.append(
                f"flat direction: the outputs hardly see {' '.join(parts)} (relative changes); fix one of them."
            )
    return notes


def _not_told(covariance: np.ndarray, names: list[str], free: np.ndarray, notes: list[str]) -> list[str]:
    """Unknowns of infinite variance that no sentence has named."""
    is_open = np.isinf(np.diag(covariance)) & free
    silent = [n for n, k in zip(names, is_open, strict=True) if k and not any(n in note.split() for note in notes)]
    if not silent:
        return []
    what = "it" if len(silent) == 1 else "one of them"
    return [f"not determined: the criterion does not change along {', '.join(silent)}; fix {what}."]


def _trade_offs(covariance: np.ndarray, names: list[str], alive: np.ndarray) -> list[str]:
    correlation = correlation_of(covariance)
    notes = []
    for i in range(len(names)):
        for j in range(i):
            if alive[i] and alive[j] and abs(correlation[i, j]) > TRADE_OFF:
                notes.append(f"trade-off: {names[j]} and {names[i]} are correlated by {correlation[i, j]:+.3f}.")
    return notes


def _not_pinned(unknowns: Sequence[Unknown], covariance: np.ndarray, alive: np.ndarray) -> list[str]:
    notes = []
    for k, u in enumerate(unknowns):
        span = u.upper - u.lower
        deviation = float(np.sqrt(max(covariance[k, k], 0.0)))
        if alive[k] and np.isfinite(span) and span < deviation < np.inf:
            notes.append(
                f"not pinned: the standard error of {u.name}, {deviation:.3g}, exceeds its allowed range {span:.3g}."
            )
    return notes
