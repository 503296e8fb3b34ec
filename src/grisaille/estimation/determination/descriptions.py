"""Which unknowns the data determined, in words.

*dead*: the outputs do not move with it; *flat direction*: a combination that the outputs hardly see; *trade-off*: two
estimates that move together; *not pinned*: an interval wider than the allowed range; *at bound*: a bound, not the data,
decided. Never allowed to break a fit: it only looks at numbers that are there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.determination.combinations import Same, find_combinations, find_monomials
from grisaille.estimation.uncertainty import correlation_of

DEAD, FLAT, TRADE_OFF = 1e-6, 1e-3, 0.95
MAX_SEPARATE_SENTENCES = 3
"""Up to so many sentences of one kind stand by themselves; more are one note."""
ROWS, LISTED = 20, 5
"""Rows of such a note, and entries of a row, that are written out."""
NAMED_PART, TAKES_PART = 0.1, 0.02
"""Shares of an unknown in a flat direction from which on it is named, and its correlations follow from that."""


def describe_determination(
    unknowns: Sequence[Unknown],
    theta: np.ndarray,
    jacobian: np.ndarray,
    covariance: np.ndarray,
    free: np.ndarray,
    same: Same | None = None,
    unseen: np.ndarray | bool = False,
) -> list[str]:
    """Return sentences, the most serious first; empty when everything is determined.

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
    # what went to its bound by itself was seen on the way, as numbers of laws are that become others there
    dead &= free | (theta == [u.guess for u in unknowns])
    notes += _dead([names[k] for k in np.flatnonzero(dead)])
    for k in map(int, np.flatnonzero(~free & ~dead)):
        side = "lower" if abs(theta[k] - unknowns[k].lower) <= abs(theta[k] - unknowns[k].upper) else "upper"
        bound = getattr(unknowns[k], side)
        notes.append(f"at bound: {names[k]} stopped at its {side} bound {bound:g}; widen the bound or doubt the model.")
    alive = free & ~dead
    flat, together = _flat_directions(scaled[:, alive], [n for n, a in zip(names, alive, strict=True) if a])
    notes += flat
    pairs = find_combinations(names, theta, jacobian, alive, same)
    within = {k for c in pairs for k in c.unknowns}
    rest = alive & ~np.isin(np.arange(len(names)), list(within))
    for c in [*pairs, *find_monomials(names, theta, jacobian, alive, rest)]:
        if not np.isfinite(covariance[c.unknowns[0], c.unknowns[0]]):
            told = " and ".join(names[k] for k in c.unknowns)
            notes.append(
                f"determined: {c.text} = {c.value:.6g} ± {c.std_error:.2g}, all that the data determine of {told}."
            )
    notes += _not_told(covariance, names, alive, notes)
    notes += _trade_offs(covariance, names, alive, together)
    notes += _not_pinned(unknowns, covariance, alive)
    return notes


def _dead(names: list[str]) -> list[str]:
    if len(names) > MAX_SEPARATE_SENTENCES:
        listed = ", ".join(names)
        return [f"dead: no output depends on {listed}; fix them, or measure something that depends on them."]
    return [f"dead: no output depends on {n}; fix it, or measure something that depends on it." for n in names]


def _flat_directions(scaled: np.ndarray, names: list[str]) -> tuple[list[str], list[set[str]]]:
    """Return what to say, and the unknowns that take part in each direction."""
    if scaled.shape[1] < 2:
        return [], []
    norms = np.linalg.norm(scaled, axis=0)
    _, s, vt = np.linalg.svd(scaled / norms, full_matrices=False)
    said, together = [], []
    for value, direction in zip(s, vt, strict=True):
        if value < FLAT * s[0]:
            order = np.argsort(-np.abs(direction))
            relative = direction / norms
            relative /= np.abs(relative[np.abs(direction) > NAMED_PART]).max()
            parts = [f"{relative[k]:+.2g} {names[k]}" for k in order if abs(direction[k]) > NAMED_PART]
            more = f" … ({len(parts)} in all)" if len(parts) > LISTED else ""
            said.append(" ".join(parts[:LISTED]) + more)
            together.append({names[k] for k in order if abs(direction[k]) > TAKES_PART})
    if len(said) > MAX_SEPARATE_SENTENCES:
        rows = "".join(f"\n    {direction};" for direction in said[:ROWS])
        more = f"\n    … and {len(said) - ROWS} more;" if len(said) > ROWS else ""
        return [
            f"flat directions: the outputs hardly see {len(said)} combinations (relative changes); fix as many of "
            f"their unknowns:{rows}{more}"
        ], together
    return [
        f"flat direction: the outputs hardly see {direction} (relative changes); fix one of them." for direction in said
    ], together


def _not_told(covariance: np.ndarray, names: list[str], free: np.ndarray, notes: list[str]) -> list[str]:
    """Return unknowns of infinite variance that no sentence has named."""
    is_open = np.isinf(np.diag(covariance)) & free
    silent = [n for n, k in zip(names, is_open, strict=True) if k and not any(n in note.split() for note in notes)]
    if not silent:
        return []
    what = "it" if len(silent) == 1 else "one of them"
    return [f"not determined: the criterion does not change along {', '.join(silent)}; fix {what}."]


def _trade_offs(
    covariance: np.ndarray, names: list[str], alive: np.ndarray, together: Sequence[set[str]] = ()
) -> list[str]:
    """Describe pairs of correlated unknowns, as a table where they are many; those of one flat direction are described
    by it.
    """
    correlation = correlation_of(covariance)
    found = [
        (j, i) for i in range(len(names)) for j in range(i)
        if alive[i] and alive[j] and abs(correlation[i, j]) > TRADE_OFF
        and not any({names[i], names[j]} <= group for group in together)
    ]  # fmt: skip
    if len(found) <= MAX_SEPARATE_SENTENCES:
        return [f"trade-off: {names[j]} and {names[i]} are correlated by {correlation[i, j]:+.3f}." for j, i in found]
    rows: dict[int, list[str]] = {}
    for j, i in found:
        rows.setdefault(j, []).append(f"{names[i]} {correlation[i, j]:+.3f}")
    width = max(len(names[j]) for j in rows)
    shown = [
        f"\n    {names[j]:<{width}}  with {', '.join(others[:LISTED])}{f' … ({len(others)})' * (len(others) > LISTED)};"
        for j, others in list(rows.items())[:ROWS]
    ]
    more = f"\n    … and {len(rows) - ROWS} more;" if len(rows) > ROWS else ""
    return [
        f"trade-off: {len(found)} pairs of {len({k for pair in found for k in pair})} estimates are correlated by more "
        f"than {TRADE_OFF} (fit.correlation has all):{''.join(shown)}{more}"
    ]


def _not_pinned(unknowns: Sequence[Unknown], covariance: np.ndarray, alive: np.ndarray) -> list[str]:
    found = []
    for k, u in enumerate(unknowns):
        span = u.upper - u.lower
        deviation = float(np.sqrt(max(covariance[k, k], 0.0)))
        if alive[k] and np.isfinite(span) and span < deviation < np.inf:
            found.append((u.name, deviation, span))
    if len(found) > MAX_SEPARATE_SENTENCES:
        listed = ", ".join(f"{name} ({deviation:.3g} for {span:.3g})" for name, deviation, span in found)
        return [f"not pinned: standard errors exceed the allowed ranges of {listed}."]
    return [
        f"not pinned: the standard error of {name}, {deviation:.3g}, exceeds its allowed range {span:.3g}."
        for name, deviation, span in found
    ]
