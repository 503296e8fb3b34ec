"""``Simulator``: one setting, simulated again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.calling import checked, checked_methods
from grisaille.compilation.requirement import require_compiled
from grisaille.errors import DataError, GrisailleError
from grisaille.model.names import suggestion
from grisaille.simulation.posing import SimulationSetup
from grisaille.simulation.simulation_runs import FinishedRun, IntegratorOptions, SimulationRuns
from grisaille.simulation.vector_names import by_name, names_of, spread_over_elements

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.model.classes import Model


@checked_methods
class Simulator:
    """A model with times and inputs that is simulated at one set of parameters after another.

    Structure, compiled code, signals and labels are prepared once, so that a call costs little beside the integration:
    what sliders and one's own optimizers need. The numbers are those of ``gr.simulate`` with the same arguments.

    Parameters
    ----------
    model, times, inputs, hold, breaks, rtol, atol, method, step, max_step, max_steps, compiled : as in ``gr.simulate``;
        read now: what is done to an array later does not matter.
    parameters : values that replace the model's in every call, unless the call gives others.
    start : the same for demanded starts, or ``"steady"``.
    sensitivities : names to differentiate by, as in ``gr.simulate``.
    strict : raise ``SimulationError`` (with ``.partial``) when a run cannot be completed; False returns what there is.

    Examples
    --------
    With the tank of ``help(gr.fit)``:

    >>> tank = gr.Simulator(Tank(), np.linspace(0.0, 4.0, 5), parameters={"q": 2.0})
    >>> tank({"k": 0.5})["h"].values.round(3)
    array([0.5  , 1.877, 2.712, 3.219, 3.526])
    >>> tank.values({"k": 0.4})["h"].round(3)
    array([0.5  , 1.984, 2.978, 3.645, 4.091])
    """

    def __init__(
        self,
        model: Model,
        times: Sequence[float] | np.ndarray,
        inputs: Mapping[str, Any] | None = None,
        parameters: Mapping[str, float] | None = None,
        start: Mapping[str, float] | str | None = None,
        *,
        hold: Mapping[str, str] | str | None = None,
        breaks: Sequence[float] | np.ndarray = (),
        sensitivities: Sequence[object] = (),
        rtol: float = 1e-6,
        atol: float | Mapping[str, float] | None = None,
        method: str = "auto",
        step: float | None = None,
        max_step: float | None = None,
        max_steps: int | None = None,
        compiled: bool | None = None,
        strict: bool = True,
    ) -> None:
        require_compiled(compiled)
        atol = dict(atol) if isinstance(atol, Mapping) else atol
        solver = IntegratorOptions(rtol, atol, method, step, max_step, max_steps)
        setting = SimulationSetup(model, times, inputs, hold=hold, breaks=breaks)
        self._runs = SimulationRuns(setting, solver, list(names_of(model, "sensitivities", sensitivities)))
        self._parameters = by_name(model, "parameters", parameters, spread_over_elements)
        self._start = start if isinstance(start, str) else by_name(model, "start", start, spread_over_elements)
        self._strict = strict
        setting.read(own=True)

    @property
    def model(self) -> Model:
        """Return the model that is simulated."""
        return self._runs.setting.model

    @property
    def times(self) -> np.ndarray:
        """Instants that are answered, the start first."""
        return self._runs.setting.times.copy()

    @checked
    def __call__(
        self, parameters: Mapping[str, float] | None = None, start: Mapping[str, float] | str | None = None
    ) -> xr.Dataset:
        """Return trajectories, as ``gr.simulate`` gives them.

        Parameters
        ----------
        parameters : values by name, beside or in place of those that were given when the simulator was made.
        start : demanded starts likewise, or ``"steady"``.
        """
        return self._runs.labelled(self._run(parameters, start), strict=self._strict)

    def values(
        self, parameters: Mapping[str, float] | None = None, start: Mapping[str, float] | str | None = None
    ) -> dict[str, np.ndarray]:
        """Return the same numbers without labels, name → array over ``times``: the quickest way.

        Parameters
        ----------
        parameters, start : as in a call.

        Returns
        -------
        A dict; derivatives, where ``sensitivities`` were asked for, under ``d(name)`` with one column per name. A run
        that stopped early, which ``strict=False`` allows, has fewer rows.
        """
        finished = self._run(parameters, start)
        if self._strict:
            self._runs.demand(finished)
        return self._runs.labels(finished).values(finished.task)

    def gradient(
        self,
        weights: Mapping[str, Any] | Callable[[dict[str, np.ndarray]], Mapping[str, Any]],
        parameters: Mapping[str, float] | None = None,
        start: Mapping[str, float] | str | None = None,
        *,
        by: Sequence[object],
    ) -> dict[str, float]:
        """Return derivatives of Σ weights · values by many names at once, for the price of a few simulations.

        It is exact for the frozen steps, which ``method="frozen"`` takes; their length is ``step``, or that which suits
        the first call. Where a model has dozens of unknowns this is the way to their gradient: ``sensitivities`` cost
        a simulation for each. So does this where equations bend inside steps (``abs``, ``maximum``, knots of tables of
        states) so that the way back and a forward run, made to compare, differ.

        Parameters
        ----------
        weights : name → numbers over ``times``, for variables, quantities and outputs; or a function that makes them of
            the values, such as ``lambda v: {"y": v["y"] - measured}`` for the gradient of half a sum of squares.
        parameters, start : as in a call.
        by : names to differentiate by: parameters, ``"start(x)"``, ``"start(*)"``, a vector, patterns with a star.

        Returns
        -------
        Name → derivative.

        Examples
        --------
        With the tank of ``help(gr.fit)``, by how much the last level moves:

        >>> tank = gr.Simulator(Tank(), np.linspace(0.0, 4.0, 5), parameters={"q": 2.0}, method="frozen")
        >>> moves = tank.gradient({"h": [0, 0, 0, 0, 1]}, {"k": 0.5}, by=["k", "q"])
        >>> {name: round(value, 3) for name, value in moves.items()}
        {'k': -4.943, 'q': 1.729}
        """
        setting = self._runs.setting
        names, count = setting.structure.system.observed_names, len(setting.times)

        def weigh(rows: np.ndarray) -> np.ndarray:
            given = weights({n: rows[:, k].copy() for k, n in enumerate(names)}) if callable(weights) else weights
            return as_weights(setting.structure.model.name, names, count, given)

        return self._runs.gradient(*self._merged(parameters, start), by, weigh)

    def __repr__(self) -> str:
        setting = self._runs.setting
        span = f"{setting.times[0]:g} to {setting.times[-1]:g}"
        return f"<Simulator of {setting.structure.model.name}: {len(setting.times)} times, {span}>"

    def _run(self, parameters: Any, start: Any) -> FinishedRun:
        return self._runs.run(*self._merged(parameters, start))

    def _merged(self, parameters: Any, start: Any) -> tuple[dict[str, Any], Any]:
        """Return what is given to a call beside or in place of what the simulator was given."""
        if start is None:
            start = self._start
        elif not isinstance(start, str) and not isinstance(self._start, str):
            start = {**self._start, **by_name(self.model, "start", start, spread_over_elements)}
        return {**self._parameters, **by_name(self.model, "parameters", parameters, spread_over_elements)}, start


def as_weights(model: str, names: Sequence[str], count: int, given: Any) -> np.ndarray:
    """Return (times, names), zero for names that are not given."""
    if not isinstance(given, Mapping):
        raise DataError(f"weights is {type(given).__name__}; give numbers over times by name, such as {{'y': [...]}}.")
    found = np.zeros((count, len(names)))
    for name, values in given.items():
        if name not in names:
            raise DataError(f"weights names {name!r}, which {model} does not have. {suggestion(str(name), names)}")
        try:
            row = np.asarray(values, dtype=float)
        except (TypeError, ValueError, GrisailleError):
            row = np.full(1, np.nan)
        if row.shape not in ((), (count,)) or not np.isfinite(row).all():
            raise DataError(
                f"weights of '{name}' must be {count} finite numbers, one for each of times, or one for all."
            )
        found[:, names.index(name)] = row
    return found
