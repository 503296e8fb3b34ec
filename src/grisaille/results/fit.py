"""``Fit``: a fitted model, its uncertainty, and everything that can be asked of it.

What estimation itself knows (estimates, tables, residuals, predictions) is in ``Fitted``; the methods here ask the
rooms that come after it, each of which is loaded when first asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from grisaille.calling import checked_methods
from grisaille.estimation.abilities.missing import missing_ability_error
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.intervals import Intervals
from grisaille.experiment.times.dating import with_dates

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd
    from matplotlib.figure import Figure

    from grisaille.assessment.curve import Curve
    from grisaille.assessment.deviances import Threshold
    from grisaille.assessment.diagnosis import Diagnosis
    from grisaille.assessment.profile import Profile
    from grisaille.assessment.ratio_test import RatioTest
    from grisaille.assessment.surface import CostSurface
    from grisaille.drawing import Canvas
    from grisaille.estimation.predictions.horizons import Horizon
    from grisaille.experiment.experiment import Experiment
    from grisaille.laws import MultivariateNormal, Prior
    from grisaille.model.expression import Expression
    from grisaille.results.sampled import Posterior
    from grisaille.results.trajectories import Trajectories
    from grisaille.results.validation import Validation


@checked_methods
class Fit(Fitted):
    """The answer of ``gr.fit``: ``print(fit)`` shows the table, ``fit["k"]`` one estimate with its standard error.

    A fit can be copied and pickled by its content, as it would be saved: another process needs neither the file that
    defines the model nor what prepared the fit.
    """

    # how far to trust it

    def intervals(
        self,
        level: float = 0.95,
        method: Literal["auto", "bootstrap", "profile", "wald"] = "auto",
        *,
        samples: int | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame:
        """Return two-sided intervals, by Student's t; by normal quantiles where the noise is known.

        Parameters
        ----------
        level : confidence, between 0 and 1
        method : ``"wald"``, estimate ± quantile · standard error, for levels (``scale(…)``, ``noise(…)``) in the
            logarithm; ``"profile"``, where the deviance with the others following has grown by the square of the
            quantile; ``"auto"``, Wald's, but profiles where the two disagree by more than a tenth of the width;
            ``"bootstrap"``, by tests at the law that they have over data drawn from the model, for estimates that
            are biased or not normal (near a unit root, say)
        samples, seed : of the bootstrap: data sets for each limit, by default as many as make its Monte Carlo error
            0.2 standard errors, at most 999; and the number that they follow from

        Returns
        -------
        A table with ``lower`` and ``upper`` by name. An unknown at a bound has a one-sided limit on its other side: NaN
        says that nothing is known there. The kind of each interval is in ``attrs["kinds"]``, what is to be said about
        them in ``attrs["said"]`` and ``attrs["notes"]``.
        """
        import pandas as pd

        found = self._intervals_by(level, method, samples, seed)
        table = pd.DataFrame({"lower": found.lower, "upper": found.upper}, index=list(self.names))
        table.attrs = {
            "kinds": dict(zip(self.names, found.kinds, strict=True)),
            "notes": list(found.notes),
            "said": found.said,
        }
        return table

    def _intervals_by(self, level: float, method: str, samples: int | None, seed: int | None) -> Intervals:
        from grisaille.results.intervals import find_intervals

        if samples is None and seed is None:
            return self.limits(level, method)
        return find_intervals(self, level, method, samples, seed)

    def _find_intervals(self, level: float, method: str) -> Intervals:
        from grisaille.results.intervals import find_intervals

        return find_intervals(self, level, method)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Return which assumptions of the standard errors do not hold, and by how much; empty where none.

        An approximation of the likelihood that another one contradicts, and what the residuals refute.
        """
        from grisaille.assessment.error_assumptions import refuted_assumptions

        return (*super().doubts, *refuted_assumptions(self))

    @cached_property
    def residual_verdict(self) -> str:
        """Say how many tests of ``diagnose()`` are unhealthy, at 1 % for all together; empty where none is made."""
        from grisaille.assessment.error_assumptions import residual_verdict

        return residual_verdict(self)

    @cached_property
    def ranges(self) -> tuple[str, ...]:
        """Return where estimated trajectories touch or leave the bounds that variables declare; empty if nowhere."""
        from grisaille.assessment.declared_ranges import range_notes

        return range_notes(self)

    def with_errors(self, errors: Literal["plain", "robust"]) -> Fit:
        """Return the same fit with other standard errors; nothing is fitted again.

        Parameters
        ----------
        errors : of ``gr.OutputError``: ``"plain"``, for residuals that are independent of each other; ``"robust"``,
            with their correlation over time and between outputs

        Returns
        -------
        A fit with the same estimates; table, intervals, covariance and notes follow the errors.
        """
        from grisaille.estimation.hac.recomputed import with_errors

        return Fit.of(with_errors(self, errors))

    def profile(self, name: str, level: float = 0.95, points: int = 12, *, threshold: Threshold = "t") -> Profile:
        """Return the profile likelihood of one unknown, and the interval it gives.

        Parameters
        ----------
        name : as in the table of the fit
        level : confidence of the interval
        points : about how many on each side of the estimate
        threshold : ``"t"`` (exact for linear models) or ``"chi2"`` (its limit for many data); the same where noise is
            known

        Returns
        -------
        A profile that prints as a sentence and has ``interval``, ``table``, ``shape`` and ``plot()``.
        """
        from grisaille.assessment.profile import profile

        return profile(self, name, level, points, threshold=threshold)

    def surface(
        self,
        first: str,
        second: str,
        *,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        points: int = 31,
        level: float = 0.95,
        others: Literal["held", "profiled"] = "held",
    ) -> CostSurface:
        """Return the cost surface over two unknowns, with the confidence ellipse.

        Parameters
        ----------
        first, second : names, as in the table of the fit
        ranges : ``{name: (from, to)}``; by default four standard errors to each side, inside the bounds
        points : along each axis; each costs a simulation (a fit, with ``others="profiled"``)
        level : of the region and the ellipse
        others : whether the other unknowns stay at their estimates (``"held"``) or follow to their conditional minimum

        Returns
        -------
        A surface with ``data`` (objective and deviance on the grid), ``ellipse`` and ``plot()``.
        """
        from grisaille.assessment.surface import surface

        return surface(self, first, second, ranges=ranges, points=points, level=level, others=others)

    def curve(self, name: str | Expression, level: float = 0.95, *, experiment: str | None = None) -> Curve:
        """Return an estimated curve, that is a ``gr.table`` with unknown values, and its band.

        Parameters
        ----------
        name : the vector of values, or one parameter among them
        level : confidence of the band, at each point alone; by the delta method from the covariance of the estimates
        experiment : whose curve, where each has values of its own

        Returns
        -------
        A curve that prints as a table: ``table`` has a row per knot (value, standard error, lower, upper, and the share
        that the data tell beside a prior), ``at(x)`` the same at any x, ``plot()`` a picture, ``notes`` what is to be
        known. Where no data reach, the band is infinite; with ``prior=gr.Smoothness(scale)`` it is finite.
        """
        from grisaille.assessment.curve import curve

        return curve(self, name, level, experiment)

    def posterior(
        self,
        draws: int = 1000,
        chains: int = 4,
        seed: int = 0,
        *,
        tune: int = 500,
        acceptance: float = 0.8,
        priors: Mapping[str, Prior | None] | Sequence[MultivariateNormal] | MultivariateNormal | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        store: str | Path | None = None,
        executor: Executor | int | str | None = None,
        progress: bool | None = None,
    ) -> Posterior:
        """Sample the posterior of what was estimated, levels of noise included, by the no-U-turn sampler.

        Priors are the distributions that they name; two finite bounds without a prior are the uniform distribution
        between them. Noise of an output without either has a half-Cauchy prior whose scale is the standard deviation of
        its measurements. Any other unknown without either is refused: its posterior need not exist.

        Parameters
        ----------
        draws : of each chain, after its warm-up
        chains : how many, from different points; whether they agree says whether they are long enough
        seed : from which each chain's own is derived
        tune : transitions of the warm-up, which finds the step and corrects the metric where that of the fit is wrong
        acceptance : mean acceptance of the points of a trajectory that the step is chosen for; 0.95 takes shorter steps
            where trajectories diverge
        priors, bounds : by name, instead of those of the fit; a prior of None takes one away
        store : file that keeps what chains have drawn; the same call with the same file continues where they were, and
            more draws may be asked for later
        executor : None (processes, or none where chains are short), a number of processes, ``"serial"``, or any
            ``concurrent.futures`` executor. The draws are the same
        progress : whether a bar is shown; None: on terminals

        Returns
        -------
        The draws: ``table`` has a row per unknown, ``draws`` all of them, ``notes`` what is to be known about them,
        ``to_arviz()``, ``plot()``, ``predict()``, ``save(path)``.
        """
        from grisaille.posteriors.chain import SamplingOptions
        from grisaille.posteriors.sampling import sample_posterior
        from grisaille.results.sampled import Posterior

        found = sample_posterior(
            self, SamplingOptions(draws, tune, acceptance), chains, seed, priors=priors, bounds=bounds, store=store,
            executor=executor, progress=progress,
        )  # fmt: skip
        return Posterior.of(found)

    def test(self, hypothesis: str | Iterable[str] | Mapping[str, float]) -> RatioTest:
        """Likelihood-ratio test that some unknowns have given values.

        Levels of noise that the hypothesis puts to zero lie on the boundary of what is possible; the p value takes that
        into account.

        Parameters
        ----------
        hypothesis : ``{"k": 0.5, "scale(w)": 0.0}``; a name or a list of names stands for zero

        Returns
        -------
        A verdict that prints as a sentence, with ``ratio``, ``p`` and the ``estimates`` under the hypothesis.
        """
        from grisaille.assessment.ratio_test import ratio_test

        return ratio_test(self, hypothesis)

    def diagnose(self, level: float = 0.01, *, seed: int = 0) -> Diagnosis:
        """Test the residuals of every output and experiment: whiteness, spectrum, inputs, normality, outliers, size.

        Outputs that were measured at the same instants are also compared with each other.

        Parameters
        ----------
        level : probability of calling a healthy series unhealthy, for each test
        seed : of the random numbers by which residuals of counts and of values at limits are spread: p of another seed
            is another one, and a verdict that hangs on it is none

        Returns
        -------
        The verdicts in words; true when every one is healthy. ``table`` has a row per test, ``plot()`` shows them.
        """
        from grisaille.assessment.diagnosis import diagnose

        return diagnose(self, level, seed)

    def validate(
        self,
        experiment: Experiment,
        start: str | Mapping[str, float] = "auto",
        *,
        horizon: Horizon | None = None,
        level: float = 0.01,
        start_samples: int | None = None,
    ) -> Validation:
        """Predict an experiment that was not fitted, and compare.

        Parameters
        ----------
        experiment : a record that the fit has not seen, such as the second part of ``experiment.split(0.7)``
        start : where it begins. ``"auto"``: one that continues a fitted record takes over its state, of another one
            starts that are unknown, or were estimated, are found from its first samples, which are then not scored;
            ``"declared"``: what it and the model declare; or values by name
        horizon : how far ahead: np.inf for a simulation, which sees the inputs alone and leaves disturbances at zero;
            of fits by ``gr.KalmanML`` also samples (1, 10) or a duration such as ``"1 day"``, as in ``predict``. By
            default, where the method predicts ahead, a simulation and one sample ahead side by side; a simulation
            elsewhere
        level : of each residual test
        start_samples : how many first samples determine the start of every state and are not scored, as the official
            windows of benchmarks prescribe it, whatever was fitted; None: as ``start`` says

        Returns
        -------
        ``table`` has a row per output and horizon (horizon, samples, rms, fit, r2, and of likelihoods of simulations
        log_score, the mean log-density of the samples), ``diagnosis`` the residual tests, of filters of predictions one
        sample ahead; ``plot()``, ``report(path)``. True where every test is healthy.
        """
        from grisaille.results.validation import validate

        return validate(self, experiment, start, level, horizon, start_samples)

    # what the data say about trajectories

    def states(
        self,
        experiment: Experiment | str | None = None,
        names: str | Iterable[str | Expression] | Mapping[str, str | Expression] | None = None,
        level: float = 0.95,
        *,
        bands: Literal["noise", "all"] | None = None,
    ) -> Trajectories:
        """Return filtered and smoothed values of variables, named quantities, outputs and disturbances at the sample
        times.

        Under a diffuse start, variances are infinite until the data determine the states. Fits by ``gr.Collocation``
        have smoothed values only.

        Parameters
        ----------
        experiment : its name, or an experiment, which may be a new one; the first by default
        names : which quantities: names, expressions of them, or ``{label: expression}``; by default everything the
            model names, except what is known (inputs), constant, or white noise (``attrs["left_out"]`` says which)
        level : of the two-sided band
        bands : ``"noise"``, those of the states for given parameters: the parameters' own uncertainty is not in them,
            and they hold the truth less often than ``level`` says; ``"all"``, with the uncertainty of everything that
            was estimated, levels of noise included, by Student's t where noise was estimated. By default ``"noise"``
            for fits by ``gr.KalmanML`` and ``"all"`` for those by ``gr.Collocation``; ``attrs["bands"]``, a
            coordinate of that name and the legend of the plot say which it is

        Returns
        -------
        Every quantity with the dimensions ``given`` ("filtered", "smoothed"), ``statistic`` ("mean", "std", "lower",
        "upper") and ``time``, its unit as an attribute, and dates where the data had dates. ``states.plot()`` draws it.
        """
        from grisaille.results.trajectories import as_trajectories

        on = self.begun(experiment).following(self)
        if on.method.states is None:
            raise missing_ability_error(on.method, "states")
        found = on.method.states.of(self, on.experiment, names, level, bands)
        return as_trajectories(with_dates(found, on.experiment))

    def predict(
        self,
        experiment: Experiment | str | None = None,
        horizon: Horizon | None = None,
        *,
        start: str | Mapping[str, float] = "auto",
        bands: Literal["noise", "all"] | None = None,
    ) -> Trajectories:
        """Predict an experiment by the fitted model.

        Parameters
        ----------
        experiment : its name, or an experiment, which may be a new one; the first by default
        horizon : None simulates from the start. For fits by ``gr.KalmanML`` a whole number k predicts every sample from
            the data up to k samples before, with standard deviations and 95 % bands (of outputs as measured); a
            duration such as ``"1 day"`` or a ``Timedelta`` from the data up to that long before; np.inf gives a
            simulation with its bands. For output error every horizon is a simulation, for simulated prediction errors
            the mean of an ensemble. Collocation has none but np.inf, a simulation.
        start : of an experiment that was not fitted. ``"auto"``: one that continues a fitted one takes over its state,
            of another one unknown starts are estimated from its first samples; ``"declared"``: what it and the model
            declare, whatever was estimated; or values by name. ``attrs["start"]`` says what was done.
        bands : ``"all"`` puts the uncertainty of the estimates into 95 % bands, beside measurement noise and, for
            filters, that of the state; ``"noise"`` leaves it out. Simulations, which have none otherwise, get bands,
            too. None: as said above, and bands of noise alone; ``attrs["bands"]`` says which they are. Outputs with
            ``distribution=`` have quantiles of their law, or of its mixture over draws of the unknowns.

        Returns
        -------
        Every variable, quantity and output over ``time``, with the dimension ``statistic`` where there are bands, and
        a coordinate ``date`` where the experiment has dates. ``predictions.plot()`` draws it.
        """
        from grisaille.results.trajectories import as_trajectories

        return as_trajectories(super().predict(experiment, horizon, start=start, bands=bands))

    # pictures, pages, files

    def plot(
        self,
        experiments: str | Iterable[str] | None = None,
        outputs: str | Iterable[str] | None = None,
        *,
        horizon: Horizon | None = None,
        ax: Canvas | None = None,
    ) -> Figure:
        """Plot measured against predicted for each experiment and output, residuals below with twice the noise.

        Parameters
        ----------
        experiments, outputs : names; by default the first six experiments, and all outputs
        horizon : how far ahead predictions are drawn, as in ``predict``: 4, ``"1 day"`` or np.inf, with their 95 %
            bands where there are some; by default those that were fitted
        ax : axes to draw on instead of a new figure: for each output a row of outputs and one of residuals, and a
            column per experiment

        Returns
        -------
        The figure.
        """
        from grisaille.reporting.fit_plots import plot

        return plot(self, experiments, outputs, ax, horizon)

    def report(self, path: str | os.PathLike[str], *, profiles: bool = False, title: str | None = None) -> Path:
        """Write the fit as one HTML page that needs no network.

        Parameters
        ----------
        path : a file name that ends in .html
        profiles : also profile every unknown, which takes many fits
        title : instead of the model's name

        Returns
        -------
        The path of the page.
        """
        from grisaille.reporting.report import report

        return report(self, path, profiles=profiles, title=title)

    def to_modelica(
        self, path: str | os.PathLike[str], *, name: str | None = None, experiment: str | None = None
    ) -> Path:
        """Write a Modelica model that extends the original, with the estimates as modifiers.

        Standard errors stand beside them as comments. ``gr.read_modelica`` reads the file again, with the original
        beside it or in ``path``, and gives exactly these values. Levels of noise and disturbances are comments.

        Parameters
        ----------
        path : a file name that ends in .mo; a file that was not written by this method is not replaced
        name : of the model; by default the name of the file
        experiment : of several, the one whose own parameters and starts are written; without it only what is shared

        Returns
        -------
        The path of the file.
        """
        from grisaille.results.modelica_file import write_modelica

        return write_modelica(self, path, name, experiment)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to a netCDF file; ``gr.load`` gives it back. A file of that name is replaced in one step.

        Parameters
        ----------
        path : the file
        """
        from grisaille.estimation.persistence.saving import save

        save(self, path)
