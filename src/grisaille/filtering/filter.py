"""What every filter can be asked: the log-likelihood of a record, and the states along it, in one call each.

A filter is made for one model and one record and runs again and again at other values (``FilterPoint``). How finely it
steps is a value of its own (``with_steps``), so that running one changes nothing. It has exact derivatives, or declares
that it has none, and then differences take their place (``differences``). What else a filter may do has a default here:
nobody asks a filter what it is.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.skipped_bends import SkippedBump
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError
from grisaille.experiment.record_cells import MeasuredRecord, RecordCells, cut_into_cells
from grisaille.filtering.diffuse import DiffuseMoments
from grisaille.filtering.filter_steps import FilterDiscretisation, OwnSteps
from grisaille.filtering.kalman import DiscreteModel, Likelihood

Derivatives: TypeAlias = Literal["forward+reverse", "forward"] | None
"""Of the log-likelihood: along directions and, more cheaply, its gradient alone; along directions; none."""


@dataclass(frozen=True, eq=False)
class StartValues:
    """The consistent start with its derivatives: (1 + ns, nx) and (1 + ns, nz)."""

    x: Floats
    z: Floats


class FilterPoint(NamedTuple):
    """Where a filter runs: all parameters and levels q, (nq,), with ns directions dq, (ns, nq), and the start."""

    q: Floats
    dq: Floats
    start: StartValues

    @property
    def plain(self) -> FilterPoint:
        """Return the same without directions."""
        return FilterPoint(self.q, self.dq[:0], StartValues(self.start.x[:1], self.start.z[:1]))

    def moved(self, direction: int, by: float) -> FilterPoint:
        """Return the point so far along one of the directions, without directions."""
        x, z = (part[:1] + by * part[1 + direction] for part in (self.start.x, self.start.z))
        return FilterPoint(self.q + by * self.dq[direction], self.dq[:0], StartValues(x, z))


@dataclass(frozen=True)
class InnovationWeighting:
    """How innovations count: Huber's threshold c in standard deviations (−c for the smooth loss), and whether the
    first sample is conditioned on."""

    robust: float = np.inf
    condition: bool = False


@dataclass(frozen=True, eq=False)
class FilterStates:
    """Filtered and smoothed states at every sample: means (N, n), covariances (N, n, n)."""

    x_filt: Floats
    P_filt: Floats
    x_smooth: Floats | None = None
    """None where there is no smoother."""
    P_smooth: Floats | None = None
    z: Floats | None = None
    """(N, nz) algebraic unknowns after the sample; None where there are none, or where the start's will do."""
    open_filtered: Floats = field(default_factory=lambda: np.zeros((0, 0, 0)))
    """(N, n, nδ) directions of a flat prior that the data leave open (``diffuse``)."""
    open_smoothed: Floats = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def __post_init__(self) -> None:
        for name in ("open_filtered", "open_smoothed"):
            if not getattr(self, name).size:
                object.__setattr__(self, name, np.zeros((*self.x_filt.shape, 0)))

    @property
    def x_best(self) -> Floats:
        """Means given all data, or as many as there are."""
        return self.x_filt if self.x_smooth is None else self.x_smooth


class AheadPredictor(Protocol):
    """Predictions over several samples; origins: the last sample whose data each uses, never decreasing, −1: none."""

    def log_likelihood(self, at: FilterPoint, origins: np.ndarray) -> Likelihood:
        """Return the criterion of these predictions with its derivatives."""

    def known(self, at: FilterPoint, origins: np.ndarray) -> tuple[DiffuseMoments, Floats]:
        """Return what is known of the states at every sample, and algebraic unknowns (N, nz)."""


StartMoments: TypeAlias = Callable[[FilterPoint], tuple[Floats, Floats]]
"""Mean (n,) and covariance (n, n) of all states before the first sample, as ``initial_covariance`` has them."""


class Filter(ABC):
    """The filter of one model and one record; derive from it and give ``log_likelihood`` and ``states``.

    start : mean and covariance before the first sample
    """

    derivatives: ClassVar[Derivatives] = None
    is_exact: ClassVar[bool] = False
    """Whether its moments are those of the model's own normal law, which then also has ``matrices``."""
    difference: ClassVar[float] = 1e-5
    """Steps of differences relative to an unknown, where there are no derivatives."""

    def __init__(self, model: StochasticModel, record: MeasuredRecord, start: StartMoments | None = None) -> None:
        self.model, self.record, self.given_start = model, record, start

    @property
    def name(self) -> str:
        """Return what it is called in sentences."""
        return type(self).__name__.strip("_")

    @property
    def rival(self) -> str:
        """Return the filter with which its approximation is compared; empty where there is nothing to compare."""
        return ""

    @property
    def ahead(self) -> AheadPredictor | None:
        """Predictions over several samples; None where it has none."""
        return None

    def require_ahead(self) -> AheadPredictor:
        """Return its predictions over several samples, or raise where it has none."""
        if self.ahead is None:
            raise EstimationError(
                f"{self.name} predicts from sample to sample only: predictions over several samples need a filter with "
                f"``ahead``, such as filter='linear' or 'extended'."
            )
        return self.ahead

    @abstractmethod
    def log_likelihood(self, at: FilterPoint) -> Likelihood:
        """Return log L, with its derivatives in the directions of the point where the filter has derivatives."""

    @abstractmethod
    def states(self, at: FilterPoint) -> FilterStates | Likelihood:
        """Return states at every sample; the likelihood where the filter breaks down."""

    def gradient(self, at: FilterPoint) -> Likelihood:
        """Return log L and its gradient, perhaps without the information and the derivatives of innovations."""
        return self.log_likelihood(at)

    def choose_steps(
        self, at: FilterPoint, count: int | str, known: Discretisation | None, values: str
    ) -> FilterDiscretisation:
        """Return the steps between samples.

        count : steps that are asked for, or ``"auto"``
        known : steps that were chosen elsewhere
        values : of the unknowns, in words, for a refusal
        """
        return OwnSteps()

    def with_steps(self, steps: Discretisation, at: Callable[[], FilterPoint]) -> Filter:
        """Return the filter with these steps; ``at`` gives the point they are for, where that matters."""
        return self

    def with_record(self, record: MeasuredRecord) -> Self:
        """Return the filter of other measurements at the same instants."""
        other = copy.copy(self)
        other.record = record
        return other

    def start_moments(self, at: FilterPoint) -> tuple[Floats, Floats]:
        """Return mean and covariance of all states before the first sample; no variance in flat directions."""
        if self.given_start is None:
            raise EstimationError(f"{self.name} does not say what is known of the states before the first sample.")
        return self.given_start(at.plain)

    def refusal(self, at: Callable[[], FilterPoint]) -> str:
        """Return why the likelihood must not be believed at a point, in words; empty where it may."""
        return ""

    def passed(self, at: FilterPoint) -> list[SkippedBump]:
        """Return the bumps of tables and short conditions that its steps pass without meeting them."""
        return []

    def innovation_covariances(self, at: FilterPoint) -> Floats | None:
        """Return S of all outputs at every sample given all samples before, (N, ny, ny); None where not known."""
        return None

    def matrices(self, at: FilterPoint) -> DiscreteModel | None:
        """Return the matrices of a normal law, from which records can be drawn; None where it is not normal.

        A start with a flat prior is put to where the smoother has it.
        """
        return None

    def cells(self, q: Floats) -> RecordCells:
        """Return the intervals of the record, on which every signal is one polynomial."""
        return cut_into_cells(self.record.times, self.record.signals(q[: self.model.structure.system.np]))

    def at_samples(self, cells: RecordCells) -> tuple[Floats, Floats]:
        """Return times (N,) and signals (N, nu) at all samples, after a jump there."""
        return self.record.times, cells.at_samples
