"""One start: what must hold, and which start values are preferred in which order.

Preferences come in levels, each met as well as those above it allow: zero for unknowns that the initial equations
leave open (``undecided``), declared starts of variables that the user differentiates, of those that only index
reduction differentiates, zero for the states that nothing was declared for, declared starts of algebraic variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.starts.rounding import EPSILON

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

    from grisaille.model.flat import FlatVariable
    from grisaille.structure.starts.initialization import Initializer

Hard = tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]
MIN_LARGE_SIZE = 100
"""States and implicit unknowns from which on a start is solved with the entries of its matrices."""
MIN_USUAL = 1e-5
"""The smallest size that starts of a model are taken to have together where all that are declared are zero."""
MISS_TOLERANCE = 1e-7
"""A wish that is missed by less, in nominal values, is met."""


@dataclass(frozen=True, eq=False)
class GuessLevel:
    """Wishes of one rank: rows of the observed quantities, or of w itself."""

    names: tuple[str, ...]
    rows: np.ndarray
    of_unknowns: bool
    """Whether ``rows`` counts entries of w instead of observed quantities."""
    targets: np.ndarray
    sizes: np.ndarray
    """Nominal values by which misses are weighed."""
    declared: bool
    of_states: bool = True
    """Whether it speaks of what is differentiated, by the user or by index reduction, or of what comes before that."""


class StartProblem:
    """One start: given time, signals, parameters and demands."""

    def __init__(
        self, owner: Initializer, t: float, u: np.ndarray, p: np.ndarray, demands: dict[str, float], steady: bool
    ) -> None:
        self.owner, self.t, self.u, self.p, self.steady = owner, t, u, p, steady
        declared = owner.declared
        is_given = np.array([float(n in demands) for n in declared.referred])
        given = np.array([demands.get(n, 0.0) for n in declared.referred])
        numbers, slopes, given_slopes = owner.declared_values(p, is_given, given)
        self.slopes = slopes.reshape(len(p), len(numbers)).T
        self.given_slopes = given_slopes.reshape(len(declared.referred), len(numbers)).T
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
        self.zero = np.zeros(owner.system.nx)
        """What states without a declared start wish to be."""
        self.undecided: tuple[str, ...] = ()
        """Unknowns that begin at zero before any other wish (``undecided``)."""
        self.note = ""
        """What the search has to say about a start that nothing declared decides."""
        self._last_entries: tuple[np.ndarray, tuple[np.ndarray, csc_array]] | None = None
        self._last: tuple[np.ndarray, Hard] | None = None
        self.names = list(owner.system.constraint_texts) + list(owner.system.residual_texts)
        self.weighs_by_unknowns = False
        """Whether misses of wishes are weighed by what their unknowns may move them by, not by nominal values."""

    def with_nominal(self, nominal: np.ndarray) -> StartProblem:
        """Return the same start, its unknowns being of these sizes."""
        other = copy(self)
        other.owner = copy(self.owner)
        vars(other.owner)["nominal"] = nominal
        other.weighs_by_unknowns = True
        return other

    def _root(self, name: str) -> str:
        return self.owner.structure.equations.aliases.get(name, name).lstrip("-")

    def _is_differential(self, name: str) -> bool:
        root = self._root(name)
        return self.owner.structure.order_of(root) > 0

    def _is_written(self, name: str) -> bool:
        """Return whether the user's own equations differentiate it."""
        return self._root(name) in self.owner.structure.written_states

    def _movable(self, level: dict[str, float]) -> dict[str, float]:
        return {n: v for n, v in level.items() if self.owner.structure.order_of(self._root(n)) >= 0}

    def evaluate(self, name: str, w: np.ndarray) -> list[np.ndarray]:
        """Return one of the start's functions: values, ∂/∂w, ∂/∂p."""
        return self.owner.functions.linearized(name, self.t, w, self.u, self.p)

    def observed(self, w: np.ndarray) -> np.ndarray:
        return self.owner.functions.values(self.t, w, self.u, self.p)

    def observed_rows(self, observed: list[np.ndarray], names: list[str]) -> list[np.ndarray]:
        index = [self.owner.observed_position[n] for n in names]
        return [a[index] for a in observed]

    def residual(self, w: np.ndarray) -> np.ndarray:
        """Return the residuals alone."""
        return self._entries(w)[0] if self.is_large else self.hard(w)[0]

    @cached_property
    def is_large(self) -> bool:
        """Return whether only entries of derivatives that differ from zero are made, and no full matrices."""
        return self.owner.system.nx + self.owner.system.nz >= MIN_LARGE_SIZE

    def sparse_slopes(self, w: np.ndarray) -> tuple[np.ndarray, csc_array]:
        """Return residuals and their derivatives by scaled unknowns, of a large start."""
        from scipy.sparse import csc_array

        value, slopes = self._entries(w)
        scaled = csc_array(slopes, copy=True)
        scaled.data *= np.repeat(self.owner.nominal, np.diff(scaled.indptr))
        return value, scaled

    def _entries(self, w: np.ndarray) -> tuple[np.ndarray, csc_array]:
        """Return residuals and their derivatives of a large start; the last point's are kept."""
        from scipy.sparse import csc_array, vstack

        if self._last_entries is None or not np.array_equal(self._last_entries[0], w, equal_nan=True):
            at, functions = (self.t, w, self.u, self.p), self.owner.functions
            value, entries = functions.entries(*at)
            parts = [(value, functions.slopes(entries)), *(functions.sparse(n, *at) for n in self._more)]
            if self.demands:
                observed, slopes = functions.sparse("observed", *at)
                parts.append((observed[self._demanded] - np.array(list(self.demands.values())), slopes[self._demanded]))
            whole = parts[0] if len(parts) == 1 else (
                np.concatenate([value for value, _ in parts]), csc_array(vstack([slopes for _, slopes in parts]))
            )  # fmt: skip
            self._last_entries = (w.copy(), whole)
        return self._last_entries[1]

    @property
    def _more(self) -> list[str]:
        """Return what must hold besides the equations that always do."""
        return ["initial"] * bool(self.initial_rows) + ["rates"] * self.steady

    @property
    def _demanded(self) -> list[int]:
        return [self.owner.observed_position[n] for n in self.demands]

    def sparse_by_p(self, w: np.ndarray) -> csr_array:
        """Return derivatives of residuals by parameters, of a large start."""
        from scipy.sparse import csr_array, vstack

        at, functions = (self.t, w, self.u, self.p), self.owner.functions
        parts = [functions.sparse_by_p(name, *at) for name in ("hard", *self._more)]
        if self.demands:
            parts.append(functions.sparse_by_p("observed", *at)[self._demanded])
        return csr_array(vstack(parts))

    def sparse_guess_slopes(self, w: np.ndarray) -> Iterator[tuple[GuessLevel, np.ndarray, csr_array]]:
        """Yield each level with its values and ∂/∂w, of a large start."""
        from scipy.sparse import csr_array, eye_array

        observed: tuple[np.ndarray, csr_array] | None = None
        for level in self.levels:
            if level.of_unknowns:
                yield level, w[level.rows], csr_array(eye_array(len(w)))[level.rows]
                continue
            observed = observed or self.owner.functions.sparse("observed", self.t, w, self.u, self.p)
            yield level, observed[0][level.rows], observed[1][level.rows]

    def sparse_soft(self, w: np.ndarray, guess: np.ndarray) -> Iterator[tuple[csr_array, np.ndarray]]:
        """Return what ``soft`` returns, for a large start."""
        from scipy.sparse import csr_array, diags_array, eye_array

        scale = self.owner.nominal
        for level, value, slopes in self.sparse_guess_slopes(w):
            size = self._weights(level, slopes @ diags_array(scale))
            yield diags_array(1.0 / size) @ slopes @ diags_array(scale), (level.targets - value) / size
        yield csr_array(eye_array(len(w))), (guess - w) / scale

    def rounding(self, w: np.ndarray) -> np.ndarray:
        """Return by how much rounding of operations may move the residuals."""
        at, functions = (self.t, w, self.u, self.p), self.owner.functions
        parts = [functions.rounding(name, *at) for name in ("hard", *self._more)]
        if self.demands:
            numbers = np.abs(np.array(list(self.demands.values())))
            parts.append(functions.rounding("observed", *at)[self._demanded] + EPSILON * numbers)
        return np.concatenate(parts)

    def _scaled(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray | csc_array]:
        """Return the same, full where it is not large."""
        if self.is_large:
            return self.sparse_slopes(w)
        value, jw, _, _ = self.hard(w)
        return value, jw * self.owner.nominal

    def hard(self, w: np.ndarray) -> Hard:
        """Return residuals, ∂/∂w, ∂/∂p and names of everything that must hold; the last point's are kept."""
        if self._last is None or not np.array_equal(self._last[0], w, equal_nan=True):
            self._last = (w.copy(), self._hard(w))
        return self._last[1]

    def _hard(self, w: np.ndarray) -> Hard:
        parts = [self.evaluate("hard", w)]
        names = list(self.names)
        if self.initial_rows:
            parts.append(self.evaluate("initial", w))
            names += self.owner.system.initial_texts
        if self.steady:
            parts.append(self.evaluate("rates", w))
            names += [f"der({n}) == 0 (steady state)" for n in self.owner.system.state_names]
        if self.demands:
            value, jw, jp = self.observed_rows(self.evaluate("observed", w), list(self.demands))
            parts.append([value - np.array(list(self.demands.values())), jw, jp])
            names += [f"start of {n} = {v:g}" for n, v in self.demands.items()]
        value, jw, jp = (np.concatenate([part[k] for part in parts]) for k in range(3))
        return value, jw, jp, names

    @property
    def initial_rows(self) -> int:
        """Return how many equations hold at the first instant only; a steady state takes their place."""
        return 0 if self.steady else len(self.owner.system.initial_texts)

    @cached_property
    def undeclared_states(self) -> np.ndarray:
        """Return entries of x without a demand or a declared start."""
        names = self.owner.undeclared_states(self.demands)
        position = {n: k for k, n in enumerate(self.owner.system.state_names)}
        return np.array([position[n] for n in names], dtype=int)

    @property
    def levels(self) -> list[GuessLevel]:
        """Return all wishes, the most important first; empty levels are left out."""
        states = self.undeclared_states
        names = tuple(self.owner.system.state_names[k] for k in states)
        zero = GuessLevel(names, states, True, self.zero[states], self.owner.nominal[states], False)
        of_states, algebraic = self.wishes
        written, raised = (
            self._declared_level({n: v for n, v in of_states.items() if self._is_written(n) is own})
            for own in (True, False)
        )
        last = self._declared_level(algebraic, of_states=False)
        first = replace(self._declared_level(dict.fromkeys(self.undecided, 0.0)), declared=False)
        return [level for level in (first, written, raised, zero, last) if level.names]

    def _declared_level(self, wishes: dict[str, float], of_states: bool = True) -> GuessLevel:
        variables = self.owner.structure.model.variables
        sizes = np.array([nominal_of(variables[n]) for n in wishes])
        rows = np.array([self.owner.observed_position[n] for n in wishes], dtype=int)
        return GuessLevel(tuple(wishes), rows, False, np.array(list(wishes.values())), sizes, True, of_states)

    def guess_rows(self, w: np.ndarray) -> Iterator[tuple[GuessLevel, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield each level with its values, ∂/∂w and ∂/∂p; what is observed is evaluated when first needed."""
        observed: list[np.ndarray] | None = None
        for level in self.levels:
            if level.of_unknowns:
                yield level, w[level.rows], np.eye(len(w))[level.rows], np.zeros((len(level.rows), len(self.p)))
                continue
            observed = observed or self.evaluate("observed", w)
            yield level, *(a[level.rows] for a in observed)

    def soft(self, w: np.ndarray, guess: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield wishes and closeness to the guess as (matrix, right-hand side), in scaled unknowns."""
        scale = self.owner.nominal
        for level, value, jw, _ in self.guess_rows(w):
            size = self._weights(level, jw * scale)
            yield jw * scale / size[:, None], (level.targets - value) / size
        yield np.eye(len(w)), (guess - w) / scale

    def _weights(self, level: GuessLevel, slopes: np.ndarray | csr_array) -> np.ndarray:
        return row_sizes(slopes) if self.weighs_by_unknowns else level.sizes

    def misses(self, w: np.ndarray) -> list[float]:
        """Return how far each level of differentiated wishes is from being met, in units of nominal values."""
        found = []
        observed = self.observed(w)
        for level in self.levels:
            if level.of_states:
                value = (w if level.of_unknowns else observed)[level.rows]
                found.append(float(np.linalg.norm((value - level.targets) / level.sizes)))
        return found

    def first_guess(self) -> np.ndarray:
        """Return wishes and demands read into w where they name an entry of it, zero elsewhere."""
        wanted = {**self.wishes[1], **self.wishes[0], **self.demands}
        w = np.zeros(self.owner.system.nx + self.owner.system.nz)
        w[: len(self.zero)] = self.zero
        for k, equal in enumerate(self.owner.equal_names):
            w[k] = next((sign * wanted[n] for n, sign in equal if n in wanted), w[k])
        return w

    def undeclared(self) -> np.ndarray:
        """Return which entries of w have neither a wish nor a demand."""
        wanted = {**self.wishes[1], **self.wishes[0], **self.demands}
        return np.array([not any(n in wanted for n, _ in equal) for equal in self.owner.equal_names], dtype=bool)

    def without_fixed_start(self) -> np.ndarray:
        return np.array([not any(n in self.demands for n, _ in e) for e in self.owner.equal_names], dtype=bool)

    def holds_already(self, w: np.ndarray) -> bool:
        """Return whether a point meets everything to rounding, as it does for models without constraints."""
        if not (self.steady or self.demands or self.initial_rows):
            there, entries = self.owner.functions.entries(self.t, w, self.u, self.p)
            if not (np.isfinite(there).all() and np.isfinite(entries).all()):
                return False
            if not there.any():
                return self._guesses_hold(w)
        value, slopes = self._scaled(w)
        if not (np.isfinite(value).all() and are_finite(slopes)):
            return False
        if value.any():
            terms = np.asarray(abs(slopes) @ np.abs(w / self.owner.nominal))
            least = 0.0 if self.owner.system.nz else 1e-14
            if (np.abs(value) > least * np.minimum(row_sizes(slopes), terms)).any():
                return False
        return self._guesses_hold(w)

    def _guesses_hold(self, w: np.ndarray) -> bool:
        observed = self.observed(w)
        return all(np.array_equal((w if v.of_unknowns else observed)[v.rows], v.targets) for v in self.levels)

    @property
    def states_are_free(self) -> bool:
        """Return whether every wish for a state names one entry of x, and none is named twice."""
        named = [[n for n, _ in equal if n in self.wishes[0]] for equal in self.owner.equal_names]
        states = named[: self.owner.system.nx]
        return all(len(n) <= 1 for n in states) and sum(map(len, states)) == len(self.wishes[0])

    @cached_property
    def is_separable(self) -> bool:
        """Return whether states are determined before the implicit unknowns: no demand and no state's wish contains
        them.
        """
        system = self.owner.system
        if self.steady or (self.initial_rows and system.nz and ca.depends_on(system.initial, system.z)):
            return False
        return not any(self.owner.is_implicit(n) for n in (*self.demands, *self.wishes[0]))

    def worst(self, w: np.ndarray) -> tuple[float, int]:
        value, slopes = self._scaled(w)
        if value.size == 0:
            return 0.0, -1
        scaled = np.abs(value) / row_sizes(slopes)
        k = int(np.argmax(scaled))
        return float(scaled[k]), k

    def missed(self, w: np.ndarray, level: int = 0) -> dict[str, tuple[float, float]]:
        """Return declared starts that are not met, (wished, got): of differentiated variables (0) or algebraic ones
        (1).
        """
        wishes, variables = self.wishes[level], self.owner.structure.model.variables
        observed = self.observed(w) if wishes else np.zeros(0)
        pairs = {n: (wished, float(observed[self.owner.observed_position[n]])) for n, wished in wishes.items()}
        largest = max((abs(v) for pair in pairs.values() for v in pair), default=0.0)
        given = max((abs(v) for v in (*wishes.values(), *self.demands.values())), default=0.0)
        # in the units of a model all of whose starts are small, these are not rounding
        usual = min(1.0, max(largest, MIN_USUAL) if given == 0.0 else max(largest, given))
        sizes = {n: nominal_of(variables[n]) if variables[n].nominal else usual for n in pairs}
        return {n: (a, b) for n, (a, b) in pairs.items() if abs(b - a) > 1e-8 * max(sizes[n], abs(a))}

    def lifted(self, w: np.ndarray) -> dict[str, float]:
        """Return states without a declared start that could not begin at zero, with the values they got."""
        scale, names = self.owner.nominal, self.owner.system.state_names
        return {names[k]: float(w[k]) for k in self.undeclared_states if abs(w[k]) > 1e-8 * scale[k]}

    def hard_names(self) -> list[str]:
        steady = [f"der({n}) == 0 (steady state)" for n in self.owner.system.state_names] if self.steady else []
        initial = self.owner.system.initial_texts if self.initial_rows else ()
        return [*self.names, *initial, *steady, *(f"start of {n}" for n in self.demands)]

    def start_direction(self, name: str, directions: np.ndarray, demand_directions: dict[str, np.ndarray]) -> Any:
        """Return how the demanded or wished value itself moves."""
        own = demand_directions.get(name, np.zeros(directions.shape[0]))
        if name in self.given or name not in self.rows:
            return own
        row = self.rows[name]
        for slope, other in zip(self.given_slopes[row], self.owner.declared.referred, strict=True):
            own = own + slope * demand_directions.get(other, 0.0)
        return own + directions @ self.slopes[row]


def is_nearer(now: list[float], before: list[float]) -> bool:
    """Return whether wishes are missed by less, in the first level in which the two differ."""
    for a, b in zip(now, before, strict=True):
        if abs(a - b) > MISS_TOLERANCE * (1 + max(a, b)):
            return a < b
    return False


def row_sizes(matrix: np.ndarray | csc_array | csr_array) -> np.ndarray:
    """Return the largest entry of each row; 1 for a row without any, whose residual then counts as it is."""
    if isinstance(matrix, np.ndarray):
        largest = np.abs(matrix).max(axis=1, initial=0.0)
    else:
        from scipy.sparse import csc_array

        matrix = csc_array(matrix)
        largest = np.zeros(matrix.shape[0])
        np.maximum.at(largest, matrix.indices, np.abs(matrix.data))
    return np.where(largest > 0, largest, 1.0)


def are_finite(matrix: np.ndarray | csc_array) -> bool:
    """Return whether all entries are."""
    return bool(np.isfinite(matrix if isinstance(matrix, np.ndarray) else matrix.data).all())


def base_name(text: str) -> str:
    """Return the unknown's name inside ``der(x)`` or ``der(x, 2)``."""
    return text[4:-1].split(",")[0] if text.startswith("der(") else text


def nominal_of(variable: FlatVariable | None) -> float:
    return float(variable.nominal) if variable is not None and variable.nominal else 1.0
