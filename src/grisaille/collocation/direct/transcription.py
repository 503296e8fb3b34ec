"""All records as one nonlinear program: arrays over first points and elements, and its evaluation.

Unknown are θ and, for every record, the first point (X₀, Z₀, ζ) and the points of every element. Elements of all
records lie behind each other, so that one call of a function serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.collocation.array_types import Floats
from grisaille.collocation.direct.direct_functions import DirectFunctions
from grisaille.collocation.direct.element_mesh import RADAU_MATRIX, RADAU_POINTS, DirectRecord, ElementMesh
from grisaille.collocation.direct.law_costs import samples_by_law
from grisaille.memory import BYTES_PER_DOUBLE, require_memory

MATRIX_SETS_IN_MEMORY = 15
"""Sets of the matrices of all elements (Jacobian, Hessian, eliminated ones) that Newton's method and the marginal
likelihood hold at the same time."""


@dataclass(frozen=True, eq=False)
class TranscriptionPoint:
    """Values of all unknowns."""

    theta: Floats
    first: Floats
    """(R, n + nz)"""
    zeta: Floats
    """(R, n_w)"""
    inner: Floats
    """(E, s (n + nz)): X₁, Z₁, X₂, …; behind Z⁺ where algebraic unknowns have values after jumps."""
    noise: Floats
    """(E, s nv)"""

    def moved(self, step: TranscriptionPoint, fraction: float) -> TranscriptionPoint:
        return TranscriptionPoint(*(getattr(self, f) + fraction * getattr(step, f) for f in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Costs:
    """The parts of the criterion, and how far the equations are from holding."""

    noise: float
    residuals: float
    levels: float
    information: float
    first: Floats
    inner: Floats

    @property
    def objective(self) -> float:
        """Σ (y − ŷ)²/2σ² + ∫ |v|²/2 dt (+ information on θ)."""
        return self.noise + self.residuals + self.information

    @property
    def total(self) -> float:
        return self.objective + self.levels

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.total) and np.isfinite(self.first).all() and np.isfinite(self.inner).all())


class Transcription:
    """Functions with the data of records on their meshes."""

    def __init__(
        self, functions: DirectFunctions, records: Sequence[DirectRecord], meshes: Sequence[ElementMesh],
        information: ca.Function | None = None,
    ) -> None:  # fmt: skip
        self.functions, self.records, self.meshes = functions, tuple(records), tuple(meshes)
        self.model, self.slots, self.information = functions.model, functions.slots, information
        counts = [len(m.lengths) for m in meshes]
        self._require(sum(counts))
        self.edges = np.concatenate([[0], np.cumsum(counts)]).astype(int)
        self.record_of = np.repeat(np.arange(len(meshes)), counts)
        self.element_data = np.vstack([self._elements(r) for r in range(len(meshes))])
        self.start_data = np.vstack([self._start(r) for r in range(len(meshes))])
        lengths = np.concatenate([m.lengths for m in meshes])
        self.samples_by_law = [
            samples_by_law(functions.laws, r.outputs, r.trial.data.samples, m.ends_of_samples)
            for r, m in zip(records, meshes, strict=True)
        ]
        self.noise_weights = np.repeat(lengths[:, None] * RADAU_MATRIX[-1], self.model.nv, axis=1)
        """(E, s nv): the curvature h b_j of the cost in v."""
        n, nz, size = self.model.n, self.model.nz, functions.element.sizes.inner
        Z = np.arange(nz) if functions.after else np.arange(size - nz, size)
        self.seen_columns = np.concatenate([np.arange(size - n - nz, size - nz), Z])
        """Where (X, Z) at the right end stand among the inner unknowns, Z after a jump there."""

    def _require(self, elements: int) -> None:
        """Refuse elements whose matrices do not fit into memory."""
        sizes = self.functions.element.sizes
        width = 1 + sizes.slots + sizes.past + sizes.noise
        matrices = sizes.total * (sizes.total + sizes.inner + width) + width * (width + 1 + sizes.slots + self.model.n)
        each = MATRIX_SETS_IN_MEMORY * BYTES_PER_DOUBLE * matrices
        require_memory(
            elements * each,
            f"Collocation on {elements} elements of {sizes.total} unknowns",
            lambda available: (
                f"{available // each} elements would fit: fit a part of the record, or resample it; gr.KalmanML() "
                f"takes a small part of that."
            ),
        )

    def span(self, r: int) -> tuple[int, int]:
        return int(self.edges[r]), int(self.edges[r + 1])

    def _measurements(self, r: int) -> tuple[Floats, Floats]:
        record, mesh = self.records[r], self.meshes[r]
        measured = record.measured
        values = np.where(measured, record.y, 0.0)
        weights = np.where(measured, record.weights, 0.0)
        weights[:, [law.column for law in self.model.laws]] = 0.0
        at = mesh.sample_at
        blank = (at < 0)[:, None]
        return np.where(blank, 0.0, values[at]), np.where(blank, 0.0, weights[at])

    def arguments_of_laws(self, point: TranscriptionPoint, r: int) -> Floats:
        """Return (E + 1, arguments of all laws) at the first instant and at the ends of a record."""
        return self.look("arguments", point, r)[0]

    def data(self, point: TranscriptionPoint, order: int = 1, exact: bool = True) -> tuple[Floats, Floats]:
        """Return data of first points and elements, with laws as they are at a point, for derivatives up to an
        order.
        """
        if not self.functions.laws:
            return self.start_data, self.element_data
        start, elements = self.start_data.copy(), self.element_data.copy()
        width = sum(law.width for law in self.functions.laws)
        for r, every in enumerate(self.samples_by_law):
            first, last = self.span(r)
            arguments = self.arguments_of_laws(point, r)
            both = np.zeros((last - first + 1, width))
            for one in every:
                both[one.ends, one.columns] = one.expansion(arguments, order, exact)
            start[r, -width:], elements[first:last, -width:] = both[0], both[1:]
        return start, elements

    def _elements(self, r: int) -> Floats:
        mesh = self.meshes[r]
        y, w = self._measurements(r)
        E = len(mesh.lengths)
        constants = np.repeat(self.slots.constant_values[r : r + 1], E, axis=0)
        u = mesh.u.reshape(E, -1)
        expanded = np.zeros((E, sum(law.width for law in self.functions.laws)))
        return np.hstack(
            [mesh.bounds[:-1, None], mesh.lengths[:, None], u, mesh.u_end[1:], y[1:], w[1:], constants, expanded]
        )

    def _start(self, r: int) -> Floats:
        mesh, conditions = self.meshes[r], self.functions.conditions
        y, w = self._measurements(r)
        parts = (mesh.bounds[:1], mesh.u_end[0], y[0], w[0], conditions.is_given[r], conditions.given[r])
        expanded = np.zeros(sum(law.width for law in self.functions.laws))
        return np.concatenate([*parts, self.slots.constant_values[r], expanded])[None]

    def ends(self, point: TranscriptionPoint) -> Floats:
        """Return (E, n): X at the right end of every element."""
        n, nz = self.model.n, self.model.nz
        return point.inner[:, point.inner.shape[1] - n - nz : point.inner.shape[1] - nz]

    def nodes(self, inner: Floats) -> Floats:
        """Return (E s, n + nz): (X, Z) at all Radau points, or what belongs to them."""
        width = self.model.n + self.model.nz
        return inner[:, self.functions.after :].reshape(len(inner) * RADAU_POINTS, width)

    def seen_points(self, point: TranscriptionPoint, r: int) -> Floats:
        """Return (E + 1, n + nz): (X, Z) at the first instant and at the ends of a record, after jumps of inputs."""
        first, last = self.span(r)
        return np.vstack([point.first[r : r + 1], point.inner[first:last, self.seen_columns]])

    def previous(self, point: TranscriptionPoint) -> Floats:
        """Return (E, n): X at the left end."""
        X = np.roll(self.ends(point), 1, axis=0)
        X[self.edges[:-1]] = point.first[:, : self.model.n]
        return X

    def arguments(self, point: TranscriptionPoint) -> tuple[Floats, Floats]:
        """Return a of the first points and of the elements."""
        values = self.slots.values(point.theta)
        return (
            np.hstack([point.first, point.zeta, values]),
            np.hstack([self.previous(point), point.inner, point.noise, values[self.record_of]]),
        )

    def as_point(self, theta: Floats, start: Floats, elements: Floats) -> TranscriptionPoint:
        """Return steps of a as a step of all unknowns."""
        s, e = self.functions.start.sizes.parts, self.functions.element.sizes.parts
        return TranscriptionPoint(theta, start[:, s[1]], start[:, s[2]], elements[:, e[1]], elements[:, e[2]])

    def evaluate(self, point: TranscriptionPoint) -> Costs:
        start, elements = self.arguments(point)
        with np.errstate(all="ignore"):
            of_start, of_elements = self.data(point)
            cost0, c0 = self.functions.start.values(start, of_start)
            cost, c = self.functions.element.values(elements, of_elements)
        noise, residuals, levels = cost0.sum(axis=0) + cost.sum(axis=0)
        known = float(self.information(point.theta)[0]) if self.information is not None else 0.0
        return Costs(float(noise), float(residuals), float(levels), known, c0, c)

    def costs_of_records(self, point: TranscriptionPoint) -> Floats:
        """Return (records, 3): what the noise, the residuals and the levels of each record cost."""
        start, elements = self.arguments(point)
        with np.errstate(all="ignore"):
            of_start, of_elements = self.data(point)
            total, _ = self.functions.start.values(start, of_start)
            cost, _ = self.functions.element.values(elements, of_elements)
        return np.asarray(total + np.add.reduceat(cost, self.edges[:-1], axis=0))

    def look(self, what: str | ca.SX, point: TranscriptionPoint, r: int) -> tuple[Floats, Floats, Floats]:
        """Return ``DirectFunctions.look`` at the first instant and all ends of a record.

        Values (N, rows), derivatives by (X, Z), (N, rows, n + nz), and by the slots, (N, rows, slots).
        """
        mesh, w = self.meshes[r], self.seen_points(point, r)
        q = np.concatenate([self.slots.values(point.theta)[r], self.slots.constant_values[r]])
        value, *slopes = self.functions.look(what)(mesh.bounds, w, mesh.u_end, q)
        by_w, by_slots = (s.reshape(*value.shape, -1) for s in slopes)
        return value, by_w, by_slots
