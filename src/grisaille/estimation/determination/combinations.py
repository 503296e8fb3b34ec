"""Combinations that the data determine where two unknowns are not determined singly: product, quotient, sum,
difference.

Two columns of the Jacobian that are multiples of one another, J_i = c J_j, belong to a function f(θ_i, θ_j) that is all
the outputs see, with f_i / f_j = c:

    θ_i^p θ_j^q :  c = (p/q) θ_j/θ_i            θ_i ± θ_j :  c = ± 1

Its standard error is that of θ_i when θ_j is held, times |∂f/∂θ_i|.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

COLLINEARITY_TOLERANCE = 1e-6
"""1 − |cos| of two columns below which they are one."""
FORMULA_TOLERANCE = 1e-4
"""Relative distance of c from what a formula says."""
SIMPLE_POWERS = {1.0: (1, 1), -1.0: (1, -1), 2.0: (2, 1), 0.5: (1, 2), -2.0: (2, -1), -0.5: (1, -2)}
MIN_MEMBER = 1e-4
"""Part of the largest share in an open scale: unknowns with less do not belong to it."""
MAX_POWER = 4
DISTINGUISHING_FACTOR = 1.2
"""Factor of an unknown, for telling formulas with the same derivative apart."""

Same = Callable[[np.ndarray], bool]


@dataclass(frozen=True)
class Combination:
    """A function of two unknowns that the data determine although they determine neither by itself."""

    unknowns: tuple[int, int]
    text: str
    value: float
    std_error: float


def find_combinations(
    names: Sequence[str], theta: np.ndarray, jacobian: np.ndarray, alive: np.ndarray, same: Same | None = None
) -> list[Combination]:
    """Return a combination for each pair of unknowns that are not determined singly.

    jacobian : of weighted residuals, or a root of the information
    same : whether the criterion at other values is that of the estimate; decides between formulas with one derivative
    """
    kept = [int(k) for k in np.flatnonzero(alive)]
    norms = np.linalg.norm(jacobian, axis=0)
    found: list[tuple[int, int, float, str, float]] = []
    taken: set[int] = set()
    for at, i in enumerate(kept):
        for j in kept[at + 1 :]:
            if {i, j} & taken or not norms[i] * norms[j] > 0:
                continue
            cosine = float(jacobian[:, i] @ jacobian[:, j] / (norms[i] * norms[j]))
            if 1 - abs(cosine) > COLLINEARITY_TOLERANCE**2:
                continue
            ratio = float(np.sign(cosine) * norms[i] / norms[j])
            formula = _formula(names, theta, i, j, ratio, same)
            if formula is not None:
                found.append((i, j, *formula))
                taken |= {i, j}
    if not found:
        return []
    held = np.zeros(len(theta), dtype=bool)
    held[[j for _, j, *_ in found]] = True
    free = [k for k in kept if not held[k]]
    scaled = jacobian[:, free] / norms[free]
    covariance = np.linalg.pinv(scaled.T @ scaled, rcond=1e-10, hermitian=True)
    errors = dict(zip(free, np.sqrt(np.diag(covariance)) / norms[free], strict=True))
    return [Combination((i, j), text, value, abs(slope) * float(errors[i])) for i, j, value, text, slope in found]


def find_monomials(
    names: Sequence[str], theta: np.ndarray, jacobian: np.ndarray, alive: np.ndarray, among: np.ndarray
) -> list[Combination]:
    """Return products and quotients of two unknowns that the data determine where one scale of three or more is open.

    Unknowns that may change by θ_k → λ^{n_k} θ_k with small whole n_k leave θ_i^{n_j} θ_j^{−n_i} as it is.

    among : unknowns that may belong to such a scale
    """
    kept = np.flatnonzero(alive & (theta != 0.0))
    if len(kept) < 3 or jacobian.shape[0] < len(kept):
        return []
    scaled = jacobian[:, kept] * theta[kept]
    norms = np.linalg.norm(scaled, axis=0)
    if not (norms > 0).all():
        return []
    _, s, vt = np.linalg.svd(scaled / norms, full_matrices=False)
    if not (s[-1] < COLLINEARITY_TOLERANCE * s[0] <= s[-2]):  # one scale is open, not none or several
        return []
    open_scale = vt[-1] / norms
    member = np.abs(vt[-1]) > MIN_MEMBER * np.abs(vt[-1]).max()
    powers = open_scale / np.abs(open_scale[member]).min()
    if not (np.abs(powers[member]) <= MAX_POWER + 0.5).all():  # not even finite where a column is rounding
        return []
    whole = np.where(member, np.round(powers), 0.0).astype(int)
    is_whole = np.abs(powers - whole)[member].max() < FORMULA_TOLERANCE * np.abs(whole).max()
    if not is_whole or member.sum() < 3 or np.abs(whole).max() > MAX_POWER or not among[kept[member]].all():
        return []
    covariance = (vt[:-1].T / s[:-1] ** 2) @ vt[:-1] / np.outer(norms, norms)
    first, *others = (int(k) for k in np.flatnonzero(member))
    found = []
    for k in others:
        divisor = np.gcd(whole[first], whole[k]) * (1 if whole[k] > 0 else -1)
        p, q = int(whole[k] // divisor), int(-whole[first] // divisor)
        i, j = int(kept[first]), int(kept[k])
        value = float(theta[i]) ** p * float(theta[j]) ** q
        along = np.zeros(len(kept))
        along[[first, k]] = p, q
        error = abs(value) * float(np.sqrt(along @ covariance @ along))
        found.append(Combination((i, j), f"{_power(names[i], p)} {_factor(names[j], q)}", value, error))
    return found


def _formula(
    names: Sequence[str], theta: np.ndarray, i: int, j: int, ratio: float, same: Same | None
) -> tuple[float, str, float] | None:
    """Return value, text and ∂/∂θ_i of the formula that suits the ratio of derivatives."""
    a, b = float(theta[i]), float(theta[j])
    candidates = []
    if a and b:
        for power, (p, q) in SIMPLE_POWERS.items():
            if abs(ratio * a / (b * power) - 1) < FORMULA_TOLERANCE:
                value = a**p * b**q
                there = theta.copy()
                there[i], there[j] = DISTINGUISHING_FACTOR * a, b * DISTINGUISHING_FACTOR ** (-p / q)
                candidates.append((value, f"{_power(names[i], p)} {_factor(names[j], q)}", p * value / a, there))
    for sign in (1.0, -1.0):
        if abs(ratio / sign - 1) < FORMULA_TOLERANCE:
            there = theta.copy()
            change = (DISTINGUISHING_FACTOR - 1) * max(abs(a), abs(b))
            there[i], there[j] = a + change, b - sign * change
            candidates.append((a + sign * b, f"{names[i]} {'+' if sign > 0 else '-'} {names[j]}", 1.0, there))
    if len(candidates) > 1 and same is not None:
        candidates = [c for c in candidates if same(c[3])] or candidates
    return candidates[0][:3] if len(candidates) == 1 or (candidates and same is None) else None


def _power(name: str, p: int) -> str:
    return name if p == 1 else f"{name}**{p}"


def _factor(name: str, q: int) -> str:
    return f"* {_power(name, q)}" if q > 0 else f"/ {_power(name, -q)}"
