"""``gr.sensitivity``: how outputs change with parameters, before anything is fitted.

    s_j(t) = ∂y(t) / ∂ log p_j = p_j ∂y/∂p_j                        in the unit of y, per 100 % of the parameter
    δ_j = √( mean over samples of (s_j / scale of y)² )              which parameters matter
    γ = 1 / √( smallest eigenvalue of S̃ᵀS̃ ),  S̃ = S, columns normalised  whether they can be told apart

Scales of outputs are their declared noise, of outputs with a law 1/√I with the information I that one sample has about
its location, or else their spread over the run. γ is the collinearity index of R. Brun,
P. Reichert, H. Künsch, Water Resour. Res. 37 (2001) 1015: above 10 to 15, a change of one parameter can be made up for
by the others. Derivatives are those of the simulation, not differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.calling import checked, checked_methods
from grisaille.compilation.requirement import require_compiled
from grisaille.errors import DataError, EstimationError
from grisaille.estimation.experiment_terms import ExperimentTerm, build_experiment_term, start_guesses, trial_of
from grisaille.estimation.measurements.output_law import OutputLaw, output_laws
from grisaille.estimation.noise import NoiseLevel, noise_levels
from grisaille.estimation.unknowns import resolve_unknowns, wanted_names
from grisaille.experiment.times.dating import with_dates
from grisaille.model.classes import Model
from grisaille.model.expression import Constant
from grisaille.model.flat import FlatModel
from grisaille.simulation.runner import Prediction
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.reduction import Structure
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas
    from grisaille.experiment.experiment import Experiment

MIN_SENSITIVITY = 1e-9
COLLINEARITY_THRESHOLD = 10.0


@dataclass(frozen=True)
@checked_methods
class Sensitivity:
    """Scaled sensitivities of the outputs of one experiment."""

    model_name: str
    data: xr.Dataset
    """One variable per output over (time, parameter): ∂y/∂ log p, in the unit of the output."""
    table: pd.DataFrame
    """One row per parameter, the most influential first: value, scale, size (δ), largest, and δ by output."""
    scaled: pd.DataFrame
    """All samples by parameter, divided by the scale of their output; what indices are computed from."""
    scatter: tuple[str, ...] = ()
    """Parameters that move no prediction and stand in the law or the noise of an output: residuals tell them."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the most influential first."""
        return tuple(map(str, self.table.index))

    def plot(self, parameters: Iterable[str] | None = None, *, ax: Canvas | None = None) -> Figure:
        """Plot a panel per output with a line per parameter, the most influential first.

        parameters : which, all by default
        ax : axes to draw on instead of a new figure, one per output
        """
        from grisaille.assessment.plotting import draw_sensitivity

        return draw_sensitivity(self, parameters, ax)

    def collinearity(self, parameters: Iterable[str] | None = None) -> float:
        """Return the index γ of some parameters; 1 is orthogonal, above 10 poor.

        parameters : which; all that move an output by default
        """
        names = self._alive() if parameters is None else list(parameters)
        for name in names:
            if name not in self.scaled:
                raise EstimationError(f"There is no sensitivity to '{name}'; there are {', '.join(self.parameters)}.")
        return _index(self.scaled[names].to_numpy())

    @property
    def pairs(self) -> pd.DataFrame:
        """Return the index of every two parameters."""
        import pandas as pd

        names = self._alive()
        values = [[1.0 if a == b else self.collinearity([a, b]) for b in names] for a in names]
        return pd.DataFrame(values, index=names, columns=names)

    def _alive(self) -> list[str]:
        return [str(n) for n in self.table.index[self.table["size"] > MIN_SENSITIVITY * self.table["size"].max()]]

    def __str__(self) -> str:
        shown = self.table.to_string(float_format=lambda v: f"{v:.4g}")
        return "\n".join([f"sensitivity of {self.model_name}: outputs by log parameter", shown, *self._remarks()])

    __repr__ = __str__

    def _remarks(self) -> list[str]:
        alive = self._alive()
        dead = [n for n in self.parameters if n not in alive]
        notes = []
        if self.scatter:
            notes.append(f"• scatter of outputs alone: {', '.join(self.scatter)}; predictions do not depend on it.")
        if unfelt := [n for n in dead if n not in self.scatter]:
            notes.append(f"• no output depends on {', '.join(unfelt)}.")
        if len(alive) > 1:
            gamma = self.collinearity()
            poor = (
                f"; above {COLLINEARITY_THRESHOLD:g}: they cannot all be distinguished"
                if gamma > COLLINEARITY_THRESHOLD
                else ""
            )
            notes.append(
                f"• collinearity index of {'the other' if dead else 'all'} {len(alive)}: {_shown(gamma)}{poor}."
            )
        pairs = self.pairs.to_numpy()
        for i in range(len(alive)):
            for j in range(i):
                if pairs[i, j] > COLLINEARITY_THRESHOLD:
                    notes.append(f"• {alive[j]} and {alive[i]} move the outputs alike (index {_shown(pairs[i, j])}).")
        return notes


@checked
def sensitivity(
    model: Model,
    experiment: Any,
    parameters: Iterable[object] | None = None,
    *,
    rtol: float = 1e-7,
    compiled: bool | None = None,
) -> Sensitivity:
    """Return scaled sensitivities of the outputs of an experiment, at the values of the model.

    A parameter whose value is zero is scaled by one instead.

    Parameters
    ----------
    model : an instance of a ``gr.Model`` subclass
    experiment : its inputs, times, constants and starts; what was measured plays no part
    parameters : names as in ``gr.fit`` (``"k"``, ``"legs[*].m"``, ``"start(x)"``); None: all that are plain numbers
    rtol, compiled : as in ``gr.simulate``

    Returns
    -------
    Sensitivities that print as a ranking: ``table``, ``collinearity()``, ``pairs``, ``data``, ``plot()``.

    Examples
    --------
    With the tank and the data of ``help(gr.fit)``:

    >>> gr.sensitivity(Tank(), data).parameters
    ('q', 'k')
    """
    require_compiled(compiled)
    if not hasattr(experiment, "input_signals"):
        raise DataError(f"sensitivity takes one gr.Experiment, not {type(experiment).__name__}.")
    if not experiment.name:
        experiment = experiment.replace(name="experiment")
    experiment.check(model)
    structure = structure_of(model)
    names = _numbers(structure, experiment) if parameters is None else list(parameters)
    unknowns = resolve_unknowns(structure, [experiment], wanted_names(structure, names))
    outputs = tuple(experiment.outputs)
    noise = noise_levels(structure.model, outputs)
    declared = {n: law for n, law in output_laws(structure.model, outputs).items() if _has_law(structure, n)}
    noise = {**noise, **{n: LocationScale(n, None, law) for n, law in declared.items()}}
    case = build_experiment_term(experiment, *trial_of(model, experiment, unknowns), noise, rtol)
    unknowns = _valued(structure, unknowns, case)
    theta = np.array([u.guess for u in unknowns])
    prediction = case.predict(theta, sensitive=True)
    if not prediction.completed:
        failed = "There are no derivatives here" if prediction.coincidence else "The model cannot be simulated"
        raise EstimationError(f"{failed}: {prediction.failure}")
    size = np.where(theta == 0, 1.0, np.abs(theta))
    order = np.argsort(case.unknowns)
    slopes = prediction.sy[:, :, order] * size
    scales = {n: _output_scale(structure, case, prediction, noise[n], n, theta, unknowns) for n in experiment.outputs}
    found = _assemble(structure, case, unknowns, size, slopes, scales)
    alive, inside = found._alive(), _in_scatter(structure.model, outputs)
    return replace(found, scatter=tuple(n for n in found.parameters if n not in alive and n in inside))


@dataclass(frozen=True)
class LocationScale(NoiseLevel):
    """How far the location of a law is known from one sample, 1/√I; the standard deviation, if the law is normal."""

    law: OutputLaw | None = None

    @property
    def known(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        assert self.law is not None
        return *self.law.needs, self.output

    def at(self, p: np.ndarray, observed: np.ndarray, t: np.ndarray) -> np.ndarray:
        assert self.law is not None
        columns = {n: observed[:, [self.needs.index(n) for n in f.needs]] for n, f in self.law.formulas.items()}
        numbers = {n: f.values(p, columns[n], t) for n, f in self.law.formulas.items()}
        filled = self.law.filled(observed[:, -1], numbers)
        information = filled.information((filled.location_path,))[:, 0, 0]
        if not (np.isfinite(information).all() and (information > 0).all()):
            k = int(np.flatnonzero(~(np.isfinite(information) & (information > 0)))[0])
            raise EstimationError(
                f"A sample of '{self.output}' says nothing about a prediction of {observed[k, -1]:g} by the law "
                f"{type(self.law.law).__name__}, at t = {t[k]:g}: its sensitivity has no scale there. Give the "
                f"parameters values that the law allows, or leave these times out."
            )
        return np.asarray(1 / np.sqrt(information))


def _in_scatter(model: FlatModel, outputs: Sequence[str]) -> set[str]:
    """Return the parameters that laws of outputs and formulas of their noise contain."""
    formulas = [f for law in output_laws(model, outputs).values() for f in law.formulas.values()]
    return {name for formula in formulas for name in formula.parameters}


def _has_law(structure: Structure, output: str) -> bool:
    return structure.model.outputs[output].distribution is not None


def _numbers(structure: Structure, experiment: Experiment) -> list[str]:
    listed = [
        n
        for n, p in structure.model.parameters.items()
        if isinstance(p.value, Constant | int | float)
        and n not in experiment.constants
        and n not in structure.model.discretes
    ]
    if not listed:
        raise EstimationError(f"{structure.model.name} has no parameter that is a plain number.")
    return listed


def _valued(structure: Structure, unknowns: tuple[Unknown, ...], case: ExperimentTerm) -> tuple[Unknown, ...]:
    """Return unknowns at the values of the model and of the consistent start."""
    values = evaluate_parameters(structure.model, case.experiment.constants)
    known = [replace(u, guess=values[u.target]) if u.kind == "parameter" else u for u in unknowns]
    return start_guesses(known, [(case.trial, case.unknowns)])


def _output_scale(
    structure: Structure,
    case: ExperimentTerm,
    prediction: Prediction,
    level: Any,
    name: str,
    theta: np.ndarray,
    unknowns: Any,
) -> np.ndarray:
    """Return the scale of outputs for each row of the grid."""
    y = prediction.y[:, case.column(name)]
    if not level.known:
        spread = float(np.std(y))
        return np.full(len(y), spread if spread > 0 else 1.0)
    p = case.trial.at(case.own(theta)).p
    return np.asarray(level.at(p, prediction.y[:, [case.column(n) for n in level.needs]], case.grid))


def _assemble(
    structure: Structure,
    case: ExperimentTerm,
    unknowns: tuple[Unknown, ...],
    size: np.ndarray,
    slopes: np.ndarray,
    scales: dict[str, np.ndarray],
) -> Sensitivity:
    import pandas as pd
    import xarray as xr

    names = [u.name for u in unknowns]
    flat = structure.model
    data = xr.Dataset(
        {n: (("time", "parameter"), slopes[:, case.column(n)], {"units": flat.outputs[n].unit}) for n in scales},
        {"time": ("time", case.grid), "parameter": names},
        {"model": flat.name, "experiment": case.name, "static": int(case.experiment.is_static)},
    )
    data = with_dates(data, case.experiment)
    stacked = {n: slopes[:, case.column(n)] / scale[:, None] for n, scale in scales.items()}
    scaled = pd.DataFrame(np.concatenate(list(stacked.values())), columns=names)
    columns: dict[str, Any] = {
        "value": [u.guess for u in unknowns], "scale": size,
        "size": np.sqrt((scaled**2).mean()).to_numpy(), "largest": scaled.abs().max().to_numpy(),
    }  # fmt: skip
    if len(stacked) > 1:
        columns |= {f"size({n})": np.sqrt(np.mean(s**2, axis=0)) for n, s in stacked.items()}
    table = pd.DataFrame(columns, index=pd.Index(names, name="parameter"))
    return Sensitivity(flat.name, data, table.sort_values("size", ascending=False, kind="stable"), scaled)


def _index(columns: np.ndarray) -> float:
    norms = np.linalg.norm(columns, axis=0)
    if not len(norms) or (norms == 0).any():
        return np.inf
    smallest = float(np.linalg.svd(columns / norms, compute_uv=False)[-1]) if len(columns) >= len(norms) else 0.0
    return 1 / smallest if smallest > 1e-12 else np.inf


def _shown(gamma: float) -> str:
    return f"{gamma:.3g}" if np.isfinite(gamma) else "∞"
