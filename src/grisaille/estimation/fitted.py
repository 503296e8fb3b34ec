"""A fitted model: its estimates and what can be computed from them.

This is what assessments, studies and reports take. What they can do with it in turn is written out in ``Fit``
(``results/fit.py``), where all of them are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy as np

from grisaille.bound_experiment.bound_experiment import known_starts
from grisaille.bound_experiment.unknown import Unknown
from grisaille.calling import checked_methods
from grisaille.errors import EstimationError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.intervals import Intervals, covariance_intervals
from grisaille.estimation.measurements.recorded import errors_beside_recorded
from grisaille.estimation.measurements.reseeding import with_new_seed
from grisaille.estimation.persistence.pickling import reduce_fit
from grisaille.estimation.predictions.ahead_or_bands import predict_ahead_or_bands
from grisaille.estimation.predictions.horizons import Horizon, check_horizon
from grisaille.estimation.printing.fit_summary import summarize, summarize_html
from grisaille.estimation.printing.printed_value import Value
from grisaille.estimation.residuals.explanation import UNEXPLAINED_NOTES, WRONG_START_NOTE
from grisaille.estimation.residuals.robust_weights import Score, weigh_robustly
from grisaille.estimation.uncertainty import correlation_of, level_limits, t_test
from grisaille.experiment.experiment import Experiment
from grisaille.experiment.times.dating import DATE, clock_of, date_column, with_dates
from grisaille.experiment.times.time_units import refuse_mixed_units
from grisaille.model.classes import Model, restore_model
from grisaille.model.expression import Name, as_expression
from grisaille.model.measurement.noise_covariances import is_correlation
from grisaille.model.names import nearest, suggestion
from grisaille.model.rewriting import Rewriter
from grisaille.simulation.assertions import without_assertions
from grisaille.simulation.simulate import simulate
from grisaille.simulation.simulation_options import SimulationOptions
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from grisaille.estimation.starts.record_starts import RecordStart


MEDIAN_EFFICIENCY = 0.3675
"""What a median of absolute errors, from which robust losses have σ, tells of it by what a mean square does."""


@checked_methods
class Fitted:
    """A model, its data, the method, and what it found.

    model : as it was before the fit (``initial_model``); ``fit.model`` has the estimates
    experiments : the data, each with a name
    method : the estimator with its options
    estimate : the numbers that it found
    why : of each estimator that was considered, why it was taken or not
    """

    def __init__(
        self,
        model: Model,
        experiments: Sequence[Experiment],
        method: Estimator,
        estimate: Estimate,
        why: Mapping[str, str] | None = None,
    ) -> None:
        self.initial_model = model
        self.experiments = tuple(experiments)
        self.method = method
        self.estimate = estimate
        self.why = dict(why or {})
        self.kept: dict[str, np.ndarray] = {}
        """What a file keeps for the method (knots, say)."""
        self.known_intervals: dict[tuple[float, str], Intervals] = {}
        """Those that have been asked for before, by level and method."""

    @classmethod
    def of(cls, fitted: Fitted) -> Self:
        """Return the same fit with what this class can do."""
        fit = cls(fitted.initial_model, fitted.experiments, fitted.method, fitted.estimate, fitted.why)
        fit.kept, fit.known_intervals = fitted.kept, fitted.known_intervals
        return fit

    def __reduce__(self) -> tuple[Any, ...]:
        return reduce_fit(self)

    @cached_property
    def model_name(self) -> str:
        """Return the class that was fitted."""
        return structure_of(self.initial_model).model.name

    # what was estimated

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return what was estimated, in the order of the table."""
        return tuple(u.name for u in self.estimate.unknowns)

    @cached_property
    def model(self) -> Model:
        """Return the model with the shared estimates and levels of noise; per-experiment values stay in
        ``parameters``.
        """
        shared = {u.target: float(v) for u, v in self._pairs() if u.kind == "parameter" and u.experiment is None}
        starts = {u.target: float(v) for u, v in self._pairs() if u.kind == "start" and len(self.experiments) == 1}
        model = _wide_enough(self.initial_model, self._pairs())
        model = model.replace(shared, start=starts) if starts else model.replace(shared)
        levels = {
            kind: {u.target: float(v) for u, v in self._pairs() if u.kind == kind and u.experiment is None}
            for kind in ("scale", "noise")
        }
        return with_levels(model, levels["scale"], levels["noise"])

    def _pairs(self) -> list[tuple[Unknown, float]]:
        return list(zip(self.estimate.unknowns, self.estimate.theta.tolist(), strict=True))

    def __getitem__(self, name: str) -> Value:
        """Return one estimate, which works as a number and prints with its standard error and unit."""
        if not isinstance(name, str):
            raise EstimationError(self._no(name))
        if name in self._noise_names():
            return Value(self.estimate.noise[name[6:-1]], self._noise_error(name[6:-1]), name=name)
        if name not in self.names:
            raise EstimationError(self._no(name))
        k = self.names.index(name)
        value, error, unit = float(self.estimate.theta[k]), float(self.std_errors[k]), self.estimate.unknowns[k].unit
        return Value(value, error, unit, name, is_approximate=bool(self.estimate.caution))

    def _no(self, name: object) -> str:
        """Return the message that there is no estimate of this name, and which ones there are."""
        known = list(self)
        close = suggestion(name, known) if isinstance(name, str) and nearest(name, known) else ""
        listed = f"it has {', '.join(known)}"
        flat = structure_of(self.initial_model).model
        if isinstance(name, str) and name in flat.parameters:
            return f"'{name}' was not estimated, its value is in fit.model; estimated: {', '.join(known)}."
        if isinstance(name, str) and (name in flat.variables or name in flat.outputs):
            return f"The fit has no '{name}'; {listed}. Trajectories are in fit.predict()."
        return f"The fit has no {name!r}; {listed}. {close}".rstrip()

    def __iter__(self) -> Iterator[str]:
        """Yield the names that ``fit["…"]`` knows."""
        return iter([*self.names, *self._noise_names()])

    def __contains__(self, name: object) -> bool:
        return name in self.names or name in self._noise_names()

    def _ipython_key_completions_(self) -> list[str]:
        """Return what ``fit["`` completes to."""
        return list(self)

    @cached_property
    def std_errors(self) -> np.ndarray:
        """Standard errors in the order of ``names``; zero where a bound decided."""
        return np.asarray(np.sqrt(np.clip(np.diag(self.estimate.covariance), 0.0, None)))

    @cached_property
    def parameters(self) -> pd.DataFrame:
        """Return one row per unknown: estimate, std_error, lower and upper (95 %, by ``intervals``), t, p, guess,
        status, and which kind of interval it is.
        """
        import pandas as pd

        e = self.estimate
        found = self.limits()
        t, p = t_test(e.theta, self.std_errors, self.student)
        status = [
            "free" if f else "at kink" if kink else "zero" if _is_zero(u, v) else "at bound"
            for f, kink, (u, v) in zip(e.free, e.at_kink, self._pairs(), strict=True)
        ]
        table = pd.DataFrame(
            {
                "estimate": e.theta, "std_error": self.std_errors, "lower": found.lower, "upper": found.upper,
                "t": t, "p": p, "guess": [u.guess for u in e.unknowns], "status": status, "interval": found.kinds,
            },
            index=pd.Index(self.names, name="parameter"),
        )  # fmt: skip
        for output, sigma in e.noise.items():
            error = self._noise_error(output)
            limits = level_limits(sigma, 0.95, self._noise_freedom(output))
            table.loc[f"noise({output})"] = [sigma, error, *limits, np.nan, np.nan, np.nan, "noise", "chi-square"]
        return table

    @cached_property
    def estimates(self) -> dict[str, float]:
        """Estimates by name, levels of noise included; without intervals, which may take longer."""
        found = {u.name: float(v) for u, v in self._pairs()}
        return {**found, **{f"noise({o})": float(v) for o, v in self.estimate.noise.items()}}

    @property
    def beginning(self) -> dict[str, float]:
        """Estimates for a search to begin with: levels that vanished begin where the model has them."""
        gone = {u.name for u, v in self._pairs() if u.kind in ("scale", "noise") and float(v) == 0.0}
        return {name: value for name, value in self.estimates.items() if name not in gone}

    @property
    def student(self) -> float | np.ndarray:
        """Degrees of freedom of Student's t; infinite, so that it is normal, where the noise is known.

        One number for each unknown of robust errors, and where noise was estimated beside priors or for several
        outputs (``determination/freedom``).
        """
        e = self.estimate
        if e.student is not None:
            return e.student
        by_curvature = e.is_likelihood or self.method.density.supports_profiles
        if by_curvature and not e.has_open_noise:
            return np.inf
        if not (e.noise and e.is_likelihood and e.evaluation.is_least_squares):
            return float(e.degrees_of_freedom)
        each = e.freedom.of_each()
        return float(each[0]) if len(each) and np.ptp(1 / each) <= 1e-9 * (1 / each).max() else each

    def _noise_names(self) -> list[str]:
        return [f"noise({o})" for o in self.estimate.noise]

    def _noise_error(self, output: str) -> float:
        """Return σ/√(2ν), the asymptotic standard error of a standard deviation."""
        return float(self.estimate.noise[output] / np.sqrt(2 * self._noise_freedom(output)))

    def _noise_freedom(self, output: str) -> float:
        """Return ν of an output's noise: its samples, or as many as robust errors take for independent, less
        leverage.
        """
        e = self.estimate
        n: float = sum(len(s.values) for c in e.cases for s in c.samples if s.output == output)
        independent = n if e.robust is None else e.robust.independent.get(output, n)
        nu = e.freedom.sure[output] * independent / max(n, 1)
        return max(nu if e.is_likelihood else MEDIAN_EFFICIENCY * nu, 1e-3)

    # how far to trust it

    @cached_property
    def covariance(self) -> pd.DataFrame:
        """Of the estimates."""
        import pandas as pd

        return pd.DataFrame(self.estimate.covariance, index=self.names, columns=self.names)

    @cached_property
    def correlation(self) -> pd.DataFrame:
        """Of the estimates."""
        import pandas as pd

        return pd.DataFrame(correlation_of(self.estimate.covariance), index=self.names, columns=self.names)

    def limits(self, level: float = 0.95, method: str = "auto") -> Intervals:
        """Return the intervals of all unknowns as arrays, computed once.

        level, method : as in ``Fit.intervals``
        """
        if (level, method) not in self.known_intervals:
            self.known_intervals[level, method] = self._find_intervals(level, method)
        return self.known_intervals[level, method]

    def _find_intervals(self, level: float, method: str) -> Intervals:
        """Return the intervals of the covariance, for any method; ``Fit`` has the other methods."""
        return covariance_intervals(self, level)

    @property
    def converged(self) -> bool:
        """Return whether the search ended at a minimum."""
        return self.estimate.converged

    @property
    def status(self) -> str:
        """Return how the search ended, in words."""
        return self.estimate.status

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the diagnosis in words: first doubts about the estimates, then doubts about their errors."""
        e = self.estimate
        caution = (e.caution,) if e.caution else ()
        first = tuple(n for words in (WRONG_START_NOTE, UNEXPLAINED_NOTES) for n in e.notes if n.startswith(words))
        doubts = tuple(d for d in self.doubts if d not in first)
        checked = e.approximation.notes(self.names) if e.approximation is not None else ()
        return (*caution, *first, *doubts, *checked, *self.ranges, *(n for n in e.notes if n not in first))

    @property
    def ranges(self) -> tuple[str, ...]:
        """Return where trajectories touch or leave the bounds that variables declare, in words; ``Fit`` looks."""
        return ()

    @property
    def doubts(self) -> tuple[str, ...]:
        """Doubts about the standard errors: a start that is wrong, an approximation that does not hold; ``Fit`` tests
        residuals too.
        """
        e, check = self.estimate, self.estimate.approximation
        begun = tuple(n for n in e.notes if n.startswith(WRONG_START_NOTE)) if e.moved_by_start > 1 else ()
        return (*begun, *(() if check is None else check.doubts(self.names)))

    @property
    def residual_verdict(self) -> str:
        """Return how many residual tests are unhealthy, and which, in words; ``Fit`` tests them."""
        return ""

    @property
    def objective(self) -> float:
        """Return the criterion at the estimates."""
        return self.estimate.objective

    @property
    def log_likelihood(self) -> float:
        """Return its maximum, constants included; NaN where the criterion is not a likelihood."""
        return self.estimate.log_likelihood if self.estimate.is_likelihood else np.nan

    @property
    def aic(self) -> float:
        """−2 log L + 2k, the noise levels counted among the k."""
        return -2 * self._likelihood("AIC") + 2 * self._size

    @property
    def bic(self) -> float:
        """−2 log L + k log N."""
        return float(-2 * self._likelihood("BIC") + self._size * np.log(self.estimate.count))

    @property
    def _size(self) -> int:
        return int(self.estimate.free.sum()) + len(self.estimate.noise)

    def _likelihood(self, what: str) -> float:
        if not self.estimate.is_likelihood:
            raise EstimationError(
                f"{what} needs a likelihood, and the criterion of this fit by {type(self.method).__name__} is not one."
            )
        return self.estimate.log_likelihood

    @cached_property
    def trace(self) -> pd.DataFrame:
        """Return one row per improvement of the objective."""
        import pandas as pd

        return pd.DataFrame(list(self.estimate.trace))

    # predictions and residuals

    def residuals(self, *, standardized: bool = False, seed: int = 0) -> pd.DataFrame:
        """Return what the model leaves of each measurement.

        Parameters
        ----------
        standardized : in units of the noise, weights included; of outputs with ``distribution=`` randomised quantile
            residuals Φ⁻¹(F(y−) + u (F(y) − F(y−))), u a function of output and sample, which are standard normal if
            the law holds. Otherwise ``residual`` is measured less predicted, the location of the law
        seed : of u

        Returns
        -------
        One row per measurement: experiment, output, time, date (where the data had dates), measured, predicted,
        residual.
        """
        import pandas as pd

        rows, parts, at = [], [], 0
        r, e = with_new_seed(self.estimate, seed).evaluation.residuals, self.estimate.evaluation.errors
        for case in self.estimate.cases:
            for s in case.samples:
                part = slice(at, at + len(s.values))
                rows.append(
                    pd.DataFrame(
                        {
                            "experiment": case.name,
                            "output": s.output,
                            "time": case.grid[s.rows],
                            "measured": s.values,
                            "predicted": s.values - e[part],
                            "residual": r[part] if standardized else e[part],
                        }
                    )
                )
                parts.append((case.experiment, case.grid[s.rows]))
                at += len(s.values)
        found, dates = pd.concat(rows, ignore_index=True), date_column(parts)
        if dates is not None:
            found.insert(found.columns.get_loc("time") + 1, DATE, dates)
        return found

    @cached_property
    def quality(self) -> pd.DataFrame:
        """Per output: samples, RMS residual, R², and the fit percentage 100 (1 − |e| / |y − mean|).

        Of robust losses with residuals as large as the loss counts them, not as a few outliers make them. Beside a law
        errors are measured less predicted, the location of the law: a size of errors, not what was maximised; of
        ``Rounded``, ``Censored`` and ``Truncated`` laws measured less the mean of what these record.
        """
        found = self.residuals()
        return quality_of(found.assign(residual=errors_beside_recorded(self.estimate)[: len(found)]), self.method.score)

    def predict(
        self,
        experiment: Experiment | str | None = None,
        horizon: Horizon | None = None,
        *,
        start: str | Mapping[str, float] = "auto",
        bands: Literal["noise", "all"] | None = None,
    ) -> xr.Dataset:
        """Return the prediction of an experiment by the fitted model.

        experiment, horizon, start, bands : as in ``Fit.predict``
        """
        begun = self.begun(experiment, start)
        if horizon is not None:
            check_horizon(horizon, clock_of(begun.experiment))
        if bands is not None or horizon is not None:
            on = (begun if horizon is not None else replace(begun, carried=None)).following(self)
            ahead = predict_ahead_or_bands(self, on, horizon, bands)
            if ahead is not None:
                return with_dates(ahead.assign_attrs(start=on.how), on.experiment)
        return with_dates(self.simulated(begun.experiment).assign_attrs(start=begun.how), begun.experiment)

    def begun(
        self,
        experiment: Experiment | str | None = None,
        start: str | Mapping[str, float] = "auto",
        samples: int | None = None,
    ) -> RecordStart:
        """Return an experiment with the start from which it is predicted.

        experiment, start : as in ``predict``
        samples : as ``start_samples`` in ``validate``
        """
        from grisaille.estimation.starts.record_starts import start_of_record

        chosen = self.experiments[0] if experiment is None else self.find_experiment(experiment)
        if any(chosen is e for e in self.experiments):
            return start_of_record(self, chosen, start)
        chosen.check(self.initial_model)
        return start_of_record(self, chosen, start, samples)

    def simulated(self, experiment: Experiment, sensitivities: Sequence[str] = ()) -> xr.Dataset:
        """Return the fitted model over the time of an experiment, from the start that this has, or that was estimated
        for it.

        experiment : one whose start is known
        sensitivities : as in ``gr.simulate``
        """
        signals, hold = experiment.input_signals()
        name = experiment.name or ""
        values, starts = self._values_for(name)
        options = self.method.simulation_options(self.estimate, name)
        values.update(options.pop("parameters", {}))
        known, is_own = known_starts(experiment), any(experiment is e for e in self.experiments)
        return simulate(
            without_assertions(self.initial_model), experiment.grid(), inputs=signals, hold=hold,
            parameters={**experiment.constants, **values},
            start={**known, **starts} if is_own else {**starts, **known}, sensitivities=sensitivities, **options,
        )  # fmt: skip

    @cached_property
    def settled_model(self) -> Model:
        """``model`` with the levels of noise that followed from residuals, and with correlations of noise as given."""
        return with_known_correlations(with_levels(self.model, {}, self.estimate.noise))

    def simulate(
        self,
        times: Sequence[float] | np.ndarray,
        inputs: Mapping[str, object] | None = None,
        **options: Unpack[SimulationOptions],
    ) -> xr.Dataset:
        """Call ``gr.simulate`` with the fitted model.

        Parameters
        ----------
        times, inputs : as in ``gr.simulate``
        options : the others of ``gr.simulate``, by name

        Returns
        -------
        Trajectories of every variable, quantity and output.
        """
        return simulate(self.model, times, inputs, **options)

    def find_experiment(self, which: Experiment | str) -> Experiment:
        """Return one of the fit's experiments, by its name or by its content; another one as it is.

        which : a name, or an experiment
        """
        if not isinstance(which, str):
            if not isinstance(which, Experiment):
                raise EstimationError(
                    f"An experiment or the name of one is expected, not {type(which).__name__}. For other times and "
                    f"inputs use fit.simulate(times, inputs)."
                )
            # one of the fit's own, which got a name from it
            own = [e for e in self.experiments if which.replace(name=e.name).fingerprint == e.fingerprint]
            if not own:
                refuse_mixed_units([*self.experiments, which])
            return own[0] if own else which
        for e in self.experiments:
            if e.name == which:
                return e
        raise EstimationError(
            f"No experiment of this fit is called '{which}'; there are {', '.join(self.experiment_names)}."
        )

    @property
    def experiment_names(self) -> tuple[str, ...]:
        """By which ``predict``, ``states`` and ``plot`` know the experiments."""
        return tuple(e.name or "" for e in self.experiments)

    def _values_for(self, experiment: str) -> tuple[dict[str, float], dict[str, float]]:
        """Return estimated parameters, and starts, that hold in an experiment.

        experiment : its name
        """
        mine = [(u, v) for u, v in self._pairs() if u.applies_to(experiment)]
        return (
            {u.target: v for u, v in mine if u.kind == "parameter"},
            {u.target: v for u, v in mine if u.kind == "start"},
        )

    def __str__(self) -> str:
        return summarize(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return summarize_html(self)


def quality_of(residuals: pd.DataFrame, score: Score | None = None) -> pd.DataFrame:
    """Return, for each output of a table of residuals, the number of samples, RMS, R², and the fit percentage.

    score : of a robust loss, which counts outliers less
    """
    import pandas as pd

    table = {}
    for output, group in residuals.groupby("output", sort=False):
        e, y = group["residual"].to_numpy(), group["measured"].to_numpy()
        if score is not None:
            e, y = weigh_robustly(e, score), y - e + weigh_robustly(e, score)
        spread = float(np.sum((y - y.mean()) ** 2))
        ratio = float(np.sum(e**2)) / spread if spread > 0 else np.nan
        table[output] = {
            "samples": len(e), "rms": float(np.sqrt(np.mean(e**2))), "r2": 1 - ratio,
            "fit_percent": 100 * (1 - np.sqrt(ratio)),
        }  # fmt: skip
    return pd.DataFrame.from_dict(table, orient="index")


def _is_zero(unknown: Unknown, value: float) -> bool:
    return value == 0 and unknown.lower == 0 and unknown.kind != "start"


def _wide_enough(model: Model, pairs: Sequence[tuple[Unknown, float]]) -> Model:
    """Return the model, with the bounds of the search joined to its own where an estimate lies beyond these."""
    content = model._content.copy()
    changed = False
    for u, value in pairs:
        tables: dict[str, dict[str, Any]] = {"parameter": content.parameters, "start": content.variables}
        table = tables.get(u.kind, {})
        own = table[u.target].bounds if u.target in table else None
        if own is not None and not own[0] <= value <= own[1]:
            both = (min(own[0], u.lower), max(own[1], u.upper))
            table[u.target], changed = replace(table[u.target], bounds=both), True
    return restore_model(content, type(model)) if changed else model


def with_levels(model: Model, scales: Mapping[str, float], noises: Mapping[str, float]) -> Model:
    """Return a copy with other scales of disturbances and standard deviations of measurement noise."""
    if not (scales or noises):
        return model
    content = model._content.copy()
    for name, value in scales.items():
        content.disturbances[name] = replace(content.disturbances[name], scale=as_expression(value))
    for name, value in noises.items():
        content.outputs[name] = replace(content.outputs[name], noise=as_expression(value))
    return restore_model(content, type(model))


def with_known_correlations(model: Model) -> Model:
    """Return a copy in which unknown correlations of noise are the numbers that they have."""
    content = model._content
    known = {n: p.value for n, p in content.parameters.items() if is_correlation(n) and p.value is not None}
    if not known:
        return model
    insert = Rewriter(lambda node: known.get(node.path) if isinstance(node, Name) else None)
    content = content.copy()
    content.noise_covariance = {pair: insert(e) for pair, e in content.noise_covariance.items()}
    return restore_model(content, type(model))
