"""What would be measured if the priors held: unknowns, disturbances and noise drawn, experiments simulated.

Priors that say something absurd together are seen here, before any data are used: levels that no tank has, trajectories
that explode, measured values that no draw comes near.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.bound_experiment import known_starts
from grisaille.bound_experiment.unknown import Unknown
from grisaille.calling import checked_methods
from grisaille.errors import EstimationError, GrisailleError
from grisaille.experiment.experiment import Experiment
from grisaille.laws import HalfCauchy, Prior
from grisaille.model.classes import Model
from grisaille.model.flat import FlatModel
from grisaille.posteriors.prior_draws import draws_from_priors
from grisaille.simulation.measurement_draws import draw_by_law
from grisaille.simulation.measurement_noise import evaluate_along, law_along, standard_normals
from grisaille.simulation.simulate import simulate
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas

INTERVAL = 0.95
"""Probability of the range in which measurements are looked for."""


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class PriorPredictive:
    """Unknowns drawn from their priors, and what they lead to; ``print`` says where the data lie among it.

    ``parameters`` has a row per draw, ``trajectories`` each experiment's simulations by name, with the dimensions
    ``draw`` and ``time``, measurement noise included in outputs; ``failures`` the draws that could not be simulated.
    """

    model_name: str
    experiments: tuple[Experiment, ...]
    parameters: pd.DataFrame
    trajectories: Mapping[str, xr.Dataset]
    failures: Mapping[int, str]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per experiment and output: how many of the measurements lie inside the central 95 % of the draws."""
        import pandas as pd

        rows = [row for e in self.experiments for row in self._rows(e)]
        return pd.DataFrame(rows, columns=["experiment", "output", "samples", "inside", "below", "above"])

    def _rows(self, experiment: Experiment) -> list[tuple[Any, ...]]:
        found, rows = self.trajectories[experiment.name or ""], []
        for output in experiment.outputs:
            times, values, _ = experiment.measurements(output)
            drawn = found[output].sel(time=times, method="nearest").values
            low, high = np.nanquantile(drawn, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2], axis=0)
            below, above = int((values < low).sum()), int((values > high).sum())
            rows.append((experiment.name, output, len(values), len(values) - below - above, below, above))
        return rows

    def plot(self, outputs: str | Iterable[str] | None = None, *, ax: Canvas | None = None) -> Figure:
        """Plot the central 50 % and 95 % of the draws, some of them, and the measurements.

        Parameters
        ----------
        outputs : names; by default all that are measured
        ax : axes to draw on instead of a new figure, one for each experiment and output

        Returns
        -------
        The figure.
        """
        from grisaille.posteriors.prior_plots import draw_prior_predictive

        return draw_prior_predictive(self, outputs, ax)

    def __str__(self) -> str:
        count, failed = len(self.parameters), len(self.failures)
        lines = [f"Prior predictive of {self.model_name}: {count} draws of {', '.join(self.parameters.columns)}"]
        for row in self.table.itertuples():
            lines.append(
                f"{row.experiment}, {row.output}: {row.inside} of {row.samples} measurements inside the central "
                f"{100 * INTERVAL:g} % of the draws, {row.below} below, {row.above} above"
            )
        if failed:
            reason, often = Counter(self.failures.values()).most_common(1)[0]
            lines.append(f"{failed} draws could not be simulated, {often} of them because: {reason}")
        return "\n".join(lines)

    __repr__ = __str__


def draw_prior_predictive_of(
    model: Model,
    experiments: Sequence[Experiment],
    unknowns: Sequence[Unknown],
    levels: Mapping[str, Prior | None],
    count: int,
    seed: int,
) -> PriorPredictive:
    """Return the prior predictive distribution of experiments.

    levels : priors of noise levels that the model leaves open, by name; the others have the default one
    """
    import pandas as pd

    flat = structure_of(model).model
    unknowns = [*unknowns, *_open_levels(flat, experiments, unknowns, levels)]
    drawn = draws_from_priors(unknowns, count, seed)
    failures: dict[int, str] = {}
    paths: dict[str, list[xr.Dataset]] = {e.name or "": [] for e in experiments}
    kept: dict[str, list[int]] = {name: [] for name in paths}
    for d in range(count):
        values = {u: float(drawn[u.name][d]) for u in unknowns}
        for experiment in experiments:
            try:
                path = _replica(model, flat, experiment, values, seed, d)
            except GrisailleError as error:
                failures[d] = str(error)
                continue
            paths[experiment.name or ""].append(path)
            kept[experiment.name or ""].append(d)
    if not all(paths.values()):
        raise EstimationError(
            f"No draw from the priors could be simulated. The first said: {failures[min(failures)]} Give narrower "
            f"priors or bounds."
        )
    table = pd.DataFrame({u.name: drawn[u.name] for u in unknowns}, index=pd.RangeIndex(count, name="draw"))
    found = {name: _stacked(rows, kept[name]) for name, rows in paths.items()}
    return PriorPredictive(flat.name, tuple(experiments), table, found, failures)


def _open_levels(
    flat: FlatModel,
    experiments: Sequence[Experiment],
    unknowns: Sequence[Unknown],
    priors: Mapping[str, Prior | None],
) -> list[Unknown]:
    """Return levels of noise that the model leaves open and nobody named; refuse priors of others."""
    named = {u.target for u in unknowns if u.kind == "noise"}
    opened = {
        f"noise({name})": name
        for name, output in flat.outputs.items()
        if output.noise is None and output.distribution is None and name not in named
    }
    strange = [n for n in priors if n not in opened]
    if strange:
        raise EstimationError(
            f"priors= names '{strange[0]}', which the model does not leave open; open are "
            f"{', '.join(opened) or 'no noise levels'}."
        )
    found = []
    for level, name in opened.items():
        measured = [e.measurements(name).values for e in experiments if name in e.outputs]
        spread = float(np.std(np.concatenate(measured))) if measured else 0.0
        law = priors.get(level) or (HalfCauchy(spread) if spread > 0 else None)
        if law is not None:
            found.append(Unknown(level, "noise", name, None, 1.0, 0.0, np.inf, True, "", law))
    return found


def _replica(
    model: Model, flat: FlatModel, experiment: Experiment, values: Mapping[Unknown, float], seed: int, draw: int
) -> xr.Dataset:
    """Return a simulation of an experiment at values of the unknowns, measured anew."""
    mine = {u: v for u, v in values.items() if u.applies_to(experiment.name or "")}
    of = {kind: {u.target: v for u, v in mine.items() if u.kind == kind} for kind in ("parameter", "start", "noise")}
    scales = {f"scale({u.target})": v for u, v in mine.items() if u.kind == "scale"}
    signals, hold = experiment.input_signals()
    own = _draw_seed(seed, draw)
    path = simulate(
        model, experiment.grid(), signals, {**experiment.constants, **of["parameter"], **scales},
        {**known_starts(experiment), **of["start"]}, hold=hold, realizations=1 if flat.disturbances else None, seed=own,
    )  # fmt: skip
    path = path.isel(realization=0, drop=True) if "realization" in path.dims else path
    found = evaluate_parameters(flat, {**experiment.constants, **of["parameter"]})
    known = dict(zip(found.names, found.values.tolist(), strict=True))
    measured = {name: _measured(path, flat, name, known, of["noise"].get(name), own) for name in flat.outputs}
    return path.assign({n: path[n].copy(data=v) for n, v in measured.items()})


def _measured(
    path: xr.Dataset, flat: FlatModel, name: str, known: Mapping[str, float], level: float | None, seed: int
) -> np.ndarray:
    output, y = flat.outputs[name], path[name].values
    z = standard_normals(seed, name, y.shape, 1, False)[..., 0]
    if output.distribution is not None:
        return draw_by_law(law_along(path, flat, name, known), z, name, path["time"].values)
    if level is not None:
        return np.asarray(y + level * z)
    return y if output.noise is None else np.asarray(y + evaluate_along(path, output.noise, known) * z)


def _draw_seed(seed: int, draw: int) -> int:
    from grisaille.study.seeds import run_seed

    return run_seed(seed, draw)


def _stacked(paths: Sequence[xr.Dataset], numbers: Sequence[int]) -> xr.Dataset:
    import xarray as xr

    names = [str(n) for n in paths[0].data_vars if paths[0][n].dims == ("time",)]
    data: dict[str, Any] = {
        n: (("draw", "time"), np.stack([p[n].values for p in paths]), paths[0][n].attrs) for n in names
    }
    return xr.Dataset(data, {"draw": list(numbers), "time": paths[0]["time"]})
