"""``Fit``: a fitted model with its estimates, their uncertainty, and what can be asked of it.

Later folders add methods (residual tests, profiles, pictures, reports) with ``fit_method``, so that this file needs
nothing that comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.intervals import Intervals, find_intervals
from grisaille.estimation.summary import summarize, summarize_html
from grisaille.estimation.uncertainty import correlation_of, half_width, t_test
from grisaille.estimation.value import Value
from grisaille.model.classes import Model, restored
from grisaille.model.expression import as_expression
from grisaille.simulation.simulate import simulate
from grisaille.structure.prepared import structure_of
from grisaille.trial.trial import known_starts

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class Fit:
    """The answer of ``gr.fit``."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(
        self,
        model: Model,
        experiments: Sequence[Any],
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

    @cached_property
    def model_name(self) -> str:
        return structure_of(self.initial_model).model.name

    # what was estimated

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(u.name for u in self.estimate.unknowns)

    @cached_property
    def model(self) -> Model:
        """The model with the shared estimates and levels of noise; per-experiment values stay in ``parameters``."""
        shared = {u.target: float(v) for u, v in self._pairs() if u.kind == "parameter" and u.experiment is None}
        starts = {u.target: float(v) for u, v in self._pairs() if u.kind == "start" and len(self.experiments) == 1}
        model = self.initial_model.replace(shared, start=starts) if starts else self.initial_model.replace(shared)
        levels = {
            kind: {u.target: float(v) for u, v in self._pairs() if u.kind == kind and u.experiment is None}
            for kind in ("scale", "noise")
        }
        return with_levels(model, levels["scale"], levels["noise"])

    def _pairs(self) -> list[tuple[Any, float]]:
        return list(zip(self.estimate.unknowns, self.estimate.theta.tolist(), strict=True))

    def __getitem__(self, name: str) -> Value:
        if name.startswith("noise(") and name[6:-1] in self.estimate.noise:
            return Value(self.estimate.noise[name[6:-1]], self._noise_error(name[6:-1]), name=name)
        if name not in self.names:
            raise EstimationError(
                f"The fit has no '{name}'; it has {', '.join((*self.names, *self._noise_names()))}. Trajectories are "
                f"in fit.predict()."
            )
        k = self.names.index(name)
        value, error, unit = float(self.estimate.theta[k]), float(self.std_errors[k]), self.estimate.unknowns[k].unit
        return Value(value, error, unit, name, is_approximate=bool(self.estimate.caution))

    @cached_property
    def std_errors(self) -> np.ndarray:
        return np.asarray(np.sqrt(np.clip(np.diag(self.estimate.covariance), 0.0, None)))

    @cached_property
    def parameters(self) -> pd.DataFrame:
        """One row per unknown: estimate, std_error, lower and upper (95 %, by ``intervals``), t, p, guess, status, and
        which kind of interval it is."""
        import pandas as pd

        e = self.estimate
        found = self.limits()
        t, p = t_test(e.theta, self.std_errors, self.student)
        status = [
            "free" if f else "zero" if _is_zero(u, v) else "at bound"
            for f, (u, v) in zip(e.free, self._pairs(), strict=True)
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
            factor = float(np.exp(half_width(np.array([error / sigma]), 0.95, e.degrees_of_freedom)[0]))
            table.loc[f"noise({output})"] = [
                sigma,
                error,
                sigma / factor,
                sigma * factor,
                np.nan,
                np.nan,
                np.nan,
                "noise",
                "Wald",
            ]
        return table

    @cached_property
    def estimates(self) -> dict[str, float]:
        """Estimates by name, levels of noise included; without intervals, which may take longer."""
        found = {u.name: float(v) for u, v in self._pairs()}
        return {**found, **{f"noise({o})": float(v) for o, v in self.estimate.noise.items()}}

    @property
    def student(self) -> float:
        """Degrees of freedom of Student's t; infinite, so that it is normal, where the noise is known."""
        e = self.estimate
        known = e.is_likelihood and not e.noise and e.evaluation.is_least_squares
        return np.inf if known else float(e.degrees_of_freedom)

    def _noise_names(self) -> list[str]:
        return [f"noise({o})" for o in self.estimate.noise]

    def _noise_error(self, output: str) -> float:
        """σ/√(2N): the asymptotic standard error of a standard deviation."""
        n = sum(len(s.values) for c in self.estimate.cases for s in c.samples if s.output == output)
        return float(self.estimate.noise[output] / np.sqrt(2 * max(n, 1)))

    # how far to trust it

    @cached_property
    def covariance(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self.estimate.covariance, index=self.names, columns=self.names)

    @cached_property
    def correlation(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(correlation_of(self.estimate.covariance), index=self.names, columns=self.names)

    def intervals(
        self, level: float = 0.95, method: str = "auto", *, samples: int | None = None, seed: int | None = None
    ) -> pd.DataFrame:
        """Two-sided intervals, by Student's t; by normal quantiles where the noise is known.

        method : ``"wald"``, estimate ± quantile · standard error, for levels (``scale(…)``, ``noise(…)``) in the
            logarithm; ``"profile"``, where the deviance with the others following has grown by the square of the
            quantile; ``"auto"``, Wald's, but profiles where the two disagree by more than a tenth of the width;
            ``"bootstrap"``, by tests at the law that they have over data drawn from the model, for estimates that
            are biased or not normal (near a unit root, say)
        samples, seed : of the bootstrap: data sets, and the number that they follow from

        An unknown at a bound has a one-sided limit on its other side: NaN says that nothing is known there. The kind
        of each interval is in ``attrs["kinds"]``, what is to be said about them in ``attrs["said"]`` and ``["notes"]``.
        """
        import pandas as pd

        given = {name: v for name, v in (("samples", samples), ("seed", seed)) if v is not None}
        found = self.limits(level, method, **given)
        table = pd.DataFrame({"lower": found.lower, "upper": found.upper}, index=self.names)
        table.attrs = {
            "kinds": dict(zip(self.names, found.kinds, strict=True)),
            "notes": list(found.notes),
            "said": found.said,
        }
        return table

    def limits(self, level: float = 0.95, method: str = "auto", **options: Any) -> Intervals:
        """What ``intervals`` shows, computed once."""
        if options:
            return find_intervals(self, level, method, **options)
        if (level, method) not in self.known_intervals:
            self.known_intervals[level, method] = find_intervals(self, level, method)
        return self.known_intervals[level, method]

    @property
    def converged(self) -> bool:
        return self.estimate.converged

    @property
    def status(self) -> str:
        return self.estimate.status

    @property
    def notes(self) -> tuple[str, ...]:
        """The diagnosis in words."""
        e = self.estimate
        return (e.caution, *e.notes) if e.caution else e.notes

    @property
    def objective(self) -> float:
        return self.estimate.objective

    @property
    def log_likelihood(self) -> float:
        return self.estimate.log_likelihood

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
        """One row per improvement of the objective."""
        import pandas as pd

        return pd.DataFrame(list(self.estimate.trace))

    # predictions and residuals

    def residuals(self, *, standardized: bool = False) -> pd.DataFrame:
        """One row per measurement: experiment, output, time, measured, predicted, residual (raw or standardized)."""
        import pandas as pd

        rows, at = [], 0
        r, e = self.estimate.evaluation.residuals, self.estimate.evaluation.errors
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
                at += len(s.values)
        return pd.concat(rows, ignore_index=True)

    @cached_property
    def quality(self) -> pd.DataFrame:
        """Per output: samples, RMS residual, R², and the fit percentage 100 (1 − |e| / |y − mean|)."""
        import pandas as pd

        table = {}
        for output, group in self.residuals().groupby("output", sort=False):
            e, y = group["residual"].to_numpy(), group["measured"].to_numpy()
            spread = float(np.sum((y - y.mean()) ** 2))
            ratio = float(np.sum(e**2)) / spread if spread > 0 else np.nan
            table[output] = {
                "samples": len(e), "rms": float(np.sqrt(np.mean(e**2))), "r2": 1 - ratio,
                "fit_percent": 100 * (1 - np.sqrt(ratio)),
            }  # fmt: skip
        return pd.DataFrame.from_dict(table, orient="index")

    def predict(self, experiment: Any = None, horizon: float | None = None) -> xr.Dataset:
        """What the fitted model says about an experiment, the first by default.

        horizon : None simulates from the start. For fits by ``gr.KalmanML`` a whole number k predicts every sample from
            the data up to k samples before, with standard deviations and 95 % bands (of outputs as measured); np.inf
            gives a simulation with its bands. For output error every horizon is a simulation, for simulated prediction
            errors the mean of an ensemble. Collocation has none but np.inf, a simulation.
        """
        ahead = None if horizon is None else self.method.predict_ahead(self, experiment, horizon)
        if ahead is not None:
            return ahead
        chosen = self.experiments[0] if experiment is None else self.find_experiment(experiment)
        signals, hold = chosen.input_signals()
        values, starts = self._values_for(chosen.name)
        options = self.method.simulated(self.estimate, chosen.name)
        values.update(options.pop("parameters", {}))
        return simulate(
            self.initial_model, chosen.grid(), inputs=signals, hold=hold, parameters={**chosen.constants, **values},
            start={**known_starts(chosen), **starts}, **options,
        )  # fmt: skip

    def simulate(self, times: Any, inputs: Any = None, **options: Any) -> xr.Dataset:
        """``gr.simulate`` with the fitted model."""
        return simulate(self.model, times, inputs, **options)

    def find_experiment(self, which: Any) -> Any:
        """One of the fit's experiments, by its name or by its content; another one as it is."""
        if not isinstance(which, str):
            if not hasattr(which, "input_signals"):
                raise EstimationError(
                    f"An experiment or the name of one is expected, not {type(which).__name__}. For other times and "
                    f"inputs use fit.simulate(times, inputs)."
                )
            # one of the fit's own, which got a name from it
            own = [e for e in self.experiments if which.replace(name=e.name).fingerprint == e.fingerprint]
            return own[0] if own else which
        for e in self.experiments:
            if e.name == which:
                return e
        raise EstimationError(
            f"No experiment is called '{which}'; there are {', '.join(e.name for e in self.experiments)}."
        )

    def _values_for(self, experiment: str) -> tuple[dict[str, float], dict[str, float]]:
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


def _is_zero(unknown: Any, value: float) -> bool:
    return value == 0 and unknown.lower == 0 and unknown.kind != "start"


def with_levels(model: Model, scales: Mapping[str, float], noises: Mapping[str, float]) -> Model:
    """A copy with other scales of disturbances and standard deviations of measurement noise."""
    if not (scales or noises):
        return model
    content = model._content.copy()
    for name, value in scales.items():
        content.disturbances[name] = replace(content.disturbances[name], scale=as_expression(value))
    for name, value in noises.items():
        content.outputs[name] = replace(content.outputs[name], noise=as_expression(value))
    return restored(content, type(model))


def fit_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function of a later folder a method of ``Fit``; its first argument is the fit."""
    if hasattr(Fit, function.__name__):
        raise AttributeError(f"Fit already has a method {function.__name__}.")
    setattr(Fit, function.__name__, function)
    return function
