"""``simulate``: from a model to labelled trajectories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.compilation.kernel import Kernel, build_kernel
from grisaille.compilation.task import Status, Task
from grisaille.errors import DataError, ModelError, SimulationError
from grisaille.simulation.dataset import as_dataset
from grisaille.simulation.directions import Directions, resolve_directions
from grisaille.simulation.frozen import choose_step
from grisaille.simulation.integration import integrate
from grisaille.simulation.outcome import describe
from grisaille.simulation.progress import progress_of
from grisaille.simulation.signals import SignalTable, make_table
from grisaille.simulation.static import solve_static
from grisaille.simulation.switching import find_switches, refuse_jumps
from grisaille.structure.initialization import Initializer, Start
from grisaille.structure.parameters import ParameterValues, evaluate_parameters
from grisaille.structure.prepared import structure_of
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.model.classes import Model

METHODS = ("auto", "explicit", "implicit", "frozen", "frozen-explicit", "frozen-implicit")


@dataclass(frozen=True)
class Prepared:
    """Everything a run needs before the first step."""

    structure: Structure
    values: ParameterValues
    table: SignalTable
    initializer: Initializer
    start: Start
    directions: Directions
    kernel: Kernel
    task: Task


def simulate(
    model: Model,
    times: Sequence[float] | np.ndarray,
    inputs: Mapping[str, Any] | None = None,
    parameters: Mapping[str, float] | None = None,
    start: Mapping[str, float] | str | None = None,
    *,
    hold: Mapping[str, str] | str | None = None,
    sensitivities: Sequence[object] = (),
    rtol: float = 1e-6,
    atol: float | Mapping[str, float] | None = None,
    method: str = "auto",
    step: float | None = None,
    max_step: float | None = None,
    max_steps: int | None = None,
    compiled: bool | None = None,
    strict: bool = True,
    progress: bool = False,
) -> xr.Dataset:
    """Trajectories of every variable, quantity and output at the requested times.

    Parameters
    ----------
    model : an instance of a ``gr.Model`` subclass. Disturbances are held at zero.
    times : increasing; the first one is the instant at which the start holds, the others are answered.
    inputs : per input a number, an array on ``times``, ``(t, values)``, a Series or a function of time.
    parameters : values that replace the model's, by dotted name.
    start : demanded values of variables at ``times[0]``, or ``"steady"`` for a steady state.
    hold : ``"zoh"`` (default), ``"foh"`` or ``"spline"``, for all sampled inputs or per input.
    sensitivities : names to differentiate by: parameters, ``"start(x)"``, ``"start(*)"``; adds ``d(variable)`` with the
        dimension ``parameter`` for each variable.
    rtol, atol : tolerances of the error control; ``atol`` as a number (times each variable's nominal), or per variable.
    method : ``"auto"``, ``"explicit"``, ``"implicit"``; ``"frozen"`` for fixed steps that end on output times and
        kinks, with sensitivities that are exact for them (``"frozen-explicit"``, ``"frozen-implicit"``).
    step : largest step of the frozen discretisation; chosen from the error estimate when not given.
    max_step : longest step of the adaptive methods; by default one output interval or a hundredth of the span,
        whichever is longer, so that short events are seen.
    max_steps : a run that needs more stops with a status; 5 000 000 compiled, 200 000 interpreted.
    compiled : None compiles where a compiler is found; True insists; False interprets.
    strict : raise ``SimulationError`` (with ``.partial``) when a run cannot be completed; False returns what there is.
    progress : show a progress bar.

    Returns
    -------
    ``xarray.Dataset`` with dimension ``time``; attributes hold units, the solver's statistics and ``status``.
    """
    prepared = prepare(
        model, times, inputs, parameters, start, hold=hold, sensitivities=sensitivities, rtol=rtol, atol=atol,
        method=method, max_step=max_step, max_steps=max_steps, compiled=compiled,
    )  # fmt: skip
    solver = _run(prepared, method, step, progress)
    task, system = prepared.task, prepared.structure.system
    sentence = describe(task, system, solver)
    result = as_dataset(prepared.structure, task, prepared.directions.names, prepared.start, solver, sentence)
    if task.status != Status.DONE and strict:
        raise SimulationError(f"The simulation of {prepared.structure.model.name} stopped: {sentence}", result)
    return result


def prepare(
    model: Model,
    times: Sequence[float] | np.ndarray,
    inputs: Mapping[str, Any] | None,
    parameters: Mapping[str, float] | None,
    start: Mapping[str, float] | str | None,
    *,
    hold: Mapping[str, str] | str | None,
    sensitivities: Sequence[object],
    rtol: float,
    atol: float | Mapping[str, float] | None,
    method: str,
    max_step: float | None,
    max_steps: int | None,
    compiled: bool | None,
) -> Prepared:
    """Structure, kernel, consistent start and task of one run; every check of the arguments."""
    at = _checked_times(times)
    if method not in METHODS:
        raise DataError(f"method is {method!r}; it must be one of {', '.join(map(repr, METHODS))}.")
    if not 0 < rtol < 1:
        raise DataError(f"rtol is {rtol!r}; give a number between 0 and 1, such as 1e-6.")
    flat = structure_of(model).model
    values = evaluate_parameters(flat, parameters)
    structure = structure_of(model, values.values)
    system = structure.system
    defaults = {n: i.default for n, i in flat.inputs.items()}
    switches, bends = find_switches(system, values.values, at)
    refuse_jumps(system, switches, values.values)
    table = make_table(system.signals, inputs or {}, hold, at, defaults, switches, bends)
    initializer = Initializer(structure)
    demands, steady = _demands(structure, start)
    if isinstance(sensitivities, str):
        raise ModelError(f"sensitivities= takes a list of names: [{sensitivities!r}].")
    directions = resolve_directions(structure, values, sensitivities)
    u = table.at(float(at[0]))
    found = initializer.solve(float(at[0]), u, values.values, demands, steady=steady)
    kernel = build_kernel(system, sensitive=bool(directions.names), compiled=compiled)
    # differentiating by a start makes it a demand, at the value it has
    now = initializer.observe(float(at[0]), found, u, values.values) if directions.starts else {}
    demands = {**{n: now[n] for n in directions.starts}, **demands}
    task = Task.create(
        kernel, float(at[0]), float(at[-1]), p=values.values, x=found.x, z=found.z, times=at,
        breaks=table.breaks, coef=table.coef, kink=table.kink, dp=directions.parameters, rtol=rtol,
        atol=_absolute(structure, initializer, rtol, atol), nominal=initializer.nominal[: system.nx],
        max_steps=_most_steps(kernel, max_steps), hmax=_longest_step(at, max_step),
    )  # fmt: skip
    if directions.names:
        sensitivity = initializer.sensitivity(
            float(at[0]), u, values.values, found, directions.parameters, demands, directions.starts, steady=steady
        )
        task.sx[:], task.sz[:] = sensitivity.sx, sensitivity.sz
    return Prepared(structure, values, table, initializer, found, directions, kernel, task)


def _run(prepared: Prepared, method: str, step: float | None, progress: bool) -> str:
    system, task = prepared.structure.system, prepared.task
    if system.nx == 0:
        solve_static(prepared.initializer, prepared.kernel, prepared.table, task, prepared.directions)
        return "algebraic"
    if step is not None and not (np.isfinite(step) and step > 0):
        raise DataError(f"step is {step!r}; give a positive number.")
    if step is not None and not method.startswith("frozen"):
        raise DataError("step= fixes the steps of method='frozen'; the adaptive methods choose their own (see rtol).")
    with progress_of(task, prepared.structure.model.name, progress) as on_slice:
        if method.startswith("frozen"):
            return choose_step(prepared.kernel, task, method, step, on_slice)
        return integrate(prepared.kernel, task, method, on_slice)


def _checked_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    try:
        at = np.asarray(times, dtype=float)
    except (TypeError, ValueError):
        raise DataError("times must be numbers, such as np.linspace(0, 10, 101).") from None
    if at.ndim != 1 or at.size == 0:
        raise DataError("times must be a one-dimensional array with the start first, such as np.linspace(0, 10, 101).")
    bad = np.flatnonzero(~np.isfinite(at))
    if bad.size:
        raise DataError(f"times holds {at[bad[0]]} at position {bad[0]}; every time must be finite.")
    back = np.flatnonzero(np.diff(at) <= 0)
    if back.size:
        k = int(back[0])
        raise DataError(f"times must increase: position {k} is {at[k]:g} and position {k + 1} is {at[k + 1]:g}.")
    return at


def _most_steps(kernel: Kernel, wanted: int | None) -> int:
    if wanted is not None:
        if isinstance(wanted, bool) or int(wanted) != wanted or wanted < 1:
            raise DataError(f"max_steps is {wanted!r}; give a whole number above zero.")
        return int(wanted)
    return 5_000_000 if kernel.is_compiled else 200_000


def _longest_step(at: np.ndarray, wanted: float | None) -> float:
    if wanted is not None:
        if not (np.isfinite(wanted) and wanted > 0):
            raise DataError(f"max_step is {wanted!r}; give a positive number.")
        return float(wanted)
    return float(max(np.diff(at).max(), (at[-1] - at[0]) / 100)) if at.size > 1 else 0.0


def _demands(structure: Structure, start: Mapping[str, float] | str | None) -> tuple[dict[str, float], bool]:
    if start is None:
        return {}, False
    if isinstance(start, str):
        if start != "steady":
            raise DataError(f"start is {start!r}; give a dict of variables, or 'steady'.")
        return {}, True
    demands = {}
    for name, value in start.items():
        if name not in structure.model.variables:
            import difflib

            near = difflib.get_close_matches(str(name), list(structure.model.variables), n=3, cutoff=0.3)
            raise ModelError(
                f"start= names '{name}', which is not a variable of {structure.model.name}."
                f"{' Nearest: ' + ', '.join(near) + '.' if near else ''}"
            )
        number = float(value)
        if not np.isfinite(number):
            raise DataError(f"start= gives {name} = {number}; give a finite number.")
        demands[name] = number
    return demands, False


def _absolute(
    structure: Structure, initializer: Initializer, rtol: float, atol: float | Mapping[str, float] | None
) -> np.ndarray:
    """Absolute tolerance per entry of (x, z); default 1e-3 · rtol · nominal."""
    nominal = initializer.nominal
    if atol is None:
        return 1e-3 * rtol * nominal
    if not isinstance(atol, Mapping):
        if not (np.isfinite(atol) and atol > 0):
            raise DataError(f"atol is {atol!r}; give a positive number.")
        return float(atol) * nominal
    system = structure.system
    result = 1e-3 * rtol * nominal
    names = [_inner(n) for n in (*system.state_names, *system.implicit_names)]
    for name, value in atol.items():
        if name not in structure.model.variables:
            raise DataError(f"atol= names '{name}', which is not a variable of {structure.model.name}.")
        result[[n == name for n in names]] = float(value)
    return result


def _inner(text: str) -> str:
    return text[4:-1].split(",")[0] if text.startswith("der(") else text
