"""What outputs with common noise add to a log-likelihood: jointly normal samples at each instant.

With e = y − ŷ of what was measured at an instant, Σ its covariance and L Lᵀ = Σ (Cholesky), in the order of the outputs

    ℓ = Σ_i −½ r_i² − log L_ii − ½ log 2π,      r = L⁻¹ e
    ∂r/∂θ = −L⁻¹ ∂ŷ/∂θ − Φ(A) r,                 A = L⁻¹ (∂Σ/∂θ) L⁻ᵀ,     Φ: lower triangle with half of the diagonal
    I(θ)  = (∂ŷ/∂θ)ᵀ Σ⁻¹ ∂ŷ/∂θ + ½ tr(A_k A_l)

so that the share of a sample is its log-density given those before it. What was not measured is left out of Σ, which is
the marginal law of the rest: instants are taken together by what was measured at them.
Reference: J. R. Magnus, H. Neudecker, Matrix Differential Calculus (1988), chapter 15.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grisaille.estimation.measurements.sample_formulas import SampleFormula
from grisaille.estimation.measurements.terms import LawTerms, SamplesUnderLaw
from grisaille.model.flat import FlatModel
from grisaille.model.measurement.noise_covariances import groups_of, level_name, shared_covariances

MAX_ENTRIES_IN_MEMORY = 2_000_000
"""Of ∂Σ/∂θ that are held at a time."""


@dataclass(frozen=True, eq=False)
class SharedNoise:
    """Outputs whose noise hangs together.

    covariances : by the places (i, j) of two outputs, i < j; σ of an output is what ``noise(y)`` in them needs
    """

    outputs: tuple[str, ...]
    covariances: Mapping[tuple[int, int], SampleFormula]

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Observed names in the formulas, levels of noise not among them."""
        levels = {level_name(n) for n in self.outputs}
        return tuple(dict.fromkeys(n for f in self.covariances.values() for n in f.needs if n not in levels))

    def among(self, places: Sequence[int]) -> dict[tuple[int, int], SampleFormula]:
        """Return the covariances of some of the outputs."""
        return {(i, j): f for (i, j), f in self.covariances.items() if i in places and j in places}

    @cached_property
    def is_constant(self) -> bool:
        """Return whether covariances are the same at all instants where levels of noise are."""
        return not self.needs and not any(f.follows_time for f in self.covariances.values())


def shared_noises(model: FlatModel, outputs: Sequence[str]) -> tuple[SharedNoise, ...]:
    """Return the groups of measured outputs that covariances tie together."""
    return model.cached_value(("shared noise", tuple(outputs)), lambda: _groups(model, outputs))


def _groups(model: FlatModel, outputs: Sequence[str]) -> tuple[SharedNoise, ...]:
    formulas = shared_covariances(model, outputs)
    found = []
    for group in groups_of(formulas, outputs):
        mine = {pair: f for pair, f in formulas.items() if pair[0] in group}
        places = {pair: sorted(map(group.index, pair)) for pair in mine}
        if places:
            compiled = {(i, j): SampleFormula.of(model, mine[pair]) for pair, (i, j) in places.items()}
            found.append(SharedNoise(tuple(group), compiled))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class CovarianceEntries:
    """Entries of Σ at instants, and their derivatives, where they are asked for.

    values : by places (i, j), i ≤ j, (N,) each; N = 1 where they are the same at all instants
    slopes : (N, n) each
    """

    values: Mapping[tuple[int, int], np.ndarray]
    slopes: Mapping[tuple[int, int], np.ndarray]

    @property
    def is_constant(self) -> bool:
        """Return whether Σ is the same at all instants."""
        return all(len(v) == 1 for v in self.values.values())

    def matrix(self, among: Sequence[int], rows: np.ndarray) -> np.ndarray:
        """Return Σ of some outputs at some instants, (M, m, m)."""
        return _symmetric(self.values, among, rows, ())

    def moved(self, among: Sequence[int], rows: np.ndarray, by: np.ndarray) -> np.ndarray:
        """Return ∂Σ of some outputs at some instants by some unknowns, (M, k, m, m)."""
        own = {pair: s[:, by] for pair, s in self.slopes.items()}
        return np.moveaxis(_symmetric(own, among, rows, (len(by),)), -1, 1)

    @property
    def moving(self) -> np.ndarray:
        """Return the unknowns that Σ depends on."""
        felt = [np.abs(s).max(axis=0) > 0 for s in self.slopes.values() if len(s)]
        return np.flatnonzero(np.any(felt, axis=0)) if felt else np.zeros(0, dtype=int)


@dataclass(frozen=True, eq=False)
class Tie:
    """Samples of some outputs at instants at which just these were measured, and how their noise hangs together.

    outputs : which of the ``samples`` of an experiment
    positions : of the instants among the samples of each
    root : Cholesky factor of the correlation matrix, (M, m, m), or (1, m, m) where it is the same at all instants
    """

    outputs: tuple[int, ...]
    positions: tuple[np.ndarray, ...]
    root: np.ndarray

    def mix(self, z: list[np.ndarray]) -> None:
        """Correlate independent standard normal numbers, one array for each of the ``samples``, in place."""
        own = np.stack([z[k][at] for k, at in zip(self.outputs, self.positions, strict=True)], axis=1)
        mixed = (self.root @ own[:, :, None])[:, :, 0]
        for column, (k, at) in enumerate(zip(self.outputs, self.positions, strict=True)):
            z[k][at] = mixed[:, column]


def ties(
    rows: Sequence[np.ndarray], which: Sequence[int], places: Sequence[int], entries: CovarianceEntries
) -> list[Tie]:
    """Return how the samples of correlated outputs belong together.

    rows : of the grid, of each output
    which : of the ``samples`` of an experiment they are
    places : of these outputs in Σ
    """
    instants = np.unique(np.concatenate(rows))
    there = np.stack([np.isin(instants, own) for own in rows], axis=1)
    found = []
    for kept, at in _patterns(there, entries.is_constant, 1):
        covariance = entries.matrix([places[k] for k in kept], np.zeros(1, dtype=int) if entries.is_constant else at)
        size = np.sqrt(np.einsum("tii->ti", covariance))
        root = _roots(covariance / size[:, :, None] / size[:, None, :])
        positions = tuple(np.searchsorted(rows[k], instants[at]) for k in kept)
        found.append(Tie(tuple(which[k] for k in kept), positions, root))
    return found


def joint_terms(
    seen: Sequence[SamplesUnderLaw], places: Sequence[int], entries: CovarianceEntries, count: int
) -> list[LawTerms]:
    """Return the terms of the samples of correlated outputs, one for each of ``seen``; the information is in the first.

    places : of these outputs in Σ
    entries : on rows 0, 1, … of the instants of ``seen``
    count : of unknowns, or 0 where derivatives are not wanted
    """
    instants = np.unique(np.concatenate([s.samples.rows for s in seen]))
    at = [np.searchsorted(instants, s.samples.rows) for s in seen]
    errors = np.full((len(instants), len(seen)), np.nan)
    located = np.zeros((len(instants), len(seen), count))
    for k, (s, rows) in enumerate(zip(seen, at, strict=True)):
        errors[rows, k] = s.errors
        if count:
            located[rows, k] = s.located
    density, scores = np.zeros(errors.shape), np.zeros((*errors.shape, count))
    information, by = np.zeros((count, count)), entries.moving
    for kept, rows in _patterns(np.isfinite(errors), entries.is_constant, len(by)):
        among = [places[k] for k in kept]
        cells = np.ix_(rows, kept)
        first = np.zeros(1, dtype=int) if entries.is_constant else rows
        found = _Joint.of(errors[cells], entries.matrix(among, first))
        density[cells] = found.log_density
        if count:
            scores[cells], added = found.derivatives(located[cells], entries.moved(among, first, by), by)
            information += added
    nothing = np.zeros((count, count))
    return [
        LawTerms(s.law, density[rows, k], scores[rows, k], nothing if k else information)
        for k, (s, rows) in enumerate(zip(seen, at, strict=True))
    ]


@dataclass(frozen=True, eq=False)
class _Joint:
    """Instants at which the same outputs were measured."""

    root: np.ndarray
    """L, (M, m, m), or (1, m, m) where it is the same at all."""
    whitened: np.ndarray
    """r, (M, m)"""

    @classmethod
    def of(cls, errors: np.ndarray, covariance: np.ndarray) -> _Joint:
        root = _roots(covariance)
        return cls(root, _solve(root, errors[:, :, None])[:, :, 0])

    @property
    def log_density(self) -> np.ndarray:
        diagonal = np.einsum("tii->ti", self.root)
        with np.errstate(invalid="ignore"):
            return np.asarray(-0.5 * self.whitened**2 - np.log(diagonal) - 0.5 * np.log(2 * np.pi))

    def derivatives(self, located: np.ndarray, moved: np.ndarray, by: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores, (M, m, n), and information, (n, n).

        located : ∂ŷ, (M, m, n)
        moved : ∂Σ by the unknowns ``by``, (M, k, m, m)
        """
        r, seen = self.whitened, _solve(self.root, located)
        scores = r[:, :, None] * seen
        rows = seen.reshape(-1, seen.shape[-1])
        information = rows.T @ rows
        if len(by):
            half = _solve(self.root[:, None], moved)
            A = _solve(self.root[:, None], np.swapaxes(half, -1, -2))
            lower = np.tril(A, -1) + 0.5 * np.einsum("tkii->tki", A)[..., None] * np.eye(A.shape[-1])
            turned = (lower @ r[:, None, :, None])[..., 0]
            scores[:, :, by] += np.moveaxis(r[:, None, :] * turned - 0.5 * np.einsum("tkii->tki", A), 1, 2)
            flat = A.reshape(*A.shape[:2], -1)
            repeated = len(r) / len(A)
            information[np.ix_(by, by)] += 0.5 * repeated * np.einsum("tka,tla->kl", flat, flat)
        return scores, information


def _roots(covariance: np.ndarray) -> np.ndarray:
    """Return L of each matrix; NaN of those that are not positive definite, where there is no density."""
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        if len(covariance) == 1:
            return np.full(covariance.shape, np.nan)
    return np.concatenate([_roots(one[None]) for one in covariance])


def _solve(root: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return L⁻¹ B for stacks of triangular L, by forward substitution over the outputs, which are few."""
    found = np.empty(np.broadcast_shapes(root.shape[:-2], right.shape[:-2]) + right.shape[-2:])
    for i in range(root.shape[-1]):
        left = right[..., i, :]
        if i:
            left = left - (root[..., i, None, :i] @ found[..., :i, :])[..., 0, :]
        found[..., i, :] = left / root[..., i, i, None]
    return found


def _patterns(there: np.ndarray, at_once: bool, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give which outputs were measured, with the instants at which just these were, in blocks of bearable size."""
    kinds, which = np.unique(there, axis=0, return_inverse=True)
    for k, kind in enumerate(kinds):
        kept, rows = np.flatnonzero(kind), np.flatnonzero(which.ravel() == k)
        size = len(rows) if at_once else max(MAX_ENTRIES_IN_MEMORY // (max(count, 1) * len(kept) ** 2), 1)
        yield from ((kept, rows[first : first + size]) for first in range(0, len(rows), size))


def _symmetric(
    entries: Mapping[tuple[int, int], np.ndarray], among: Sequence[int], rows: np.ndarray, further: tuple[int, ...]
) -> np.ndarray:
    """Return a symmetric matrix at each of some rows, (M, m, m, …), from its upper triangle."""
    made = np.zeros((len(rows), len(among), len(among), *further))
    for i, a in enumerate(among):
        for j, b in enumerate(among):
            entry = entries.get((min(a, b), max(a, b)))
            if entry is not None:
                made[:, i, j] = entry[rows]
    return made
