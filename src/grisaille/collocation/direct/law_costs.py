"""Measurements by laws in a criterion of trajectories: any law, by its expansion where it is evaluated.

A sample y of an output with a law adds −log p(y; η), where η(X, Z, θ) are the prediction and those numbers of the law
that move. Laws are functions of numbers, elements are formulas: so elements hold

    L + gᵀd + ½ dᵀHd + (1/6) Σ T_ijk d_i d_j d_k,        d = η(X, Z, θ) − η₀

with L, g, H, T and η₀ from the law at the very point at which the element is evaluated, as numbers of its data. Value
and derivatives up to the third are then those of the law, and no more are needed: Newton steps take two of them, the
slope of log-determinants three. T is made of differences of H, to about ten digits. Gauss–Newton's curvature takes the
expected information in place of H.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

import casadi as ca
import numpy as np

from grisaille.bound_experiment.data_matrix import OutputSamples
from grisaille.bound_experiment.sample_limits import limits_in
from grisaille.collocation.array_types import Floats
from grisaille.collocation.direct.direct_model import ArgumentsByLaw, DirectModel
from grisaille.laws.law import Law
from grisaille.model.measurement.distributions import innermost
from grisaille.numerics.defined_points import at_defined_point, find_defined_points

DIFFERENCE_STEP = 1e-3
"""Of differences, in units of the law's own scale of an argument."""
DIFFERENCE_STENCIL = ((-2.0, 1 / 12), (-1.0, -8 / 12), (1.0, 8 / 12), (2.0, -1 / 12))
"""Of a first derivative, to the fourth order."""


@dataclass(frozen=True, eq=False)
class LawCost:
    """The cost of one output; ``moving``: positions of those of its arguments that states or slots change."""

    by: ArgumentsByLaw
    moving: tuple[int, ...]
    moved: ca.Function
    """Of the model's arguments: η."""
    defined_at: dict[int, Floats]
    """Points at which rows of η are evaluated where nothing was measured."""

    @property
    def law(self) -> Law:
        """With formulas as arguments."""
        return self.by.law

    @property
    def names(self) -> tuple[str, ...]:
        """Paths of the arguments in η."""
        return tuple(self.by.paths[k] for k in self.moving)

    @property
    def parts(self) -> tuple[slice, ...]:
        """Return the positions of 1 if there is a sample, η₀, L, g, information, H and T."""
        m = len(self.moving)
        ends = np.cumsum([0, 1, m, 1, m, m * m, m * m, m**3])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @property
    def width(self) -> int:
        """Return how many numbers that are."""
        return int(self.parts[-1].stop)

    def cost(self, arguments: Sequence[ca.SX], data: ca.SX, a: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the expansion, and Fisher's information of a sample in a."""
        m = len(self.moving)
        there, at, level, g, information, H, T = (data[p] for p in self.parts)
        eta = self.moved(*arguments)
        for k, point in self.defined_at.items():
            eta[k] = self.moved(*at_defined_point(arguments, there > 0, point))[k]
        d = there * (eta - at)
        cost = level + ca.dot(g, d) + 0.5 * ca.dot(d, ca.mtimes(ca.reshape(H, m, m), d))
        for k in range(m):
            bend = ca.reshape(T[k * m * m : (k + 1) * m * m], m, m)
            cost += d[k] * ca.dot(d, ca.mtimes(bend, d)) / 6
        J = there * ca.jacobian(eta, a)
        return cost, ca.mtimes(J.T, ca.mtimes(ca.reshape(information, m, m), J))

    def filled(self, values: Floats, samples: OutputSamples) -> Law:
        """Return the law of some samples; ``values`` (N, arguments)."""
        given = dict(zip(self.by.paths, values.T, strict=True))
        law: Law = self.law.filled({**given, **limits_in(self.law, samples, given)})
        return law

    def expansion(self, values: Floats, samples: OutputSamples, order: int, exact: bool) -> Floats:
        """Return the numbers of each sample (N, width) that derivatives up to an order need, the others zero.

        exact : whether curvatures are, which do not take the information
        """
        law, y = self.filled(values, samples), samples.values
        found, (there, at, level, g, information, H, T) = np.zeros((len(y), self.width)), self.parts
        found[:, there], found[:, at] = 1.0, values[:, self.moving]
        if order < 2:
            found[:, level] = -law.log_density(y)[:, None]
            return found
        by = law.by_arguments(y, self.names)
        count = len(y)
        found[:, level], found[:, g], found[:, H] = -by.value[:, None], -by.gradient, -by.hessian.reshape(count, -1)
        if not exact:
            found[:, information] = np.asarray(law.information(self.names)).reshape(count, -1)
        if order > 2:
            felt = np.abs(np.einsum("nkk->nk", by.hessian)) + by.gradient**2
            found[:, T] = -self._third(law, y, felt).reshape(count, -1)
        return found

    def _third(self, law: Law, y: Floats, felt: Floats) -> Floats:
        """Return the third derivatives (N, m, m, m), of differences of the second ones.

        felt : by each sample, of each argument, as an information
        """
        m, every, paths = len(self.moving), law.arguments, [p for p, v in law.arguments.items() if v is not None]
        inner = innermost(law)
        is_limited = bool(np.isfinite(np.ravel(np.asarray(inner.support[0]))).all())
        shifts, steps = [], []
        for k, name in enumerate(self.names):
            told = np.asarray(law.information([name]))[:, 0, 0] if name == law.location_path else felt[:, k]
            at, scale = np.asarray(every[name]), 1 / np.sqrt(np.maximum(told, 1e-300))
            if is_limited or name != law.location_path:
                scale = np.minimum(scale, np.where(at != 0, np.abs(at), np.inf))
            steps.append(DIFFERENCE_STEP * scale)
            shifts += [(name, where * steps[-1]) for where, _ in DIFFERENCE_STENCIL]
        blocks = len(shifts)
        stacked = {p: np.tile(np.broadcast_to(every[p], y.shape), (blocks, 1)) for p in paths}
        for row, (name, shift) in enumerate(shifts):
            stacked[name][row] += shift
        moved = law.filled({p: v.ravel() for p, v in stacked.items()})
        hessians = moved.by_arguments(np.tile(y, blocks), self.names).hessian.reshape(
            m, len(DIFFERENCE_STENCIL), len(y), m, m
        )
        weights = np.array([w for _, w in DIFFERENCE_STENCIL])
        T = np.einsum("s,ksnij->nkij", weights, hessians) / np.stack(steps, axis=1)[:, :, None, None]
        return np.asarray(sum(np.transpose(T, (0, *(1 + np.array(p)))) for p in permutations(range(3))) / 6)


def law_costs(model: DirectModel, slots: ca.SX, q: ca.SX) -> tuple[LawCost, ...]:
    """Return what the laws of a model's outputs add; ``q``: its quantities as formulas of slots and constants."""
    found = []
    for by in model.laws:
        within = ca.substitute(by.formulas, model.q, q)
        free = [k for k, path in enumerate(by.paths) if path not in by.law.held_arguments]
        moving = tuple(k for k in free if k == 0 or ca.depends_on(within[k], ca.vertcat(model.X, model.Z, slots)))
        eta = ca.densify(by.formulas[list(moving)])
        function = ca.Function("eta", model.arguments, [eta])
        found.append(LawCost(by, moving, function, find_defined_points(eta, model.arguments)))
    return tuple(found)


def add_laws(laws: Sequence[LawCost], arguments: Sequence[ca.SX], data: ca.SX, a: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the expansions of all outputs with laws, and their information."""
    total, information, first = ca.SX(0), ca.SX(a.numel(), a.numel()), 0
    for law in laws:
        cost, bent = law.cost(arguments, data[first : first + law.width], a)
        total, information, first = total + cost, information + bent, first + law.width
    return total, information


@dataclass(frozen=True, eq=False)
class SamplesByLaw:
    """The samples of an output with a law in one record; ``ends``: the end of an element at which each lies."""

    cost: LawCost
    rows: slice
    """Of the law's arguments among those of all laws."""
    columns: slice
    """Of its numbers among those of all laws."""
    samples: OutputSamples
    ends: Any

    def law(self, arguments: Floats) -> Law:
        """Return the law of each sample; ``arguments`` (ends, arguments of all laws)."""
        return self.cost.filled(arguments[self.ends, self.rows], self.samples)

    def expansion(self, arguments: Floats, order: int, exact: bool) -> Floats:
        """Return the numbers of each sample."""
        return self.cost.expansion(arguments[self.ends, self.rows], self.samples, order, exact)


def samples_by_law(
    costs: Sequence[LawCost], outputs: Sequence[str], samples: Sequence[OutputSamples], ends_of_samples: np.ndarray
) -> tuple[SamplesByLaw, ...]:
    """Return those of one record."""
    found, row, column = [], 0, 0
    for cost in costs:
        rows, columns = slice(row, row + len(cost.by.paths)), slice(column, column + cost.width)
        row, column = rows.stop, columns.stop
        found += [
            SamplesByLaw(cost, rows, columns, s, ends_of_samples[s.rows])
            for s in samples
            if s.output == outputs[cost.by.column]
        ]
    return tuple(found)
