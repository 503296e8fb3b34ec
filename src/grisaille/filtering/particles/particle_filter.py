"""The particle filter of one model and one record.

An estimate of the likelihood without bias: E exp(log L̂) = L for the model as it is stepped, whatever the number of
particles and the proposals. Its logarithm is too small by half its variance in the mean. With the same seed the same
random numbers are drawn at all values of the unknowns, and particles are drawn again in an order in which neighbours
are alike (gr_resample.h), so that log L̂ is nearly smooth.

References: N. J. Gordon, D. J. Salmond, A. F. M. Smith, IEE Proc. F 140 (1993) 107; P. Del Moral, Feynman–Kac
Formulae (2004), section 7.4 (no bias); A. Doucet, S. Godsill, C. Andrieu, Stat. Comput. 10 (2000) 197 (proposals by
linearisation); M. Gerber, N. Chopin, J. R. Stat. Soc. B 77 (2015) 509 (order).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.compilation.particles import (
    MeasurementLaws,
    ParticleAnswer,
    ParticleCode,
    ParticleFormulas,
    ParticleRecord,
    ParticleRun,
    Walk,
    particle_lanes,
    run_particles,
)
from grisaille.compilation.shared_library import SharedLibrary
from grisaille.disturbance import Purpose, stream_key
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.experiment.record_cells import MeasuredRecord, RecordCells
from grisaille.filtering.filter import Derivatives, Filter, FilterPoint, FilterStates
from grisaille.filtering.kalman import Likelihood
from grisaille.filtering.particles.measurement_laws import LawColumns, NotedPredictions, RecordLaws
from grisaille.filtering.particles.particle_ahead import ParticlesAhead
from grisaille.filtering.particles.particle_events import refuse_ticks_at_the_start
from grisaille.filtering.particles.particle_formulas import particle_formulas
from grisaille.filtering.particles.particle_smoother import smoothed_moments
from grisaille.filtering.particles.particle_start import particle_start, root_of
from grisaille.filtering.particles.particle_steps import ParticleSteps
from grisaille.filtering.passes import stages_of
from grisaille.memory import BYTES_PER_DOUBLE, require_memory
from grisaille.numerics.philox import Key

Proposal: TypeAlias = Literal["auto", "bootstrap", "guided"]


@dataclass(frozen=True)
class ParticleOptions:
    """How many particles are drawn and how."""

    particles: int = 1000
    seed: int = 1
    proposal: Proposal = "auto"
    substeps: int | Literal["auto"] = "auto"
    initial_covariance: Any = "first-sample"
    clips: bool = False
    """Whether states are kept inside the bounds that their variables declare."""


class ParticleFilter(Filter):
    """Many simulated states, weighed by the measurements.

    nominal : sizes of the plant's states
    limits : for each law of an output, by path, limits that samples have of their own
    """

    derivatives: ClassVar[Derivatives] = None
    difference: ClassVar[float] = 0.03
    """Long against what random numbers leave of roughness."""

    def __init__(
        self, model: StochasticModel, record: MeasuredRecord, options: ParticleOptions, nominal: Floats,
        limits: tuple[Mapping[str, Floats], ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(model, record)
        self.options, self.limits = options, limits
        self.plant_nominal, self.steps, self.seed = nominal, ParticleSteps((), 0, 0), options.seed
        self._records: dict[bytes, ParticleRecord] = {}

    @property
    def name(self) -> str:
        return "particle filter"

    @cached_property
    def formulas(self) -> ParticleFormulas:
        return particle_formulas(self.model)

    @cached_property
    def laws(self) -> RecordLaws | None:
        """The laws of outputs that are not normal, where there are any."""
        found = LawColumns.of(self.model.structure.model, self.model.outputs)
        if not found:
            return None
        return RecordLaws(found, self.record.y, int(self.formulas.seen.numel()), self.limits, self.record.name)

    def code(self, guided: bool) -> ParticleCode:
        """Return the compiled functions, made once for a model."""
        key = "particle code", guided
        return self.model.cached_value(key, lambda: ParticleCode(self.formulas, guided))

    @property
    def can_guide(self) -> bool:
        """Whether anything random happens between samples that a linearisation can see."""
        return bool(self.formulas.v.numel())

    def with_steps(self, steps: Discretisation, at: Callable[[], FilterPoint]) -> ParticleFilter:
        assert isinstance(steps, ParticleSteps), f"{steps} are no steps of a particle filter"
        return self._stepping(steps)

    def _stepping(self, steps: ParticleSteps) -> ParticleFilter:
        made = copy.copy(self)
        made.steps, made._records = steps, {}
        return made

    def with_seed(self, seed: int) -> Self:
        """Return the filter with other random numbers."""
        made = copy.copy(self)
        made.seed = seed
        return made

    def with_record(self, record: MeasuredRecord) -> Self:
        made = super().with_record(record)
        made._records = {}
        vars(made).pop("laws", None)
        return made

    def choose_steps(
        self, at: FilterPoint, count: int | str, known: Discretisation | None, values: str
    ) -> ParticleSteps:
        from grisaille.filtering.particles.pilot import choose_particle_steps

        return choose_particle_steps(self, at.plain, count, known)

    def start_moments(self, at: FilterPoint) -> tuple[Floats, Floats]:
        times, cells = self.record.times, self.cells(at.q)
        interval = float(times[1] - times[0]) if len(times) > 1 else 0.0
        u = cells.at(np.zeros(1))[1][0, 0] if len(cells.lengths) else cells.end
        kind = self.options.initial_covariance
        return particle_start(self.model, kind, float(times[0]), u, at.q, at.start.x[0], at.start.z[0], interval)

    def run(
        self, at: FilterPoint, wants: frozenset[str] = frozenset(), walk: Walk | None = None,
        inflation: Floats | None = None, laws: MeasurementLaws | None = None,
    ) -> ParticleAnswer:  # fmt: skip
        """Return one pass over the record.

        wants : ``"moments"``, ``"paths"``, ``"errors"`` beside the likelihood
        inflation, laws : in place of those of the filter
        """
        mean, P = self.start_moments(at)
        s, root = self._carried(mean, at.start.z[0]), root_of(P)
        carried_root = np.zeros((len(s), root.shape[1]))
        carried_root[: len(P)] = root
        given = self.steps.inflation if inflation is None else inflation
        added = np.array(given) if len(given) else np.zeros(self.record.y.shape)
        run = ParticleRun(
            self.count, at.q, self._nominal, s, carried_root, self._key(0), self.steps.guided, added,
            laws=laws or self.laws, walk=walk, limits=self._bounds, wants=wants,
        )  # fmt: skip
        return run_particles(self.library, self.prepared(at.q), run, self.model.n)

    def simulate(self, at: FilterPoint, particles: Floats, first: int, last: int, number: int) -> ParticleAnswer:
        """Return moments at the samples on cells [first, last) of particles, (J, ns), that go on without measurements.

        number : of the random numbers
        """
        record = self.prepared(at.q).unmeasured(first, last)
        nothing = np.zeros((len(particles[0]), 0))
        run = ParticleRun(
            self.count, at.q, self._nominal, particles[0], nothing, self._key(1 + number), 0,
            np.zeros(record.y.shape), enter=particles, limits=self._bounds, wants=frozenset({"moments"}),
        )  # fmt: skip
        return run_particles(self.library, record, run, self.model.n)

    @property
    def library(self) -> SharedLibrary:
        """The compiled filter with the proposals of the steps."""
        return self.code(self.steps.guided > 0).library

    @property
    def count(self) -> int:
        """How many particles there are: as many as are moved at once divide it."""
        abreast = particle_lanes(self.library)
        return max(2, -(-self.steps.particles // abreast) * abreast)

    def _key(self, number: int) -> Key:
        name = self.record.name if not number else f"{self.record.name} from {number}"
        return stream_key(self.seed, Purpose.PARTICLES, name)

    def estimate(self, at: FilterPoint) -> tuple[float, int]:
        """Return the estimate of log L alone, and the sample that no particle explained; −1: none."""
        answer = self.run(at)
        return (float(answer.terms.sum()) if answer.failed == -1 else -np.inf), answer.failed

    def log_likelihood(self, at: FilterPoint) -> Likelihood:
        """Return the estimate with predictions one sample ahead."""
        answer = self.run(at, frozenset({"predictions"}))
        mean, variance, _ = self.predictions(at, answer)
        y, n = self.record.y, len(at.dq)
        innovations = np.where(np.isnan(y), np.nan, y - mean)
        value = float(answer.terms.sum()) if answer.failed == -1 else -np.inf
        return Likelihood(
            value, np.zeros(n), np.zeros((n, n)), innovations, variance, np.zeros((len(y), n, y.shape[1])),
            int(np.isfinite(y).sum()), answer.failed,
        )  # fmt: skip

    def predictions(self, at: FilterPoint, answer: ParticleAnswer | None = None) -> tuple[Floats, Floats, Floats]:
        """Return means and variances of measurements one sample ahead, and P(Y ≤ y) of each, (N, ny).

        Where laws are not normal particles must not have moved towards the measurement yet: they then come from a run
        with the model's own proposals.
        """
        laws = self.laws
        if laws is None:
            answer = answer or self.run(at, frozenset({"predictions"}))
            assert answer.predicted is not None and answer.variance is not None and answer.position is not None
            return answer.predicted, answer.variance, answer.position
        noted = NotedPredictions(laws)
        answer = self._plainly().run(at, frozenset({"predictions"}), laws=noted)
        assert answer.predicted is not None and answer.variance is not None and answer.position is not None
        return noted.beside(answer.predicted, answer.variance, answer.position)

    def _plainly(self) -> ParticleFilter:
        """Return the filter with the model's own proposals."""
        return self._stepping(replace(self.steps, guided=0, inflation=()))

    def states(self, at: FilterPoint) -> FilterStates | Likelihood:
        size = BYTES_PER_DOUBLE * len(self.record.times) * self.count * (int(self.formulas.s.numel()) + 2)
        require_memory(
            size, f"The paths of {self.count} particles over {len(self.record.times)} samples",
            lambda available: f"{int(self.count * available / size)} particles would fit.",
        )  # fmt: skip
        answer = self.run(at, frozenset({"moments", "paths"}))
        if answer.failed != -1:
            return self.log_likelihood(at)
        assert answer.mean is not None and answer.covariance is not None
        n, nz = self.model.n, int(self.model.z.numel())
        x_smooth, P_smooth = smoothed_moments(answer, n)
        z = answer.mean[:, n : n + nz] if nz else None
        return FilterStates(answer.mean[:, :n], answer.covariance, x_smooth, P_smooth, z=z)

    @property
    def ahead(self) -> ParticlesAhead:
        """Predictions over several samples."""
        return ParticlesAhead(self)

    def prepared(self, q: Floats) -> ParticleRecord:
        """Return the record on cells with the steps of this filter; kept while signals stay."""
        cells = self.cells(q)
        key = b"".join(np.ascontiguousarray(a).tobytes() for a in (cells.bounds, cells.coefficients, cells.end))
        found = self._records.get(key)
        if found is None:
            refuse_ticks_at_the_start(self.model, float(self.record.times[0]), cells.at(np.zeros(1))[1][0, 0], q)
            found = self._prepare(cells)
            self._records = {key: found}
        return found

    def _prepare(self, cells: RecordCells) -> ParticleRecord:
        steps = np.array(self.steps.substeps, dtype=np.int64)
        if len(steps) == 1:
            steps = np.repeat(steps, len(cells.lengths))
        signals = np.concatenate([cells.at(np.zeros(1))[1][:, 0], cells.end[None]])
        weights = np.where(self.record.weights > 0, self.record.weights, 1.0)
        return ParticleRecord(
            cells.bounds,
            stages_of(cells, steps),
            steps,
            signals,
            cells.sample_at,
            self.record.y,
            1 / weights,
            self._by_law,
        )

    @cached_property
    def _by_law(self) -> NDArray[np.bool_]:
        marked = np.zeros(len(self.model.outputs), dtype=bool)
        marked[[law.output for law in (self.laws.laws if self.laws else ())]] = True
        return marked

    @cached_property
    def _nominal(self) -> Floats:
        sizes = np.ones(int(self.formulas.s.numel()))
        sizes[: len(self.plant_nominal)] = self.plant_nominal
        return sizes

    def _carried(self, x: Floats, z: Floats) -> Floats:
        s = np.zeros(int(self.formulas.s.numel()))
        s[: len(x)], s[len(x) : len(x) + len(z)] = x, z
        return s

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats] | None:
        """Lowest and highest states by the bounds of their variables."""
        if not self.options.clips:
            return None
        variables, n = self.model.structure.model.variables, int(self.formulas.s.numel())
        low, high = np.full(n, -np.inf), np.full(n, np.inf)
        for k, name in enumerate(self.model.names[: self.model.nx]):
            bounds = getattr(variables.get(name), "bounds", None)
            if bounds is not None:
                lower, upper = bounds
                low[k], high[k] = -np.inf if lower is None else lower, np.inf if upper is None else upper
        return low, high
