"""Several solutions of the implicit equations at the start: the one nearest to the wishes is taken.

A residual that is not linear may have several roots z at the same states. Newton's method finds one of them, which one
depends on the unknowns that tearing happened to keep. Here roots are looked for from many first values at once (steps
of all sizes along each unknown), and compared by the distances

    |(y_wish(z) − start) / nominal|   over declared algebraic variables,
    |(y_wish(z) − start) / start|     over those without a nominal value, where the first does not decide,
    |y(z) / nominal|                  over undeclared ones, where neither does,

which are distances of the user's variables, eliminated ones included. Where none differs by more than a hundredth,
nothing that was declared decides: the root whose first differing variable is larger is taken, and the start says so.

Where the derivative ∂residual/∂z keeps all principal minors positive at those first values, after a permutation and
signs of rows, the equations have one root at most (Gale and Nikaido 1965, here from samples), and nothing is iterated.

Not guaranteed: that all roots are found. Systems with more than ``MAX_UNKNOWNS`` implicit unknowns are not searched
from all
sides, only from where the declared starts point (``declared_root.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from grisaille.numerics.assignment import best_assignment
from grisaille.structure.starts.problem import StartProblem, nominal_of

MAX_UNKNOWNS = 6
FIRST_VALUE_STEPS = (1e-2, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 1e2, 1e3)
"""First values are the wishes moved by these many nominal values, up and down, one unknown at a time."""
DISTANCE_SHARES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
"""And by these parts of the distance of a root that is known."""
MAX_ITERATIONS = 30
MAX_HALVINGS = 8
SAME_DISTANCE = 1e-2


@dataclass(frozen=True, eq=False)
class NearestRoot:
    nearest: np.ndarray | None
    """(x, z); None where no root was found."""
    count: int
    note: str
    """Which roots are equally near, in the user's names; empty where the wishes decide."""


def nearest_root(problem: StartProblem, guess: np.ndarray, known: np.ndarray | None) -> NearestRoot:
    """Return the root z at the states of ``guess`` that lies nearest to the wishes, ``known`` being one of them."""
    system, scale = problem.owner.system, problem.owner.nominal
    points = [] if known is None else [known]
    first = _first_values(problem, guess, known)
    r, J = _residuals(problem, guess, first)
    if known is not None and _is_injective(J[np.isfinite(J).all(axis=(1, 2))]):
        return NearestRoot(known, 1, "")
    for z in _iterate(problem, guess, first, r, J):
        w = np.concatenate([guess[: system.nx], z])
        if all(np.abs((w - other) / (1e-3 * scale + np.abs(other))).max() > 1e-6 for other in points):
            points.append(w)
    if len(points) < 2:
        return NearestRoot(points[0] if points else None, len(points), "")
    left = nearest_of(problem, points)
    left.sort(key=lambda k: tuple(-v for v in _values(problem, points[k])))
    note = _note(problem, points[left[0]], points[left[1]]) if len(left) > 1 else ""
    return NearestRoot(points[left[0]], len(points), note)


def nearest_of(problem: StartProblem, points: Sequence[np.ndarray]) -> list[int]:
    """Return which of the points lie nearest to the wishes: several where these do not decide."""
    distances = [distances_from_starts(problem, w) for w in points]
    left = list(range(len(points)))
    for level in range(len(distances[0])):
        smallest = min(distances[k][level] for k in left)
        left = [k for k in left if distances[k][level] <= (1 + SAME_DISTANCE) * smallest]
    return left


def _first_values(problem: StartProblem, guess: np.ndarray, known: np.ndarray | None) -> np.ndarray:
    """(K, nz): the wishes moved along one unknown by all sizes, along all of them, and to the other side of a root."""
    nx = problem.owner.system.nx
    center, scale = guess[nx:], problem.owner.nominal[nx:]
    sizes = [*FIRST_VALUE_STEPS]
    if known is not None:
        # a root nearer than the known one differs by less than its distance in every unknown
        from_starts, _, from_zero = distances_from_starts(problem, known)
        distance = float(np.hypot(from_starts, from_zero))
        sizes += [part * distance for part in DISTANCE_SHARES]
    moved = [s * size * scale * along for size in sizes for s in (1, -1) for along in np.eye(len(scale))]
    random = np.random.default_rng(7)
    mixed = [size * scale * random.uniform(-1, 1, len(scale)) for size in sizes] if len(scale) > 1 else []
    across = [] if known is None else [f * (known[nx:] - center) for f in (-1.0, 0.1, 3.0, 10.0)]
    return np.asarray(center + np.array([*moved, *mixed, *across]))


def _is_injective(J: np.ndarray) -> bool:
    """Return whether all principal minors are positive at all samples (K, nz, nz), after rows are permuted and
    signed.
    """
    if not len(J):
        return False
    usual = np.median(np.abs(J), axis=0)
    P = J[:, best_assignment(np.log(usual.T + 1e-300).tolist())]
    P = P * np.sign(np.diagonal(P[0]))[:, None]
    n = P.shape[1]
    for k in range(1, n + 1):
        for chosen in combinations(range(n), k):
            minor = P[np.ix_(range(len(P)), chosen, chosen)]
            with np.errstate(over="ignore", invalid="ignore"):  # slopes of exponentials; what overflows tells nothing
                sizes = np.prod(np.linalg.norm(minor, axis=2), axis=1)
                if not (np.linalg.det(minor) > 1e-12 * sizes).all():
                    return False
    return True


def _iterate(problem: StartProblem, guess: np.ndarray, z: np.ndarray, r: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Return damped Newton steps from all first values at once; (K, nz) of those that converged."""
    scale = problem.owner.nominal[problem.owner.system.nx :]
    found: list[np.ndarray] = []
    with np.errstate(all="ignore"):
        for _ in range(MAX_ITERATIONS):
            usable = np.isfinite(r).all(axis=1) & np.isfinite(J).all(axis=(1, 2))
            z, r, J = z[usable], r[usable], J[usable]
            if not len(z):
                break
            S = J * scale
            rows = np.where((largest := np.abs(S).max(axis=2)) > 0, largest, 1.0)
            step = -(np.linalg.pinv(S / rows[:, :, None]) @ (r / rows)[:, :, None])[:, :, 0] * scale
            merit = np.linalg.norm(r / rows, axis=1)
            small = (np.abs(step) <= 1e-10 * (1e-3 * scale + np.abs(z))).all(axis=1)
            done = small & (merit <= 1e-8 * (1e-3 + np.abs(z / scale).max(axis=1)))
            found.extend(z[done] + step[done])
            z, step, merit, rows = z[~done], step[~done], merit[~done], rows[~done]
            if not len(z):
                break
            z, r, J = _damped(problem, guess, z, step, merit, rows)
    return np.array(found).reshape(-1, len(scale))


def _damped(
    problem: StartProblem, guess: np.ndarray, z: np.ndarray, step: np.ndarray, merit: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each step halved until its residual has fallen; one that does not fall is given up."""
    trial = z + step
    r, J = _residuals(problem, guess, trial)
    for halving in range(1, MAX_HALVINGS + 1):
        worse = np.flatnonzero(
            ~(np.linalg.norm(r / rows, axis=1) < merit) & (np.abs(step) > 1e-8 * np.abs(z)).any(axis=1)
        )
        if not worse.size:
            break
        trial[worse] = z[worse] + 0.5**halving * step[worse]
        r[worse], J[worse] = _residuals(problem, guess, trial[worse])
    r[worse] = np.nan
    return trial, r, J


def _residuals(problem: StartProblem, guess: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(K, nz) and (K, nz, nz) at all rows of ``z``."""
    (count, nz), nx = z.shape, problem.owner.system.nx
    x, u, p = (np.repeat(v[:, None], count, axis=1) for v in (guess[:nx], problem.u, problem.p))
    t = np.full((1, count), problem.t)
    r, J = problem.owner.functions.implicit(t, np.vstack([x, z.T]), u, p)
    slopes = np.array(J.full()).reshape(nz, count, nz).transpose(1, 0, 2)
    return np.array(r.full()).T, slopes


def distances_from_starts(problem: StartProblem, w: np.ndarray) -> tuple[float, float, float]:
    """From the declared starts of algebraic variables in nominal values, then in units of these starts where no nominal
    value is declared: a small one among large ones decides, too; and of the others from zero, in nominal values."""
    declared, names = problem.wishes[1], _names(problem)
    wished = np.array([declared.get(n, 0.0) for n in names])
    sizes = np.array([_size(problem, n) for n in names])
    is_declared = np.array([n in declared for n in names], dtype=bool)
    variables = problem.owner.structure.model.variables
    has_size = np.array([n in variables and bool(variables[n].nominal) for n in names], dtype=bool)
    off = (np.array(_values(problem, w)) - wished) / sizes
    own = off * np.where(has_size | (wished == 0.0), 1.0, sizes / np.where(wished == 0.0, 1.0, np.abs(wished)))
    declared_off, own_off, others = off[is_declared], own[is_declared], off[~is_declared]
    return float(np.linalg.norm(declared_off)), float(np.linalg.norm(own_off)), float(np.linalg.norm(others))


def _names(problem: StartProblem) -> list[str]:
    """Return variables that follow from z, each under one name or those that were declared, and what of z has no
    name.
    """
    owner = problem.owner
    aliases, declared = owner.structure.equations.aliases, problem.wishes[1]
    named = [
        n for n in owner.structure.model.variables
        if (n not in aliases or n in declared) and n in owner.observed_position and owner.is_implicit(n)
    ]  # fmt: skip
    nx = owner.system.nx
    return named + [n for k, n in enumerate(owner.system.implicit_names) if not owner.equal_names[nx + k]]


def _values(problem: StartProblem, w: np.ndarray) -> list[float]:
    owner = problem.owner
    observed = problem.observed(w)
    nameless = dict(zip(owner.system.implicit_names, w[owner.system.nx :], strict=True))
    return [
        float(observed[owner.observed_position[n]]) if n in owner.observed_position else float(nameless[n])
        for n in _names(problem)
    ]


def _size(problem: StartProblem, name: str) -> float:
    return nominal_of(problem.owner.structure.model.variables.get(name))


def _note(problem: StartProblem, taken: np.ndarray, other: np.ndarray) -> str:
    pairs = zip(_names(problem), _values(problem, taken), _values(problem, other), strict=True)
    name, a, b = next((n, a, b) for n, a, b in pairs if abs(a - b) > 1e-6 * (abs(a) + abs(b)))
    return (
        f"the equations have two solutions about equally near to the start guesses, {name} = {a:.6g} and "
        f"{name} = {b:.6g}"
        f"; the first is taken. A start of {name} decides"
    )
