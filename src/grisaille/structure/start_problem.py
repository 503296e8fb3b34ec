"""One start: what must hold, what is wished for, and the damped iteration on the two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.hierarchy import solve_levels
from grisaille.structure.start_refusal import refuse_start

if TYPE_CHECKING:
    from grisaille.structure.initialization import Initializer

MAXIMUM_ITERATIONS = 60
TOLERANCE = 1e-11
"""On scaled corrections and scaled residuals; starts enter every later digit."""


class StartProblem:
    """One start: given time, signals, parameters and demands."""

    def __init__(
        self, owner: Initializer, t: float, u: np.ndarray, p: np.ndarray, demands: dict[str, float], steady: bool
    ) -> None:
        self.owner, self.t, self.u, self.p, self.steady = owner, t, u, p, steady
        declared = owner.declared
        is_given = np.array([float(n in demands) for n in declared.referred])
        given = np.array([demands.get(n, 0.0) for n in declared.referred])
        values, slopes, given_slopes = owner.start_values(p, is_given, given)
        numbers = np.array(values.full()).ravel()
        self.slopes = np.array(slopes.full()).reshape(len(numbers), len(p))
        self.given_slopes = np.array(given_slopes.full()).reshape(len(numbers), len(declared.referred))
        self.rows = {n: k for k, n in enumerate(declared.names)}
        for name, value in zip(declared.names, numbers, strict=True):
            if not np.isfinite(value):
                raise StructureError(f"The start of '{name}' is {value} at the given parameters; give a finite start.")
        self.given = demands
        self.demands = {n: float(v) for n, v, f in zip(declared.names, numbers, declared.fixed, strict=True) if f}
        self.demands.update(demands)
        if steady:
            self.demands = dict(demands)
        wishes = {n: float(v) for n, v in zip(declared.names, numbers, strict=True) if n not in self.demands}
        self.wishes = [{n: v for n, v in wishes.items() if self._is_differential(n) is d} for d in (True, False)]
        self.wishes = [self._movable(level) for level in self.wishes]
        self.names = list(owner.system.constraint_texts) + list(owner.system.residual_texts)

    def _root(self, name: str) -> str:
        return self.owner.structure.equations.aliases.get(name, name).lstrip("-")

    def _is_differential(self, name: str) -> bool:
        equations = self.owner.structure.equations
        root = self._root(name)
        return root in equations.unknowns and self.owner.structure.offsets.unknowns[equations.unknowns.index(root)] > 0

    def _movable(self, level: dict[str, float]) -> dict[str, float]:
        return {n: v for n, v in level.items() if self._root(n) in self.owner.structure.equations.unknowns}

    def evaluate(self, function: ca.Function, w: np.ndarray) -> list[np.ndarray]:
        value, jw, jp = function(self.t, w, self.u, self.p)
        return [np.array(value.full()).ravel(), np.array(jw.full()), np.array(jp.full())]

    def observed_rows(self, observed: list[np.ndarray], names: list[str]) -> list[np.ndarray]:
        index = [self.owner.observed_position[n] for n in names]
        return [a[index] for a in observed]

    def hard(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
        """Residuals, ∂/∂w, ∂/∂p and names of everything that must hold."""
        parts = [self.evaluate(self.owner.functions.hard, w)]
        names = list(self.names)
        if self.steady:
            parts.append(self.evaluate(self.owner.functions.rates, w))
            names += [f"der({n}) == 0 (steady state)" for n in self.owner.system.state_names]
        if self.demands:
            value, jw, jp = self.observed_rows(self.evaluate(self.owner.functions.observed, w), list(self.demands))
            parts.append([value - np.array(list(self.demands.values())), jw, jp])
            names += [f"start of {n} = {v:g}" for n, v in self.demands.items()]
        value, jw, jp = (np.concatenate([part[k] for part in parts]) for k in range(3))
        return value, jw, jp, names

    def soft(self, w: np.ndarray, guess: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Wishes and closeness to the guess as (matrix, right-hand side), in scaled unknowns."""
        scale = self.owner.nominal
        observed = self.evaluate(self.owner.functions.observed, w)
        levels = []
        for wishes in self.wishes:
            if wishes:
                value, jw, _ = self.observed_rows(observed, list(wishes))
                size = np.array([nominal_of(self.owner.structure.model.variables[n]) for n in wishes])
                levels.append((jw * scale / size[:, None], (np.array(list(wishes.values())) - value) / size))
        levels.append((np.eye(len(w)), (guess - w) / scale))
        return levels

    def first_guess(self) -> np.ndarray:
        """Wishes and demands read into w where they name an entry of it, zero elsewhere."""
        wanted = {**self.wishes[1], **self.wishes[0], **self.demands}
        system = self.owner.system
        w = np.array([wanted.get(n, 0.0) for n in (*system.state_names, *system.implicit_names)])
        for name, value in wanted.items():
            root = self.owner.structure.equations.aliases.get(name)
            for k, entry in enumerate((*system.state_names, *system.implicit_names)):
                if root is not None and root.lstrip("-") == entry and entry not in wanted:
                    w[k] = -value if root.startswith("-") else value
        return w

    def solve(self, guess: np.ndarray) -> np.ndarray:
        value = self.hard(guess)[0]
        if not np.isfinite(value).all():
            guess = self._finite_guess(guess)
        elif self._holds_already(guess, value):
            return guess
        for start in chain([guess], self._moved_guesses(guess)):
            w, converged = self._newton(start, start, 0.0)
            if converged:
                return w
        w, converged = self._homotopy(guess)
        if not converged:
            refuse_start(self, w, MAXIMUM_ITERATIONS)
        return w

    def _holds_already(self, w: np.ndarray, hard: np.ndarray) -> bool:
        """Whether a point meets everything to rounding, as it does for models without constraints."""
        if np.abs(hard).max(initial=0.0) > 1e-14:
            return False
        wanted = {**self.wishes[0], **self.wishes[1]}
        if not wanted:
            return True
        observed = self.evaluate(self.owner.functions.observed, w)[0]
        got = np.array([observed[self.owner.observed_position[n]] for n in wanted])
        return bool(np.array_equal(got, list(wanted.values())))

    def _moved_guesses(self, guess: np.ndarray) -> Iterator[np.ndarray]:
        """Entries moved off their first values, where squares and products have no slope: first those without a
        declared start, then all that are not demanded."""
        random = np.random.default_rng(7)
        names = (*self.owner.system.state_names, *self.owner.system.implicit_names)
        movable = np.array([n not in self.demands for n in names])
        for free, sizes in ((self._undeclared(), (0.1, 1.0, 3.0, 10.0)), (movable, (0.1, 1.0, 3.0))):
            for size in sizes if free.any() else ():
                yield guess + size * random.uniform(-1, 1, len(guess)) * self.owner.nominal * free

    def _undeclared(self) -> np.ndarray:
        names = (*self.owner.system.state_names, *self.owner.system.implicit_names)
        wanted = {**self.wishes[1], **self.wishes[0], **self.demands}
        return np.array([n not in wanted for n in names])

    def _finite_guess(self, guess: np.ndarray) -> np.ndarray:
        """A point near the guess where all equations have values: undeclared entries are moved off zero."""
        names = (*self.owner.system.state_names, *self.owner.system.implicit_names)
        free = self._undeclared()
        for shift in (1.0, 1e-3, -1.0, 10.0):
            trial = guess + shift * self.owner.nominal * free
            if np.isfinite(self.hard(trial)[0]).all():
                return np.asarray(trial)
        value, _, _, labels = self.hard(guess)
        bad = [labels[k] for k in np.flatnonzero(~np.isfinite(value))]
        named = ", ".join(f"{n} = {v:g}" for n, v in zip(names, guess, strict=True))
        raise StructureError(
            f"The equation '{bad[0]}' has no finite value at the start ({named}): a division by zero, or a root or "
            f"logarithm of a number outside its domain. Give start values inside the model's domain."
        )

    def _newton(
        self, w: np.ndarray, guess: np.ndarray, lift: float, base: np.ndarray | None = None
    ) -> tuple[np.ndarray, bool]:
        scale = self.owner.nominal
        for _ in range(MAXIMUM_ITERATIONS):
            value, jw, _, _ = self.hard(w)
            target = value - lift * base if base is not None else value
            rows = row_sizes(jw * scale)
            levels = [(jw * scale / rows[:, None], -target / rows), *self.soft(w, guess)]
            if not all(np.isfinite(a).all() and np.isfinite(b).all() for a, b in levels):
                return w, False
            step = solve_levels(levels, len(w))
            w, taken = self._damped(w, step * scale, target / rows, rows, lift, base)
            if taken == 0.0:
                return w, bool(np.abs(target / rows).max(initial=0.0) < 1e-9)
            if taken == 1.0 and np.abs(step).max(initial=0.0) < TOLERANCE * (1 + np.abs(w / scale).max(initial=0.0)):
                final = self.hard(w)[0] - (lift * base if base is not None else 0.0)
                return w, bool(np.abs(final / rows).max(initial=0.0) < 1e-8)
        final = self.hard(w)[0] - (lift * base if base is not None else 0.0)
        return w, bool(np.abs(final / rows).max(initial=0.0) < 1e-9)

    def _damped(
        self, w: np.ndarray, step: np.ndarray, now: np.ndarray, rows: np.ndarray, lift: float, base: np.ndarray | None
    ) -> tuple[np.ndarray, float]:
        """Halve the step until the scaled residual does not grow (small ones may wander within rounding)."""
        merit = float(np.linalg.norm(now))
        fraction = 1.0
        while fraction > 1e-4:
            trial = w + fraction * step
            value = self.hard(trial)[0]
            if base is not None:
                value = value - lift * base
            if np.isfinite(value).all():
                size = float(np.linalg.norm(value / rows))
                if size <= (1 - 0.1 * fraction) * merit or size < 1e-9:
                    return trial, fraction
            fraction /= 2
        return w, 0.0

    def _homotopy(self, guess: np.ndarray) -> tuple[np.ndarray, bool]:
        base = self.hard(guess)[0]
        w, done, stride = guess.copy(), 0.0, 0.25
        while done < 1.0 and stride > 1e-4:
            goal = min(1.0, done + stride)
            trial, converged = self._newton(w, guess, 1.0 - goal, base)
            if converged:
                w, done, stride = trial, goal, stride * 2
            else:
                stride /= 4
        return w, done >= 1.0

    def worst(self, w: np.ndarray) -> tuple[float, int]:
        value, jw, _, _ = self.hard(w)
        if value.size == 0:
            return 0.0, -1
        scaled = np.abs(value) / row_sizes(jw * self.owner.nominal)
        k = int(np.argmax(scaled))
        return float(scaled[k]), k

    def missed(self, w: np.ndarray) -> dict[str, tuple[float, float]]:
        observed = self.evaluate(self.owner.functions.observed, w)[0]
        found = {}
        for name, wished in self.wishes[0].items():
            got = float(observed[self.owner.observed_position[name]])
            if abs(got - wished) > 1e-8 * max(nominal_of(self.owner.structure.model.variables[name]), abs(wished)):
                found[name] = (wished, got)
        return found

    def hard_names(self) -> list[str]:
        steady = [f"der({n}) == 0 (steady state)" for n in self.owner.system.state_names] if self.steady else []
        return [*self.names, *steady, *(f"start of {n}" for n in self.demands)]

    def start_direction(self, name: str, directions: np.ndarray, demand_directions: dict[str, np.ndarray]) -> Any:
        """How the demanded or wished value itself moves."""
        own = demand_directions.get(name, np.zeros(directions.shape[0]))
        if name in self.given or name not in self.rows:
            return own
        row = self.rows[name]
        for slope, other in zip(self.given_slopes[row], self.owner.declared.referred, strict=True):
            own = own + slope * demand_directions.get(other, 0.0)
        return own + directions @ self.slopes[row]


def row_sizes(matrix: np.ndarray) -> np.ndarray:
    """The largest entry of each row; 1 for a row without any, whose residual then counts as it is."""
    largest = np.abs(matrix).max(axis=1, initial=0.0)
    return np.where(largest > 0, largest, 1.0)


def base_name(text: str) -> str:
    """The unknown's name inside ``der(x)`` or ``der(x, 2)``."""
    return text[4:-1].split(",")[0] if text.startswith("der(") else text


def nominal_of(variable: Any) -> float:
    return float(variable.nominal) if variable is not None and variable.nominal else 1.0
