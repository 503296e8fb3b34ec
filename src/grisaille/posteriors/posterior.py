"""Draws of the unknowns of a fit, with what they are worth; ``results.posterior`` adds predictions and files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from grisaille.calling import checked_methods
from grisaille.errors import ArgumentError, EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.printing.printed_value import Value
from grisaille.estimation.uncertainty import correlation_of
from grisaille.model.names import nearest, suggestion
from grisaille.posteriors.convergence import Convergence, convergence_of
from grisaille.posteriors.judgement import disagreements, trajectory_notes
from grisaille.posteriors.posterior_draws import PosteriorDraws
from grisaille.posteriors.summary import summarize
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas

QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)


@checked_methods
class SampledPosterior:
    """Draws from the posterior of a fit's unknowns: ``print(posterior)`` shows the table and what is to be known.

    ``posterior["k"]`` is one mean with its standard deviation. It can be saved, loaded and pickled by its content.
    """

    def __init__(
        self,
        fit: Fitted,
        names: Sequence[str],
        priors: Mapping[str, str],
        drawn: PosteriorDraws,
        seed: int,
        *,
        defaults: Mapping[str, str],
        failures: Mapping[str, int],
        seconds: float,
    ) -> None:
        self.fit, self.names, self.priors, self.seed = fit, tuple(names), dict(priors), seed
        self.defaults, self.failures, self.seconds, self._drawn = dict(defaults), dict(failures), seconds, drawn

    @classmethod
    def of(cls, sampled: SampledPosterior) -> Self:
        """Return the same posterior with what this class can do."""
        return cls(
            sampled.fit, sampled.names, sampled.priors, sampled._drawn, sampled.seed, defaults=sampled.defaults,
            failures=sampled.failures, seconds=sampled.seconds,
        )  # fmt: skip

    @property
    def model_name(self) -> str:
        """The model whose unknowns these are."""
        return self.fit.model_name

    @cached_property
    def draws(self) -> xr.Dataset:
        """Every draw, by the names of the unknowns, with the dimensions ``chain`` and ``draw``."""
        units = self._units
        return self._labelled({n: (self._drawn.theta[..., k], units[n]) for k, n in enumerate(self.names)})

    @cached_property
    def statistics(self) -> xr.Dataset:
        """How each draw came about, as ArviZ names it.

        ``lp`` (log-density per unit of unbounded coordinates), ``acceptance_rate``, ``energy``, ``step_size``,
        ``n_steps`` (gradients), ``tree_depth``, ``diverging``.
        """
        return self._labelled({n: (v, "") for n, v in self._drawn.statistics.items()})

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per unknown: mean, sd, quantiles, Monte Carlo standard errors, effective sizes and R̂."""
        import pandas as pd

        flat = self._flat
        quantiles = np.quantile(flat, QUANTILES, axis=0)
        table: dict[str, Any] = {"mean": flat.mean(axis=0), "sd": flat.std(axis=0, ddof=1)}
        table |= {f"q{100 * q:g}": row for q, row in zip(QUANTILES, quantiles, strict=True)}
        for column in ("mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat"):
            table[column] = [getattr(self.convergence[n], column) for n in self.names]
        table["unit"] = [self._units[n] for n in self.names]
        return pd.DataFrame(table, index=pd.Index(self.names, name="parameter"))

    @cached_property
    def convergence(self) -> dict[str, Convergence]:
        """What the draws of each unknown are worth: R̂, effective sizes and Monte Carlo standard errors."""
        return {n: convergence_of(self._drawn.theta[..., k]) for k, n in enumerate(self.names)}

    @cached_property
    def converged(self) -> bool:
        """Whether chains agree and are long enough, and no trajectory diverged."""
        return not self._disagreements and not self._drawn.statistics["diverging"].any()

    @cached_property
    def status(self) -> str:
        """Whether the draws may be used, in words."""
        worst = max((c.r_hat for c in self.convergence.values()), default=np.nan)
        least = min((min(c.ess_bulk, c.ess_tail) for c in self.convergence.values()), default=np.nan)
        said = f"R̂ at most {worst:.3f}, at least {least:.0f} effective draws"
        if self._disagreements:
            return f"not converged: {said}"
        divergent = int(self._drawn.statistics["diverging"].sum())
        return f"chains agree, {divergent} trajectories diverged: {said}" if divergent else f"converged: {said}"

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What is to be known about the draws: doubts first, then priors that were not given."""
        trajectories = trajectory_notes(self._drawn, self.names, self.failures)
        assumed = [
            f"{name}: no prior was given, and {law} is taken, whose scale is the spread of the data"
            for name, law in self.defaults.items()
        ]
        return (*self._disagreements, *trajectories, *assumed)

    @cached_property
    def _disagreements(self) -> list[str]:
        return disagreements(self.convergence, len(self._drawn.theta))

    def __getitem__(self, name: str) -> Value:
        """Return the mean of one unknown, which works as a number and prints with its standard deviation and unit."""
        k = self._place(name)
        flat = self._flat[:, k]
        return Value(float(flat.mean()), float(flat.std(ddof=1)), self._units[name], name)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __len__(self) -> int:
        return len(self._flat)

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """Return equal-tailed credible intervals: the unknown lies there with this probability.

        Parameters
        ----------
        level : the probability, between 0 and 1

        Returns
        -------
        A table with ``lower`` and ``upper`` by name.
        """
        import pandas as pd

        if not 0 < level < 1:
            raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
        lower, upper = np.quantile(self._flat, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return pd.DataFrame({"lower": lower, "upper": upper}, index=pd.Index(self.names, name="parameter"))

    @cached_property
    def covariance(self) -> pd.DataFrame:
        """Of the draws."""
        import pandas as pd

        return pd.DataFrame(np.atleast_2d(np.cov(self._flat.T)), index=self.names, columns=self.names)

    @cached_property
    def correlation(self) -> pd.DataFrame:
        """Of the draws."""
        import pandas as pd

        return pd.DataFrame(correlation_of(self.covariance.to_numpy()), index=self.names, columns=self.names)

    def to_arviz(self) -> Any:
        """Return the draws as the installed ArviZ takes them, for ``az.summary``, ``az.plot_trace`` and so on.

        ArviZ is the extra ``bayes``: an ``InferenceData`` of version 0, a ``DataTree`` of version 1.

        Returns
        -------
        The groups ``posterior`` and ``sample_stats``.
        """
        from grisaille.posteriors.arviz_data import arviz_data

        return arviz_data(self)

    def plot(self, names: str | Iterable[str] | None = None, *, ax: Canvas | None = None) -> Figure:
        """Plot the distribution of each unknown and its traces, a chain in a colour.

        Parameters
        ----------
        names : of unknowns; by default the first eight
        ax : axes to draw on instead of a new figure, two for each unknown

        Returns
        -------
        The figure.
        """
        from grisaille.posteriors.posterior_plots import draw_posterior

        chosen = list(self.names)[:8] if names is None else [names] if isinstance(names, str) else list(names)
        strange = [n for n in chosen if n not in self.names]
        if strange or not chosen:
            what = f"holds {strange[0]!r}" if strange else "is empty"
            raise ArgumentError(f"plot(): names {what}; give some of {', '.join(self.names)}.")
        return draw_posterior(self, chosen, ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the posterior and its fit to a netCDF file, which ``gr.load`` gives back and ArviZ reads as well.

        Parameters
        ----------
        path : the file
        """
        from grisaille.posteriors.saving import save

        save(self, path)

    def __str__(self) -> str:
        return summarize(self)

    __repr__ = __str__

    @cached_property
    def _flat(self) -> np.ndarray:
        return self._drawn.theta.reshape(-1, len(self.names))

    @cached_property
    def _units(self) -> dict[str, str]:
        known = {u.name: u.unit for u in self.fit.estimate.unknowns}
        outputs = structure_of(self.fit.initial_model).model.outputs
        levels = {f"noise({n})": o.unit for n, o in outputs.items()}
        return {n: known.get(n, levels.get(n, "")) for n in self.names}

    def _labelled(self, arrays: Mapping[str, tuple[np.ndarray, str]]) -> xr.Dataset:
        import xarray as xr

        chains, draws = self._drawn.theta.shape[:2]
        data = {n: (("chain", "draw"), v, {"units": unit} if unit else {}) for n, (v, unit) in arrays.items()}
        return xr.Dataset(data, {"chain": np.arange(chains), "draw": np.arange(draws)})

    def _place(self, name: str) -> int:
        if name not in self.names:
            close = f" {suggestion(name, self.names)}" if isinstance(name, str) and nearest(name, self.names) else ""
            raise EstimationError(f"The posterior has no {name!r}; it has {', '.join(self.names)}.{close}")
        return self.names.index(name)
