"""``well_posedness``: has what is measured, and what is asked for, a value at every instant?

A disturbance that the equations differentiate more often than its spectrum allows reaches some variable as white noise
or worse: it has infinite variance at an instant and cannot be measured there, filtered or estimated. This is about
roughness alone: a nonlinear formula of smooth variables, such as 1/x, may have no mean or variance all the same, which
is not looked at. Two views are taken:

- *counted*: how often each disturbance is differentiated on its way (``differentiation_count``): all models, all
  parameter values, blind to cancellation;
- *computed*: Theorem 3/5 on the linearised equations (``finite_variance``): exact for linear models; for nonlinear ones
  at the start, at the start with the disturbances away from zero, and along a given trajectory.

For a linear model the computed view decides and the other explains; for a nonlinear one both must find it finite.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.calling import checked, checked_methods
from grisaille.errors import EstimationError, GrisailleError, ModelError, StructureError
from grisaille.model.names import suggestion
from grisaille.structure.descriptor.descriptor_linearization import Linearization, Linearizer
from grisaille.structure.descriptor.differentiation_count import DifferentiationCount, count_differentiations
from grisaille.structure.descriptor.finite_variance import DisturbedSystem, VarianceDecision, decide_variance
from grisaille.structure.descriptor.noise_filters import noise_correlation, noise_filters
from grisaille.structure.descriptor.operating_point import (
    OperatingPoint,
    PointConditions,
    jet_values,
    locate,
    start_point,
)
from grisaille.structure.descriptor.pencil import CloseDecisionWarning, Matrix, find_dependence
from grisaille.structure.descriptor.variance_remedies import Arrival, advise
from grisaille.structure.parameters import ParameterValues, evaluate_parameters
from grisaille.structure.reduction import Structure
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import xarray

    from grisaille.model.classes import Model
    from grisaille.model.expression import Expression

ROWS_OF_TRAJECTORY = 5
ROUGHNESS_ALONE = "this is about roughness: whether nonlinear formulas have a mean and a variance was not checked"


@dataclass(frozen=True)
class VarianceVerdict:
    """Whether one variable has a value at every instant, free of white noise and its derivatives, and why."""

    name: str
    kind: str
    """``"output"``, ``"variable"``, ``"quantity"`` or ``"disturbance"``."""
    is_finite: bool
    """Whether neither white noise nor a derivative of it arrives; for linear models: whether its variance is finite."""
    arrivals: tuple[Arrival, ...]
    advice: tuple[str, ...]
    note: str = ""

    def __str__(self) -> str:
        wild = [a for a in self.arrivals if not a.is_finite]
        if self.is_finite:
            reason = "; ".join(map(str, self.arrivals)) or "no disturbance arrives"
            return f"{self.kind} {self.name} has a value at every instant: {reason}." + _sentence(self.note)
        reason = "; ".join(map(str, wild or self.arrivals))
        advice = _sentence("; ".join(self.advice))
        return f"{self.kind} {self.name} has infinite variance: {reason}.{_sentence(self.note)}{advice}"


@dataclass(frozen=True)
@checked_methods
class WellPosedness:
    """Truthy when every output and every listed variable has a value at every instant; ``print`` it to read why.

    What arrives as white noise, or as a derivative of it, has none: its variance is infinite. Whether a nonlinear
    formula of smooth variables has a mean and a variance is not looked at.
    """

    model: str
    verdicts: dict[str, VarianceVerdict]
    """Outputs first, then the listed variables, then all others."""
    required: tuple[str, ...]
    """Outputs and listed variables."""
    is_exact: bool
    """True for linear models, where the test is exact at the given parameter values."""
    notes: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.violated

    @property
    def violated(self) -> tuple[str, ...]:
        """Return outputs and listed variables of infinite variance."""
        return tuple(n for n in self.required if not self.verdicts[n].is_finite)

    def require(self, purpose: str, names: Iterable[str] | None = None) -> None:
        """Raise ``EstimationError`` when not well-posed.

        purpose : what cannot be done then, ``"gr.fit"``
        names : what must have values, for instance the outputs that were measured; by default ``required``
        """
        wanted = [names] if isinstance(names, str) else self.required if names is None else list(names)
        for name in wanted:
            if name not in self.verdicts:
                raise ModelError(
                    f"{self.model} has no variable or output {name!r}. {suggestion(str(name), self.verdicts)}"
                )
        violated = [n for n in dict.fromkeys(wanted) if not self.verdicts[n].is_finite]
        if violated:
            reasons = " ".join(_capital(str(self.verdicts[n])) for n in violated)
            raise EstimationError(f"{purpose} of {self.model} is not a well-posed problem. {reasons}")

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        state = "well-posed" if self else f"not well-posed: {', '.join(self.violated)}"
        return f"<WellPosedness of {self.model}: {state}>"


@checked
def well_posedness(
    model: Model,
    variables: Iterable[str | Expression] | None = None,
    *,
    parameters: Mapping[str, float] | None = None,
    inputs: Mapping[str, float] | None = None,
    trajectory: xarray.Dataset | None = None,
) -> WellPosedness:
    """Return whether every output, and every listed variable, has a value at every instant, or white noise reaches it.

    The roughness of disturbances is looked at, exactly for linear models, for others by derivatives that are counted
    and by linearisation: not whether nonlinear formulas such as 1/x or exp(x**2) of random variables have moments.

    model : an instance of a ``gr.Model`` subclass
    variables : names (or members) that must have values besides the outputs
    parameters : values that replace declared ones
    inputs : values of inputs at which a nonlinear model is tested, instead of their defaults (zero where none is given)
    trajectory : a result of ``gr.simulate`` without realizations; nonlinear models are also tested along it
    """
    where = PointConditions(inputs=_given_inputs(structure_of(model), inputs))
    return examine(model, variables, [where], parameters=parameters, trajectory=trajectory)


def examine(
    model: Model,
    variables: Iterable[str | Expression] | None,
    conditions: Sequence[PointConditions],
    *,
    parameters: Mapping[str, float] | None = None,
    trajectory: xarray.Dataset | None = None,
) -> WellPosedness:
    """Return ``well_posedness`` of a nonlinear model under several conditions, for instance those of a record."""
    values = evaluate_parameters(structure_of(model).model, parameters)
    structure = structure_of(model, values.values)
    examined = _Examination(structure, values, trajectory, conditions)
    listed = _listed(structure, variables)
    required = tuple(dict.fromkeys((*structure.model.outputs, *listed)))
    names = dict.fromkeys((*required, *structure.model.variables))
    return examined.report(tuple(names), required)


class _Examination:
    """Both views of one model."""

    def __init__(
        self,
        structure: Structure,
        values: ParameterValues,
        trajectory: xarray.Dataset | None,
        conditions: Sequence[PointConditions],
    ) -> None:
        self.structure, self.values, self.trajectory = structure, values, trajectory
        self.conditions = conditions
        self.flat = structure.model
        self.filters = noise_filters(self.flat, values)
        self.correlation = noise_correlation(self.flat, values)
        self.excess = {n: f.pole_excess for n, f in zip(self.flat.disturbances, self.filters, strict=True)}
        self.notes: list[str] = []
        self._elsewhere: VarianceDecision | None = None

    def report(self, names: tuple[str, ...], required: tuple[str, ...]) -> WellPosedness:
        count = count_differentiations(self.structure, self.excess)
        linearizer = Linearizer(self.structure.equations, names)
        if not self.flat.disturbances:
            verdicts = [VarianceVerdict(n, self._kind(n), True, (), ()) for n in names]
        elif linearizer.is_linear:
            verdicts = self._exactly(linearizer, names, count)
        else:
            verdicts = self._everywhere(linearizer, names, count)
        notes = tuple(dict.fromkeys(self.notes))
        return WellPosedness(self.flat.name, {v.name: v for v in verdicts}, required, linearizer.is_linear, notes)

    def _exactly(
        self, linearizer: Linearizer, names: tuple[str, ...], count: DifferentiationCount
    ) -> list[VarianceVerdict]:
        linear = linearizer.at(self.values.values)
        linear.require_finite(
            f"at the given parameter values of {self.flat.name}: a division by zero, or a root or "
            "logarithm outside its domain. Change the parameters in it."
        )
        decision = self._decide(linear)
        self._doubts(decision)
        verdicts = []
        for i, name in enumerate(names):
            found = dict(zip(self.flat.disturbances, decision.differentiations[i].tolist(), strict=True))
            arrivals = self._arrivals(count.reach[name], found)
            finite = bool(decision.finite[i]) and (decision.views_agree or all(decision.finite_by_projection[i]))
            note = self._cancellation(linearizer, i, count.reach[name], found)
            if finite and not all(a.is_finite for a in arrivals):
                note = (
                    "the correlated disturbances cancel in it; a small change of their correlation or scales ends that"
                )
            verdicts.append(self._verdict(name, finite, arrivals, note))
        return verdicts

    def _everywhere(
        self, linearizer: Linearizer, names: tuple[str, ...], count: DifferentiationCount
    ) -> list[VarianceVerdict]:
        decisions = self._decide_at_points(linearizer)
        if not decisions:
            given = ", ".join(f"'{n}': …" for n in self.flat.inputs)
            call = f"inputs={{{given}}}" if given else "trajectory=gr.simulate(…)"
            self.notes.append(
                "the linearised equations were tested nowhere, so that derivatives were only counted; "
                f"gr.well_posedness(model, {call}) gives an operating point"
            )
        verdicts = []
        for i, name in enumerate(names):
            arrivals = self._arrivals(count.reach[name], {})
            counted = all(a.is_finite for a in arrivals) and name not in count.undefined
            computed = [label for label, d in decisions.items() if not d.finite[i]]
            note = ""
            if name in count.undefined:
                note = f"{count.undefined[name]} has infinite variance and enters nonlinearly: that has no meaning"
            elif counted and computed:
                note = f"the linearised equations find it infinite at {computed[0]}, the count of derivatives does not"
            elif not counted and decisions and not computed:
                note = (
                    f"the linearised equations do not show it at {', '.join(decisions)}: the effect vanishes there, or "
                    "several paths cancel; rewrite the equations without the cancelling paths to have it accepted"
                )
            undefined = count.undefined.get(name, "")
            verdicts.append(self._verdict(name, counted and not computed, arrivals, note, undefined))
        return verdicts

    def _verdict(
        self, name: str, finite: bool, arrivals: tuple[Arrival, ...], note: str, undefined: str = ""
    ) -> VarianceVerdict:
        kind = self._kind(name)
        return VarianceVerdict(
            name, kind, finite, arrivals, () if finite else advise(name, kind, arrivals, undefined), note
        )

    def _kind(self, name: str) -> str:
        if name in self.flat.outputs:
            return "output"
        return (
            "variable"
            if name in self.flat.variables
            else "disturbance"
            if name in self.flat.disturbances
            else "quantity"
        )

    def _arrivals(self, counted: Mapping[str, int], computed: Mapping[str, int]) -> tuple[Arrival, ...]:
        arrivals = []
        for name, disturbance in self.flat.disturbances.items():
            if name not in counted and computed.get(name, -1) < 0:
                continue
            r = counted.get(name, -1)
            if name in computed:
                r = computed[name] if computed[name] >= 0 else min(r, -1)
            arrivals.append(Arrival(name, str(disturbance.spectrum), self.excess[name], r))
        return tuple(arrivals)

    def _decide(self, linear: Linearization) -> VarianceDecision:
        system = DisturbedSystem(linear.E, linear.F, linear.J, linear.H, self.filters, self.correlation)
        try:
            return decide_variance(system)
        except StructureError as error:
            where = find_dependence(linear.E, linear.F)
            rows = "; ".join(f"'{linear.equations[k]}'" for k in where.equations[:6])
            columns = ", ".join(linear.variables[k] for k in where.variables[:6])
            raise StructureError(
                f"At these parameter values the equations {rows} of {self.flat.name} do not determine {{{columns}}}: "
                f"one of them follows from the others. {error}"
            ) from None

    def _decide_at_points(self, linearizer: Linearizer) -> dict[str, VarianceDecision]:
        decisions = {}
        for point in self._points():
            try:
                with np.errstate(all="ignore"):
                    jets = jet_values(self.structure.system, point, self.values.values, linearizer.needed)
                    linear = linearizer.at(self.values.values, jets, point.t)
                linear.require_finite(f"there ({self._inputs_at(point) or self._states_at(point)})")
                decision = self._decide(linear)
            except (GrisailleError, np.linalg.LinAlgError) as error:
                self.notes.append(f"not tested at {point.label}: {error}")
                continue
            decisions[point.label] = decision
            if decision.close or not decision.views_agree:
                self.notes.append(
                    f"close decisions at {point.label}: {'; '.join(decision.close) or 'the views differ'}"
                )
        return decisions

    def _points(self) -> list[OperatingPoint]:
        points: list[OperatingPoint] = []
        # away from zero, because a disturbance that enters as w² has no slope there
        shifted = {n: 0.7 + 0.1 * k for k, n in enumerate(self.flat.disturbances)}
        for conditions in self.conditions:
            for disturbances in ({}, shifted):
                try:
                    with np.errstate(all="ignore"):
                        points.append(start_point(self.structure, self.values.values, conditions, disturbances))
                except GrisailleError as error:
                    self.notes.append(f"not tested at {conditions.label}: {error}")
        if self.trajectory is not None:
            points += self._rows(self.trajectory)
        return points

    def _inputs_at(self, point: OperatingPoint) -> str:
        signals = zip(self.structure.system.signals, point.u, strict=True)
        return ", ".join(f"{s.name} = {v:g}" for s, v in signals if s.kind == "input" and s.order == 0)

    def _states_at(self, point: OperatingPoint) -> str:
        return ", ".join(f"{n} = {v:g}" for n, v in zip(self.structure.system.state_names, point.x, strict=True))

    def _rows(self, trajectory: xarray.Dataset) -> list[OperatingPoint]:
        if "realization" in trajectory.dims:
            raise ModelError("trajectory= needs one trajectory: choose a realization with .isel(realization=0).")
        known = [n for n in self.structure.system.observed_names if n in trajectory]
        rows = np.unique(np.linspace(0, trajectory.sizes["time"] - 1, ROWS_OF_TRAJECTORY).astype(int))
        points = []
        for k in rows:
            row = trajectory.isel(time=int(k))
            t = float(row["time"])
            values = {n: float(row[n]) for n in known}
            points.append(locate(self.structure, values, t, self.values.values, f"t = {t:g} of the trajectory"))
        return points

    def _doubts(self, decision: VarianceDecision) -> None:
        if not decision.views_agree:
            self.notes.append(
                "the augmented pencil and the projections of eq. (7) disagree; the worse verdict is given"
            )
        self.notes += [f"close decision: {text}" for text in decision.close]
        if decision.close or not decision.views_agree:
            doubts = "; ".join(decision.close) or "the two tests disagree"
            message = f"The well-posedness of {self.flat.name} was decided on numbers that are nearly zero: {doubts}."
            warnings.warn(CloseDecisionWarning(message), stacklevel=5)

    def _cancellation(
        self, linearizer: Linearizer, i: int, counted: Mapping[str, int], found: Mapping[str, int]
    ) -> str:
        """Return why the count is higher than what was computed, where it is."""
        higher = [w for w, r in counted.items() if r >= self.excess[w] and found[w] < r]
        if not higher:
            return ""
        if self._elsewhere is None:
            self._elsewhere = self._decide(linearizer.at(self._moved_parameters()))
        elsewhere = self._elsewhere
        column = {w: k for k, w in enumerate(self.flat.disturbances)}
        stays = all(elsewhere.differentiations[i, column[w]] == found[w] for w in higher)
        when = "at other parameter values too" if stays else "but only at these parameter values"
        return f"derivatives of {', '.join(higher)} cancel on the way, {when}"

    def _moved_parameters(self) -> Matrix:
        random = np.random.default_rng(3)
        free = [n for n in self.values.names if not np.any(np.delete(self._row(n), self.values.names.index(n)))]
        moved = {n: self.values[n] * (1 + random.uniform(0.03, 0.1)) for n in free}
        return evaluate_parameters(self.flat, moved).values

    def _row(self, name: str) -> Matrix:
        row: Matrix = self.values.jacobian[self.values.names.index(name)]
        return row


def _given_inputs(structure: Structure, inputs: Mapping[str, float] | None) -> dict[str, float]:
    known = list(structure.model.inputs)
    for name in inputs or {}:
        if str(name) not in known:
            raise ModelError(f"{structure.model.name} has no input '{name}'. {suggestion(str(name), known)}")
    return {str(n): float(v) for n, v in (inputs or {}).items()}


def _listed(structure: Structure, variables: Iterable[str | Expression] | None) -> tuple[str, ...]:
    if isinstance(variables, str):
        variables = [variables]
    names = [str(v) for v in (() if variables is None else variables)]
    known = [n for n in structure.system.observed_names if n not in structure.model.inputs]
    for name in names:
        if name not in known:
            raise ModelError(f"{structure.model.name} has no variable or output '{name}'. {suggestion(name, known)}")
    return tuple(names)


def _lines(w: WellPosedness) -> list[str]:
    if w:
        has = "finite variance" if w.is_exact else "a value at every instant"
        head = f"well-posed: every output has {has}" if w.required else "nothing is measured or asked for"
    else:
        head = f"not well-posed: {', '.join(w.violated)} of infinite variance"
    how = "linear model, exact test" if w.is_exact else "nonlinear model, derivatives counted and linearised at points"
    lines = [f"{w.model}: {head} ({how})"]
    width, fine = max((len(n) for n in w.verdicts), default=0), "finite" if w.is_exact else "values"
    for name, v in w.verdicts.items():
        reason = "; ".join(map(str, v.arrivals)) or "no disturbance arrives"
        lines.append(f"  {v.kind:<8} {name:<{width}}  {fine if v.is_finite else 'INFINITE':<8}  {reason}")
        lines += [f"    note: {v.note}"] if v.note else []
        lines += [f"    → {text}" for text in v.advice] if name in w.required else []
    limits = () if w.is_exact else (ROUGHNESS_ALONE,)
    return [*lines, *(f"  note: {note}" for note in (*w.notes, *limits))]


def _sentence(text: str) -> str:
    return f" {_capital(text)}." if text else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
