"""Passes of one filter at one point, without derivatives, that a search for steps looks at: each is run once.

A search asks for the same pass several times, for its log-likelihood, for the Jacobians along it, for what single cells
miss. Passes are told apart by what they step with, so that whoever changes the filter's steps gets another one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.cache import Cache
from grisaille.compilation.kalman.compiled_pass import PreparedPass
from grisaille.compilation.kalman.passing import FilterPass, PassResult
from grisaille.disturbance.duals import Floats
from grisaille.filtering.algebraic_roots import UnsolvedError
from grisaille.filtering.kalman import likelihood_of_sums
from grisaille.filtering.passes import Passes, sums_of

MAX_KEPT_PASSES = 2
"""Passes whose moments are kept, however long the record is: the last one, and the one that it is compared with."""
MORE = 2_000_000
"""Numbers of moments that may be kept beside them."""
MAX_KEPT = 8
TERMS = 5
"""Of the series of a linearised step, whose norm is an eighth at most: what is left out is 5e-9 of it, and less for
each doubling of the steps, nothing that a decision about them could feel."""
Key = tuple[object, ...]


class StepPasses:
    """The passes at q from a start x0, (1, nx), and z0, (1, nz); the steps of ``filter`` are changed."""

    def __init__(self, filter: Passes, q: Floats, x0: Floats, z0: Floats | None) -> None:
        self.filter, self.q, self.x0, self.z0 = filter, q, x0, z0
        self.nothing = np.zeros((0, len(q)))
        self._first = int(np.flatnonzero(filter.cells(q).sample_at >= 0)[1])
        self._values: Cache[float] = Cache(None)
        self._starts: Cache[Floats] = Cache(None)
        size = 2 * len(filter.cells(q).bounds) * filter.packing.size
        self._passes: Cache[PassResult] = Cache(int(np.clip(MORE // size, MAX_KEPT_PASSES, MAX_KEPT)))

    def value(self, filter: Passes | None = None) -> float:
        """Return log L; nothing where algebraic unknowns are not solved with these steps."""
        filter = filter or self.filter

        def make() -> float:
            try:
                return likelihood_of_sums(sums_of(self._solved(filter))).value
            except UnsolvedError:
                return np.nan

        return self._values.get(self._key(filter), make)

    def require_solved(self) -> None:
        """Raise where algebraic unknowns are not solved with these steps."""
        self._solved(self.filter)

    def moments(self) -> tuple[Floats, Floats, Floats, Floats, Floats] | None:
        """Return x_pred, P_pred, x_filt, P_filt and z after updates at every bound; None where there are none."""
        try:
            found = self._solved(self.filter)
        except UnsolvedError:
            return None
        if found.failed >= 0 or found.kept is None:
            return None
        x, P, z = self.filter.packing.split(found.kept)
        return x[:, 0], P[:, 0], x[:, 1], P[:, 1], z[:, 1]

    def start(self, filter: Passes | None = None) -> Floats:
        """Return what is carried before the first sample, (1, size)."""
        filter = filter or self.filter
        finer = np.ones(self._first, dtype=np.int64) if filter.finer is None else filter.finer[: self._first]
        key = ((filter.substeps * finer).tobytes(), filter.doublings, filter.newton)

        def make() -> Floats:
            with np.errstate(all="ignore"):
                return filter.start(filter.prepared(self.q), self.q, self.nothing, self.x0, self.z0)

        return self._starts.get(key, make)

    def plain(self, filter: Passes | None = None) -> PassResult:
        """Return a pass as it is, solved or not, with what it carries at every bound."""
        filter = filter or self.filter

        def make() -> PassResult:
            s = self.start(filter)
            with np.errstate(all="ignore"):
                given = replace(filter.prepared(self.q).given, terms=TERMS)
                return filter.carry(PreparedPass(given), self.q, s, self.nothing, keep=True)

        return self._passes.get(self._key(filter), make)

    def ends_of_steps(self) -> tuple[Floats, Floats] | None:
        """Return what is carried where each step begins and where it ends, (steps, size); None where nothing is."""
        found, steps = self.plain(), self.filter.steps(self.q)
        if found.failed >= 0 or found.kept is None:
            return None
        if found.along is None:
            kept = self.carry(self.filter.prepared(self.q).given.step_by_step())
            return kept[:-1, 1], kept[1:, 0]
        begin = np.empty_like(found.along)
        begin[1:] = found.along[:-1]
        begin[np.cumsum(steps) - steps] = found.kept[:-1, 1]
        return begin, found.along

    def carry(self, given: FilterPass) -> Floats:
        """Return what another pass carries at every bound, (K + 1, 2, size)."""
        with np.errstate(all="ignore"):
            given = replace(given, terms=TERMS)
            found = self.filter.carry(PreparedPass(given), self.q, self.start(), self.nothing, keep=True)
        assert found.kept is not None
        return found.kept

    def _solved(self, filter: Passes) -> PassResult:
        """Return a pass whose algebraic unknowns are solved, restarted after jumps of the inputs where that helps."""
        s = self.start(filter)
        filter.require_uncertainty(s[0])
        found = self.plain(filter)
        if filter.is_solved(found):
            return found
        with np.errstate(all="ignore"):
            return filter.run_again(self.q, s, self.nothing, keep=True)

    def _key(self, filter: Passes) -> Key:
        finer, again = (None if a is None else a.tobytes() for a in (filter.finer, filter.restarts))
        return int(filter.substeps), finer, filter.doublings, filter.newton, again
