"""Consistent start values from demands and wishes.

Unknown is w = (x, z) at the first instant. Hard are the hidden constraints, the implicit equations and the demands
(``fixed=True``, given starts, ``"steady"``: all rates zero). Soft, in this order, are the wishes for differentiated
variables, the wishes for algebraic ones, and to stay near the guess:

    minimise |(y_wish(w) − start) / nominal|   subject to   H(w, p) = 0,

by a damped Gauss–Newton iteration on the hierarchy, with a homotopy H(w) = (1 − λ) H(w₀) as fallback. Derivatives of
the answer come from the optimality conditions, curvature included where a wish could not be met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.hierarchy import solve_levels
from grisaille.structure.reduction import Structure
from grisaille.structure.starts import DeclaredStarts, declared_starts

MAXIMUM_ITERATIONS = 60
TOLERANCE = 1e-11
"""On scaled corrections and scaled residuals; starts enter every later digit."""


@dataclass(frozen=True)
class Start:
    """A consistent point."""

    x: np.ndarray
    z: np.ndarray
    residual: float
    """Largest scaled residual of the hard equations."""
    wishes_missed: dict[str, tuple[float, float]]
    """Variable → (wished, got), where the two differ by more than a rounding error."""


@dataclass(frozen=True)
class StartSensitivity:
    """Derivatives of a start: one row per direction."""

    sx: np.ndarray
    sz: np.ndarray


class Initializer:
    """Solves the start of one structure again and again, for different parameters, inputs and demands."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.system = structure.system
        model = structure.model
        self.declared: DeclaredStarts = declared_starts(model, structure.equations.parameters)
        self._observed_position = {n: k for k, n in enumerate(self.system.observed_names)}

    @cached_property
    def nominal(self) -> np.ndarray:
        """Scale of each entry of w."""
        variables = self.structure.model.variables
        unknowns = [s.name for s in self.structure.states]
        unknowns += [_base(n) for n in self.system.implicit_names]
        return np.array([_nominal(variables.get(n)) for n in unknowns])

    @cached_property
    def _arguments(self) -> list[ca.SX]:
        s = self.system
        return [s.t, ca.vertcat(s.x, s.z), s.u, s.p]

    @cached_property
    def _hard(self) -> ca.Function:
        return self._with_jacobian(ca.vertcat(self.system.constraints, self.system.residual))

    @cached_property
    def _rates(self) -> ca.Function:
        return self._with_jacobian(self.system.rhs)

    @cached_property
    def _observed(self) -> ca.Function:
        return self._with_jacobian(self.system.observed)

    @cached_property
    def _start_values(self) -> ca.Function:
        formulas = self.declared.formulas
        return ca.Function("starts", [self.system.p], [formulas, ca.densify(ca.jacobian(formulas, self.system.p))])

    def _with_jacobian(self, formula: ca.SX) -> ca.Function:
        w, p = self._arguments[1], self._arguments[3]
        jacobians = [ca.densify(ca.jacobian(formula, w)), ca.densify(ca.jacobian(formula, p))]
        return ca.Function("h", self._arguments, [ca.densify(formula), *jacobians])

    def solve(
        self,
        t: float,
        u: np.ndarray,
        p: np.ndarray,
        demands: Mapping[str, float] | None = None,
        *,
        steady: bool = False,
        guess: np.ndarray | None = None,
    ) -> Start:
        """A consistent start; raises ``StructureError`` naming the worst equation and its residual."""
        problem = _StartProblem(self, t, u, p, dict(demands or {}), steady)
        w = problem.solve(problem.first_guess() if guess is None else guess)
        nx = self.system.nx
        return Start(w[:nx], w[nx:], problem.worst(w)[0], problem.missed(w))

    def sensitivity(
        self,
        t: float,
        u: np.ndarray,
        p: np.ndarray,
        start: Start,
        directions: np.ndarray,
        demands: Mapping[str, float] | None = None,
        demand_directions: Mapping[str, np.ndarray] | None = None,
        *,
        steady: bool = False,
    ) -> StartSensitivity:
        """dw for each row of ``directions`` (derivative of p) and of the demanded starts."""
        problem = _StartProblem(self, t, u, p, dict(demands or {}), steady)
        w = np.concatenate([start.x, start.z])
        s = problem.differentiate(w, directions, dict(demand_directions or {}))
        nx = self.system.nx
        return StartSensitivity(np.ascontiguousarray(s[:nx].T), np.ascontiguousarray(s[nx:].T))


class _StartProblem:
    """One start: given time, signals, parameters and demands."""

    def __init__(
        self, owner: Initializer, t: float, u: np.ndarray, p: np.ndarray, demands: dict[str, float], steady: bool
    ) -> None:
        self.owner, self.t, self.u, self.p, self.steady = owner, t, u, p, steady
        values, slopes = owner._start_values(p)
        declared = owner.declared
        numbers = np.array(values.full()).ravel()
        self.slopes = np.array(slopes.full()).reshape(len(numbers), len(p))
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

    # -- values and derivatives -------------------------------------------------------------------------------------

    def _evaluate(self, function: ca.Function, w: np.ndarray) -> list[np.ndarray]:
        value, jw, jp = function(self.t, w, self.u, self.p)
        m = value.shape[0]
        return [np.array(value.full()).ravel(), np.array(jw.full()).reshape(m, -1), np.array(jp.full()).reshape(m, -1)]

    def _observed_rows(self, observed: list[np.ndarray], names: list[str]) -> list[np.ndarray]:
        index = [self.owner._observed_position[n] for n in names]
        return [a[index] for a in observed]

    def hard(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
        """Residuals, ∂/∂w, ∂/∂p and names of everything that must hold."""
        parts = [self._evaluate(self.owner._hard, w)]
        names = list(self.names)
        if self.steady:
            parts.append(self._evaluate(self.owner._rates, w))
            names += [f"der({n}) == 0 (steady state)" for n in self.owner.system.state_names]
        if self.demands:
            value, jw, jp = self._observed_rows(self._evaluate(self.owner._observed, w), list(self.demands))
            parts.append([value - np.array(list(self.demands.values())), jw, jp])
            names += [f"start of {n} = {v:g}" for n, v in self.demands.items()]
        value, jw, jp = (np.concatenate([part[k] for part in parts]) for k in range(3))
        return value, jw, jp, names

    def soft(self, w: np.ndarray, guess: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Wishes and closeness to the guess as (matrix, right-hand side), in scaled unknowns."""
        scale = self.owner.nominal
        observed = self._evaluate(self.owner._observed, w)
        levels = []
        for wishes in self.wishes:
            if wishes:
                value, jw, _ = self._observed_rows(observed, list(wishes))
                size = np.array([_nominal(self.owner.structure.model.variables[n]) for n in wishes])
                levels.append((jw * scale / size[:, None], (np.array(list(wishes.values())) - value) / size))
        levels.append((np.eye(len(w)), (guess - w) / scale))
        return levels

    # -- solving ----------------------------------------------------------------------------------------------------

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
        for start in (guess, *self._moved_guesses(guess)):
            w, converged = self._newton(start, start, 0.0)
            if converged:
                return w
        w, converged = self._homotopy(guess)
        if not converged:
            self._refuse(w)
        return w

    def _moved_guesses(self, guess: np.ndarray) -> Iterator[np.ndarray]:
        """Undeclared entries moved off the default zero, where squares and products have no slope."""
        random = np.random.default_rng(7)
        free = self._undeclared()
        for size in (0.1, 1.0, 1.0, 3.0, 10.0):
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
                return trial
        value, _, _, labels = self.hard(guess)
        bad = [labels[k] for k in np.flatnonzero(~np.isfinite(value))]
        named = ", ".join(f"{n} = {v:g}" for n, v in zip(names, guess, strict=True))
        raise StructureError(
            f"The equation '{bad[0]}' has no finite value at the start ({named}): a division by zero, or a root or "
            f"logarithm of a number outside its domain. Give start values inside the model's domain."
        )

    def _newton(self, w: np.ndarray, guess: np.ndarray, lift: float, base: np.ndarray | None = None) -> tuple[np.ndarray, bool]:
        scale = self.owner.nominal
        for _ in range(MAXIMUM_ITERATIONS):
            value, jw, _, _ = self.hard(w)
            target = value - lift * base if base is not None else value
            rows = np.maximum(np.abs(jw * scale).max(axis=1, initial=0.0), 1e-300)
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

    # -- answers ----------------------------------------------------------------------------------------------------

    def worst(self, w: np.ndarray) -> tuple[float, int]:
        value, jw, _, _ = self.hard(w)
        if value.size == 0:
            return 0.0, -1
        rows = np.maximum(np.abs(jw * self.owner.nominal).max(axis=1, initial=0.0), 1e-300)
        scaled = np.abs(value) / np.where(rows > 1e-299, rows, 1.0)
        k = int(np.argmax(scaled))
        return float(scaled[k]), k

    def missed(self, w: np.ndarray) -> dict[str, tuple[float, float]]:
        observed = self._evaluate(self.owner._observed, w)[0]
        found = {}
        for name, wished in self.wishes[0].items():
            got = float(observed[self.owner._observed_position[name]])
            if abs(got - wished) > 1e-8 * max(_nominal(self.owner.structure.model.variables[name]), abs(wished)):
                found[name] = (wished, got)
        return found

    def differentiate(self, w: np.ndarray, directions: np.ndarray, demand_directions: dict[str, np.ndarray]) -> np.ndarray:
        ns = directions.shape[0]
        scale = self.owner.nominal
        value, jw, jp, _ = self.hard(w)
        right = -jp @ directions.T
        offset = len(value) - len(self.demands)
        for k, name in enumerate(self.demands):
            right[offset + k] += self._start_direction(name, directions, demand_directions)
        rows = np.maximum(np.abs(jw * scale).max(axis=1, initial=0.0), 1e-300)
        levels = [(jw * scale / rows[:, None], right / rows[:, None])]
        observed = self._evaluate(self.owner._observed, w)
        for wishes in self.wishes:
            if wishes:
                _, ow, op = self._observed_rows(observed, list(wishes))
                size = np.array([_nominal(self.owner.structure.model.variables[n]) for n in wishes])[:, None]
                moved = np.array([self._start_direction(n, directions, demand_directions) for n in wishes])
                levels.append((ow * scale / size, (moved - op @ directions.T) / size))
        first = solve_levels(levels, len(w)) * scale[:, None] if len(w) else np.zeros((0, ns))
        if self.missed(w):
            return self._with_curvature(w, directions, demand_directions, first)
        return first

    def _start_direction(self, name: str, directions: np.ndarray, demand_directions: dict[str, np.ndarray]) -> Any:
        """How the demanded or wished value itself moves."""
        own = demand_directions.get(name, np.zeros(directions.shape[0]))
        if name in self.given or name not in self.rows:
            return own
        return own + directions @ self.slopes[self.rows[name]]

    def _with_curvature(
        self, w: np.ndarray, directions: np.ndarray, demand_directions: dict[str, np.ndarray], first: np.ndarray
    ) -> np.ndarray:
        """The exact derivative where wishes conflict: the optimality conditions, differentiated.

        L(w) = ½|r(w)|² + μᵀH(w) with scaled wishes r; ∇L = 0 and H = 0 are solved for dw by least squares, relative to
        ``first`` so that directions that nothing determines keep the hierarchy's answer.
        """
        owner, system = self.owner, self.owner.system
        sx_t, sx_w, sx_u, sx_p = owner._arguments
        wishes = list(self.wishes[0])
        size = np.array([_nominal(owner.structure.model.variables[n]) for n in wishes])
        target = ca.SX.sym("target", len(wishes))
        demanded = ca.SX.sym("demanded", len(self.demands))
        pick = [owner._observed_position[n] for n in wishes]
        r = (system.observed[pick] - target) / ca.DM(size)
        parts = [system.constraints, system.residual]
        if self.steady:
            parts.append(system.rhs)
        if self.demands:
            parts.append(system.observed[[owner._observed_position[n] for n in self.demands]] - demanded)
        h = ca.vertcat(*parts)
        mu = ca.SX.sym("mu", h.numel())
        gradient = ca.gradient(0.5 * ca.sumsqr(r) + ca.dot(mu, h), sx_w)
        system_of = ca.vertcat(gradient, h)
        outer = ca.vertcat(sx_p, target, demanded)
        arguments = [sx_t, sx_w, sx_u, sx_p, target, demanded, mu]
        function = ca.Function(
            "kkt", arguments, [ca.densify(ca.jacobian(system_of, ca.vertcat(sx_w, mu))),
                               ca.densify(ca.jacobian(system_of, outer)), ca.densify(ca.jacobian(r, sx_w)), r],
        )  # fmt: skip
        wished = np.array([self.wishes[0][n] for n in wishes])
        numbers = [self.t, w, self.u, self.p, wished, np.array(list(self.demands.values()))]
        _, _, jr, r0 = function(*numbers, np.zeros(h.numel()))
        jw = self.hard(w)[1]
        multipliers = np.linalg.lstsq(jw.T, -np.array(jr.full()).T @ np.array(r0.full()).ravel(), rcond=None)[0]
        matrix, outer_jacobian, _, _ = function(*numbers, multipliers)
        moved = np.vstack(
            [directions.T]
            + [np.atleast_2d(self._start_direction(n, directions, demand_directions)) for n in (*wishes, *self.demands)]
        )
        kkt = np.array(matrix.full())
        right = -np.array(outer_jacobian.full()) @ moved
        guess = np.vstack([first, np.zeros((h.numel(), first.shape[1]))])
        correction = np.linalg.lstsq(kkt, right - kkt @ guess, rcond=1e-10)[0]
        return np.asarray((guess + correction)[: len(w)])

    def _refuse(self, w: np.ndarray) -> None:
        value, jw, _, names = self.hard(w)
        scale = self.owner.nominal
        rows = np.maximum(np.abs(jw * scale).max(axis=1, initial=0.0), 1e-300)
        if not np.isfinite(jw).all():
            raise StructureError(
                f"No consistent start was found: '{names[self.worst(w)[1]]}' has an infinite slope at the start values. "
                f"Give start values inside the model's domain."
            )
        scaled = np.abs(value) / rows
        k = int(np.argmax(scaled))
        involved = self._contradicting_demands(jw * scale / rows[:, None], value / rows)
        if involved:
            demands, others = involved
            raise StructureError(
                f"The demanded starts {', '.join(demands)} contradict {', '.join(repr(o) for o in others)}: the worst "
                f"residual is {value[k]:.3g} in '{names[k]}'. Drop one of the demands (fixed=False on one of them, or leave it "
                f"out of start=), and it is computed from the others."
            )
        raise StructureError(
            f"No consistent start was found: the equation '{names[k]}' keeps a residual of {value[k]:.3g} after "
            f"{MAXIMUM_ITERATIONS} damped Newton iterations and a homotopy. Give start values nearer to a solution, or "
            f"check that the equations have one there."
        )

    def _contradicting_demands(self, matrix: np.ndarray, residual: np.ndarray) -> tuple[list[str], list[str]] | None:
        """Demands and constraints that depend on each other at the point where the search stopped."""
        if not self.demands:
            return None
        u, s, _ = np.linalg.svd(matrix)
        rank = int(np.sum(s > 1e-7 * max(s[0], 1e-300)))
        null = u[:, rank:]
        if null.shape[1] == 0:
            return None
        weights = np.abs(null @ (null.T @ residual))
        names = self.hard_names()
        chosen = [k for k in np.argsort(-weights) if weights[k] > 1e-3 * weights.max()]
        first_demand = len(names) - len(self.demands)
        demand_names = list(self.demands)
        demands = [demand_names[k - first_demand] for k in chosen if k >= first_demand]
        others = [names[k] for k in chosen if k < first_demand]
        return (demands, others or ["each other"]) if demands else None

    def hard_names(self) -> list[str]:
        steady = [f"der({n}) == 0 (steady state)" for n in self.owner.system.state_names] if self.steady else []
        return [*self.names, *steady, *(f"start of {n}" for n in self.demands)]


def _base(text: str) -> str:
    """The unknown's name inside ``der(x)`` or ``der(x, 2)``."""
    return text[4:-1].split(",")[0] if text.startswith("der(") else text


def _nominal(variable: Any) -> float:
    return float(variable.nominal) if variable is not None and variable.nominal else 1.0
