"""Which numbers are free: names of parameters, starts and noise levels become unknowns with guesses, bounds and priors.

``"k"``, ``"legs[*].m"`` are parameters, shared by all experiments unless named in ``local``; ``"start(x)"`` and
``"start(*)"`` are starts, one per experiment; ``"scale(w)"`` and ``"noise(y)"`` are the levels of a disturbance and of
measurement noise, on a log scale; ``"correlation(y1, y2)"`` of noise that outputs share is searched by its logit;
``"k@A"``, ``"start(x)@A"`` belong to one experiment. An optimizer works on ξ: the
logarithm of an unknown with ``transform="log"``, the logit of one whose bounds are kept by transformation, otherwise
the unknown divided by its size.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grisaille.bound_experiment.examined_conditions import conditions_of
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.curves.curve_smoothness import with_smoothness
from grisaille.estimation.curves.vectors import elements_of, names_to_estimate, spread_over_elements
from grisaille.experiment.experiment_content import ExperimentContent
from grisaille.experiment.times.time_units import names_without_unit
from grisaille.laws import Law, MultivariateNormal, Smoothness
from grisaille.laws.law_content import refuse_no_prior
from grisaille.laws.prior_measure import is_searched_by_logarithm, refuse_without_maximum, support_to_search
from grisaille.model.flat import FlatModel
from grisaille.model.measurement.noise_covariances import is_correlation
from grisaille.model.names import matching
from grisaille.structure.descriptor.operating_point import PointConditions, start_point
from grisaille.structure.parameters import evaluate_parameters, formulas_of
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.initialization import ConsistentStart, Initializer

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment
    from grisaille.laws import Prior

POSITIVE_BOUNDS = (0.0, np.inf)
LOG_RATIO = 100.0
"""Positive bounds further apart than this mean that the order of magnitude is unknown."""


def resolve_unknowns(
    structure: Structure,
    experiments: Sequence[Any],
    names: Sequence[str],
    *,
    guess: Mapping[str, float] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, Any] | Sequence[Any] | None = None,
    local: Iterable[object] = (),
    searched: bool = True,
) -> tuple[Unknown, ...]:
    """Return the unknowns of a problem, in the order of their ``names`` (``wanted_names``)."""
    runs = [e.name for e in experiments]
    flat, pool = structure.model, dict.fromkeys(names_to_estimate(structure.model))
    own, targets = _local_names(flat, local), []
    found: dict[str, Unknown] = {}
    bounds = spread_over_elements(flat, bounds, "bounds") if bounds else {}
    guess = spread_over_elements(flat, guess, "guess") if guess else {}
    believed = {} if priors is None else spread_over_elements(flat, prior_table(priors), "priors")
    known = _Declared(structure, experiments, bounds, believed)
    for wanted in names:
        base, _, where = wanted.partition("@")
        if where and where not in runs:
            raise EstimationError(f"'{wanted}' names the experiment '{where}'; there are {', '.join(runs)}.")
        for target in [base] if base in pool else _expand(structure, experiments, base, pool):
            targets.append(target)
            for unknown in known.spread(target, where, runs, own):
                if unknown.name in found and base == "start(*)":
                    continue
                if unknown.name in found:
                    raise EstimationError(f"estimate= names '{unknown.name}' more than once.")
                found[unknown.name] = unknown
    for name in own:
        if name not in targets:
            raise EstimationError(f"local= names '{name}', which is not estimated; there are {', '.join(targets)}.")
    unknowns: Sequence[Unknown] = tuple(found.values())
    for given, what in ((bounds, "bounds"), (believed, "priors")):
        if given:
            refuse_strangers(unknowns, given, what)
    if any(e.constants for e in experiments):
        _refuse_constants(unknowns, experiments)
    if any(isinstance(u.prior, Smoothness) for u in unknowns):
        unknowns = with_smoothness(flat, unknowns, experiments)
    return tuple(_with_guess(u, guess, searched) if guess else u for u in unknowns)


def _local_names(flat: FlatModel, local: Iterable[object]) -> tuple[str, ...]:
    if isinstance(local, str):
        raise EstimationError(f"local= takes a list of names: [{local!r}].")
    listed = {str(getattr(e, "path", e)): None for e in local}
    return tuple(spread_over_elements(flat, listed, "local")) if listed else ()


def wanted_names(structure: Structure, estimate: Iterable[object] | None, may_be_empty: bool = False) -> list[str]:
    """Return the names in ``estimate``, or those of all parameters that are marked as unknown."""
    if isinstance(estimate, str):
        raise EstimationError(f"estimate= takes a list of names: [{estimate!r}].")
    if estimate is not None:
        listed = [str(getattr(e, "path", e)) for e in estimate]
        if not listed and not may_be_empty:
            raise EstimationError("estimate= is empty: name at least one parameter or start.")
        return listed
    marked = marked_names(structure)
    if not marked:
        raise EstimationError(
            f"No parameter of {structure.model.name} declares bounds or a prior, so nothing is marked as unknown: "
            f"give estimate=[…] with names among {', '.join(list(structure.model.parameters)[:8]) or 'none'}."
        )
    return marked


def marked_names(structure: Structure) -> list[str]:
    """Return parameters that declare bounds or a prior; unknown correlations of noise are added by methods that take
    them.
    """
    declared = structure.model.parameters.items()
    return [n for n, p in declared if (p.bounds is not None or p.prior is not None) and not is_correlation(n)]


def _expand(structure: Structure, experiments: Sequence[Experiment], name: str, pool: Collection[str]) -> list[str]:
    if name == "start(*)":
        return [f"start({s})" for s in _free_states(structure, experiments)]
    flat = structure.model
    hits = [n for n in matching(name, pool) if n in pool] or elements_of(name, pool)
    if not hits:
        raise EstimationError(f"{flat.name} has no parameter or start called '{name}'.{_meant(flat, name, pool)}")
    return hits


def _meant(flat: FlatModel, name: str, pool: Iterable[str]) -> str:
    """Return what somebody who wrote a wrong name may have had in mind."""
    if name in flat.variables:
        return f" It is a variable: its value at the first instant is 'start({name})'."
    inner = name[6:-1] if name.startswith("start(") else ""
    if inner in flat.discretes:
        return f" '{inner}' is a discrete variable: its start is estimated under its own name, '{inner}'."
    if name in flat.disturbances:
        return f" It is a disturbance: its level is 'scale({name})'."
    if name in flat.inputs or name in flat.outputs:
        return f" It is {'an input' if name in flat.inputs else 'an output'}: it belongs to the data."
    lowered: dict[str, str] = {}
    for known in pool:
        lowered.setdefault(known.lower(), known)
    near = [lowered[n] for n in difflib.get_close_matches(name.lower(), list(lowered), n=3, cutoff=0.3)]
    return f" Nearest: {', '.join(near)}." if near else ""


def _free_states(structure: Structure, experiments: Sequence[Experiment]) -> list[str]:
    """Return states whose starts can be chosen together: all without hidden constraints, else as many as there is
    freedom at the start of the first record.
    """
    names = [s.name for s in structure.states if s.order == 0]
    if not structure.system.nc:
        return names
    conditions, constants = PointConditions(), {}
    if experiments and not experiments[0].is_static:
        first = experiments[0]
        signals, hold = first.input_signals()
        conditions = conditions_of(structure, first.grid(), signals, hold, {})[0]
        constants = dict(first.constants)
    p = evaluate_parameters(structure.model, constants).values
    point = start_point(structure, p, conditions)
    initializer = Initializer(structure)
    return initializer.independent(point.t, point.u, p, ConsistentStart(point.x, point.z, 0.0, {}), names)


@dataclass(frozen=True)
class _Declared:
    """Bounds, priors and first values as the model, the experiments and the call declare them."""

    structure: Structure
    experiments: Sequence[Any]
    bounds: dict[str, tuple[float, float]]
    priors: dict[str, Any]

    @cached_property
    def unlabelled(self) -> frozenset[str]:
        """Names whose values are not in the units they declare, because times are in another unit."""
        records = [e for e in self.experiments if isinstance(e, ExperimentContent)]
        return names_without_unit(records, self.structure.model)

    def spread(self, target: str, where: str, names: list[str], local: tuple[str, ...]) -> Iterator[Unknown]:
        """Yield one unknown, or one per experiment."""
        is_start = target.startswith("start(")
        per_experiment = is_start or target in local
        if where:
            yield self.make(target, where, f"{target}@{where}")
        elif per_experiment and len(names) > 1:
            for name in names:
                yield self.make(target, name, f"{target}@{name}")
        else:
            yield self.make(target, names[0] if is_start and names else None, target)

    def make(self, target: str, experiment: str | None, name: str) -> Unknown:
        if target.startswith("start("):
            variable = self.structure.model.variables[target[6:-1]]
            prior = self.priors.get(name, self.priors.get(target))
            lower, upper = _above_zero(*self._bounds(name, target, variable.bounds, prior), prior)
            unit = "" if variable.name in self.unlabelled else variable.unit
            return Unknown(name, "start", variable.name, experiment, np.nan, lower, upper, False, unit, prior)
        if target.startswith(("scale(", "noise(")):
            return self._level(target, experiment, name)
        parameter = self.structure.model.parameters[target]
        prior = self.priors.get(name, self.priors.get(target, parameter.prior))
        lower, upper = self._bounds(name, target, parameter.bounds, prior)
        logarithmic = _is_logarithmic(parameter.transform, lower, upper, prior)
        lower, upper = (lower, upper) if logarithmic else _above_zero(lower, upper, prior)
        unit = "" if target in self.unlabelled else parameter.unit
        logit = is_correlation(target) and not logarithmic
        return Unknown(name, "parameter", target, experiment, np.nan, lower, upper, logarithmic, unit, prior, logit)

    def _level(self, target: str, experiment: str | None, name: str) -> Unknown:
        """Return a standard deviation, searched by its logarithm."""
        flat, inner = self.structure.model, target[6:-1]
        unit = flat.outputs[inner].unit if target.startswith("noise(") else flat.disturbances[inner].unit
        prior = self.priors.get(name, self.priors.get(target))
        lower, upper = self._bounds(name, target, (0.0, np.inf), prior)
        kind: Literal["scale", "noise"] = "noise" if target.startswith("noise(") else "scale"
        return Unknown(name, kind, inner, experiment, np.nan, max(lower, 0.0), upper, True, unit, prior)

    def _bounds(
        self, name: str, target: str, declared: tuple[float, float] | None, prior: Prior | None
    ) -> tuple[float, float]:
        """Return what was given or declared, and not beyond the support of a prior; of positive ones, see
        ``_above_zero``.
        """
        pair = self.bounds.get(name, self.bounds.get(target, declared or (-np.inf, np.inf)))
        try:
            lower, upper = pair
        except (TypeError, ValueError):
            raise EstimationError(f"The bounds of '{name}' are {pair!r}; give (low, high).") from None
        lower = -np.inf if lower is None else float(lower)
        upper = np.inf if upper is None else float(upper)
        if prior is not None:
            refuse_no_prior(f"'{name}'", prior)
        if isinstance(prior, Law):
            refuse_without_maximum(name, prior)
            if prior.support != POSITIVE_BOUNDS:
                lower, upper = _between(lower, upper, prior)
        if not lower < upper:
            raise EstimationError(
                f"The bounds of '{name}' are ({lower:g}, {upper:g}): the first must be below the second."
            )
        return lower, upper


def _is_logarithmic(transform: str | None, lower: float, upper: float, prior: Prior | None) -> bool:
    if transform == "log":
        return True
    if transform is None:
        return False
    return (isinstance(prior, Law) and is_searched_by_logarithm(prior)) or (lower > 0 and upper / lower >= LOG_RATIO)


def _between(lower: float, upper: float, prior: Law) -> tuple[float, float]:
    """Return the part of a range in which a prior has a density."""
    low, high = support_to_search(prior)
    return max(lower, low), min(upper, high)


def _above_zero(lower: float, upper: float, prior: Prior | None) -> tuple[float, float]:
    """Return the same of a prior of positive values, where the unknown is not searched by its logarithm."""
    return (
        _between(lower, upper, prior) if isinstance(prior, Law) and prior.support == POSITIVE_BOUNDS else (lower, upper)
    )


def prior_table(priors: Mapping[str, Any] | Sequence[Any] | MultivariateNormal) -> dict[str, Any]:
    """Return priors by name; joint ones under each of their names."""
    if isinstance(priors, Mapping):
        return dict(priors)
    table: dict[str, Any] = {}
    for prior in [priors] if isinstance(priors, MultivariateNormal) else priors:
        if not isinstance(prior, MultivariateNormal):
            raise EstimationError(
                "priors= takes a dict of names, or a list of gr.MultivariateNormal(names, mean, cov)."
            )
        table.update({name: prior for name in prior.names})
    return table


def _with_guess(unknown: Unknown, guess: dict[str, float], searched: bool) -> Unknown:
    base = unknown.name.partition("@")[0]
    for name in (unknown.name, base):
        if name in guess:
            value = _number(unknown.name, guess[name])
            if not unknown.lower <= value <= unknown.upper:
                raise EstimationError(
                    f"The guess of '{unknown.name}' is {value:g}, outside ({unknown.lower:g}, {unknown.upper:g})."
                )
            if unknown.logarithmic and value <= 0 and not searched:
                return replace(unknown, guess=value, logarithmic=False)
            if unknown.logarithmic and value <= 0:
                raise EstimationError(f"The guess of '{unknown.name}' is {value:g}, but its logarithm is estimated.")
            if unknown.logit and value in (unknown.lower, unknown.upper):
                raise EstimationError(
                    f"The guess of '{unknown.name}' is {value:g}, and it must lie between {unknown.lower:g} and "
                    f"{unknown.upper:g}, both excluded."
                )
            return replace(unknown, guess=value)
    return unknown


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise EstimationError(f"The guess of '{name}' is {value!r}; give a number.") from None


def _refuse_constants(unknowns: Sequence[Unknown], experiments: Sequence[Any]) -> None:
    """Refuse to estimate a parameter whose value an experiment gives."""
    for unknown in unknowns:
        for e in experiments:
            if unknown.kind == "parameter" and unknown.applies_to(e.name) and unknown.target in e.constants:
                raise EstimationError(
                    f"'{unknown.name}' is estimated, but experiment '{e.name}' sets it to "
                    f"{e.constants[unknown.target]:g} in constants=. Take it out of one of the two; "
                    f"'{unknown.target}@NAME' estimates it in one experiment only."
                )


OPEN_NOISE = (
    " Open measurement noise of least squares follows from the residuals; gr.KalmanML() estimates it by name, with or "
    "without disturbances."
)


def refuse_strangers(unknowns: Iterable[Unknown], given: Mapping[str, object] | None, what: str) -> None:
    """Refuse names that belong to no unknown."""
    names = [u.name for u in unknowns]
    allowed = {*names, *(n.partition("@")[0] for n in names)}
    for name in given or {}:
        if name not in allowed:
            more = OPEN_NOISE if name.startswith("noise(") else ""
            raise EstimationError(
                f"{what}= names '{name}', which is not estimated here; estimated: {', '.join(names)}.{more}"
            )


def parameter_guesses(flat: FlatModel, unknowns: Sequence[Unknown]) -> tuple[Unknown, ...]:
    """Return values of the model where no guess was given."""
    given = {u.target: u.guess for u in unknowns if u.kind == "parameter" and np.isfinite(u.guess)}
    formulas = formulas_of(flat, given)
    values = dict(zip(formulas.names, formulas.evaluate(given).tolist(), strict=True))
    done = []
    for u in unknowns:
        if u.kind == "parameter" and not np.isfinite(u.guess):
            value = values[u.target]
            if not u.lower <= value <= u.upper:
                raise EstimationError(
                    f"'{u.name}' starts from the model's value {value:g}, outside its bounds ({u.lower:g}, {u.upper:g}"
                    f"): give guess={{'{u.name}': …}}."
                )
            u = replace(u, guess=value)
        if u.logarithmic and u.guess <= 0:
            u = replace(u, logarithmic=False)
        done.append(u)
    return tuple(done)
