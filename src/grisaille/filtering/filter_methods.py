"""Which filter a record gets: one of the package's by its options, or one that somebody else has written.

    class Mine(FilterMethod): …        gr.KalmanML(filter=Mine(members=200))

A method is a frozen dataclass of options that makes a filter for a model and a record. Files keep it by its name and
its numbers, and are loaded where the module that defines it has been imported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

from grisaille.bound_experiment import ExperimentPoint
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import DataError, EstimationError
from grisaille.experiment.record_cells import MeasuredRecord
from grisaille.filtering.exact.linear import LinearFilter
from grisaille.filtering.filter import Filter, FilterPoint, InnovationWeighting, StartMoments
from grisaille.filtering.formulation import FilterKind
from grisaille.filtering.initial_moments import is_flat, variances_by_name
from grisaille.filtering.nonlinear.extended import ExtendedFilter
from grisaille.filtering.sigma_points import SigmaPoints


class FilterMethod(ABC):
    """The options of a filter of one's own: derive a frozen dataclass from it."""

    known: ClassVar[dict[str, type[FilterMethod]]] = {}
    """Every method that has been defined, by its name: what files may name."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.__name__.startswith("_"):
            FilterMethod.known[cls.__name__] = cls

    @abstractmethod
    def make(self, model: StochasticModel, record: MeasuredRecord, start: StartMoments) -> Filter:
        """Return the filter of a model and a record; ``start`` has the moments before the first sample."""

    @property
    def data(self) -> list[Any]:
        """Return its name and its fields, from which ``of`` makes an equal one."""
        described: Any = self
        if not is_dataclass(described):
            raise EstimationError(
                f"{type(self).__name__} must be a frozen dataclass: put @dataclass(frozen=True) on it."
            )
        return [type(self).__name__, {f.name: getattr(self, f.name) for f in fields(described) if f.init}]

    @staticmethod
    def of(data: Sequence[Any]) -> FilterMethod:
        """Return the method that ``data`` describes."""
        name, given = data
        found = FilterMethod.known.get(name)
        if found is None:
            raise DataError(
                f"The filter {name} is not known here: import the module that defines it first. Known are "
                f"{', '.join(sorted(FilterMethod.known)) or 'none'}."
            )
        return found(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})


@dataclass(frozen=True)
class FilterOptions:
    """How a record is filtered; see ``gr.KalmanML``."""

    filter: str = "auto"
    substeps: int | str = "auto"
    initial_covariance: Any = "first-sample"
    condition: bool = False
    robust: float = float("inf")
    propagation: str = "linearize"
    sigma: SigmaPoints = field(default_factory=SigmaPoints)
    solver: str = "rk4"
    own: FilterMethod | None = None
    """Makes the filter in place of the package's own."""

    @property
    def weighing(self) -> InnovationWeighting:
        """Return how innovations count."""
        return InnovationWeighting(self.robust, self.condition)


def make_filter(o: FilterOptions, model: StochasticModel, record: MeasuredRecord, point: ExperimentPoint) -> Filter:
    """Return the filter of a model and a record.

    Unless one was asked for: the exact one where it applies, the unscented one where the model jumps with a state.
    """
    if isinstance(o.initial_covariance, Mapping):
        variances_by_name(model, o.initial_covariance)  # refuses what contradicts the model
    if o.own is not None:
        return _own_filter(o.own, o, model, record, point)
    if o.filter == "linear" or (o.filter == "auto" and not model.nonlinear):
        exact = LinearFilter(model, record, o.initial_covariance, o.weighing)
        if o.filter == "linear" or not exact.varies_too_fast(point.q):
            exact.cells(point.q)
            return exact
    update = o.filter if o.filter in ("iterated", "unscented") else "extended"
    if o.filter == "auto" and model.jumps:
        update = "unscented"
    return make_nonlinear(o, FilterKind(update, o.propagation, sigma=o.sigma, solver=o.solver), model, record, point)


def make_nonlinear(
    o: FilterOptions, kind: FilterKind, model: StochasticModel, record: MeasuredRecord, point: ExperimentPoint,
    made_as: type[ExtendedFilter] = ExtendedFilter,
) -> ExtendedFilter:  # fmt: skip
    """Return a nonlinear filter of one kind."""
    made = made_as(
        model, record, point.initializer.nominal[: model.nx], o.initial_covariance, kind=kind, weighing=o.weighing,
    )  # fmt: skip
    made.cells(point.q)
    return made


def _own_filter(
    method: FilterMethod, o: FilterOptions, model: StochasticModel, record: MeasuredRecord, point: ExperimentPoint
) -> Filter:  # fmt: skip
    if is_flat(o.initial_covariance):
        raise EstimationError(
            f"initial_covariance={o.initial_covariance!r} needs the exact filter: filter={type(method).__name__}(…) is "
            f"given finite variances, {{state: variance}}."
        )
    made = method.make(model, record, _StartOf(replace(o, own=None), model, record, point))
    if not isinstance(made, Filter):
        raise EstimationError(
            f"{type(method).__name__}.make returned {made!r}: it must return a filter, an object of a class that "
            f"derives from grisaille.filtering.Filter."
        )
    return made


class _StartOf:
    """Mean and covariance before the first sample, as the package's own filter of the model begins."""

    def __init__(
        self, o: FilterOptions, model: StochasticModel, record: MeasuredRecord, point: ExperimentPoint
    ) -> None:
        self._made: Filter | None = None
        self._given = o, model, record, point

    def __call__(self, at: FilterPoint) -> tuple[Floats, Floats]:
        if self._made is None:
            self._made = make_filter(*self._given)
        return self._made.start_moments(at.plain)
