"""``simulate``: from a model to labelled trajectories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.calling import checked
from grisaille.compilation.requirement import require_compiled
from grisaille.errors import DataError
from grisaille.simulation.assertions import check_rows
from grisaille.simulation.plan_cache import cached_runs
from grisaille.simulation.posing import pose, warn_of_missed_starts
from grisaille.simulation.simulation_runs import IntegratorOptions

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.model.classes import Model


@checked
def simulate(
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
    progress: bool = False,
    realizations: int | None = None,
    seed: int = 0,
    reduce: Any = None,
    antithetic: bool = False,
    between: str = "linear",
    noise: bool = False,
    threads: int | None = None,
    device: str = "cpu",
) -> xr.Dataset:
    """Return trajectories of every variable, quantity and output at the requested times.

    Parameters
    ----------
    model : an instance of a ``gr.Model`` subclass.
    times : increasing; the first one is the instant at which the start holds, the others are answered.
    inputs : per input a number, an array on ``times``, ``(t, values)``, a Series or a function of time.
    parameters : values that replace the model's, by dotted name; ``"scale(w)"`` replaces the scale of a disturbance.
    start : demanded values of variables at ``times[0]``, or ``"steady"`` for a steady state.
    hold : ``"zoh"`` (default), ``"foh"`` or ``"spline"``, for all sampled inputs or per input.
    breaks : instants at which steps end and functions given as inputs may jump or bend. A function is looked at in
        16 384 instants; shorter features need this, or samples.
    sensitivities : names to differentiate by: parameters, ``"start(x)"``, ``"start(*)"``, ``"scale(w)"``; adds
        ``d(variable)`` with the dimension ``parameter`` for each variable.
    rtol, atol : tolerances of the error control; ``atol`` as a number (times each variable's nominal), or per variable.
    method : ``"auto"``, ``"explicit"``, ``"implicit"``; ``"frozen"`` for fixed steps that end on output times and
        kinks, with sensitivities that are exact for them (``"frozen-explicit"``, ``"frozen-implicit"``).
    step : largest step of the frozen discretisation; chosen from the error estimate when not given. With
        ``realizations``, largest cell of the grid on which disturbances are sampled; by default a twentieth of the
        time constant of the fastest one, or the mean output interval if that is shorter. Cells are cut into as many
        steps as the tolerance needs; under white noise, until halving them moves mean and standard deviation of every
        variable by less than 1 % of its standard deviation (``error_estimate`` is in units of that), or the run is
        refused.
    max_step : longest step of the adaptive methods; by default one output interval or a hundredth of the span,
        whichever is longer, so that short events are seen.
    max_steps : a run that needs more stops with a status; 5 000 000 by default.
    compiled : kept so that calls which pass it go on working: None and True mean the same, False is refused.
    strict : raise ``SimulationError`` (with ``.partial``) when a run cannot be completed, or breaks an assertion of a
        Modelica text; False returns what there is.
    progress : show a progress bar.
    realizations : how many paths of the disturbances to draw; None holds them at zero. Steps are frozen; methods are
        ``"auto"``, ``"frozen"``, ``"frozen-explicit"``, ``"frozen-implicit"`` and ``"fused"`` (implicit unknowns solved
        inside explicit steps, as on graphics processors).
    seed : of the paths. A path depends on the seed, its number and the disturbance's name only, so it is the same for
        every number of realizations, every parameter value and every number of threads.
    reduce : None keeps every realization. ``"mean"``, ``"variance"`` or ``"quantiles"`` gives that statistic instead,
        under the variable's name; a list of them, under ``x_mean``, ``x_variance``, ``x_quantile``. Reducer objects
        (``grisaille.simulation.ensembles.reducers``) are taken too.
    antithetic : innovations of realization 2m + 1 are minus those of 2m.
    between : disturbances between grid points: ``"linear"``, ``"spline"``, ``"exact"`` (drawn from their own bridge).
        Lines lose a part of E w², 1.6 % for first-order noise at the default step, less for smoother noise; it is
        told as ``linear_loss``, falls with ``step=``, and is zero with ``"exact"``.
    noise : add measurement noise to the outputs.
    threads : of ensembles; all processors by default.
    device : of ensembles: ``"cpu"``; ``"cuda"``, a graphics processor, with the same random numbers and steps
        (``"cuda-single"`` with steps in single precision); ``"auto"``, the faster of the first two, told as ``device``.

    Returns
    -------
    ``xarray.Dataset`` with dimension ``time``, after ``realization`` when realizations are asked for and kept;
    attributes hold units, the solver's statistics and ``status``.

    Examples
    --------
    With the tank of ``help(gr.fit)``:

    >>> result = gr.simulate(Tank(), np.linspace(0.0, 4.0, 5), parameters={"k": 0.5, "q": 2.0})
    >>> result["h"].values.round(3)
    array([0.5  , 1.877, 2.712, 3.219, 3.526])
    """
    require_compiled(compiled)
    if realizations is not None:
        from grisaille.simulation.ensembles.ensemble import simulate_ensemble
        from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions

        posed = pose(model, times, inputs, parameters, start, hold=hold, sensitivities=sensitivities, breaks=breaks)
        options = EnsembleOptions(
            realizations=realizations, seed=seed, reduce=reduce, antithetic=antithetic, between=between, step=step,
            rtol=rtol, method=method, threads=threads, strict=strict, device=device,
            may_reduce=True,
        )  # fmt: skip
        warn_of_missed_starts(posed)
        return simulate_ensemble(posed, options, noise=noise, strict=strict, progress=progress)
    if reduce is not None:
        raise DataError(f"reduce={reduce!r} is taken over realizations: give realizations= as well.")
    if device.startswith("cuda"):
        raise DataError(f"device={device!r} runs many realizations at once: give realizations= as well.")
    solver = IntegratorOptions(rtol, atol, method, step, max_step, max_steps)
    runs = cached_runs(model, times, inputs, hold, breaks, solver, sensitivities)
    finished = runs.run(parameters, start, progress=progress)
    result = runs.labelled(finished, strict=strict)
    point = finished.prepared.point
    warn_of_missed_starts(point)
    check_rows(model, result, point.known, rtol, strict=strict)
    if noise:
        from grisaille.simulation.measurement_noise import with_noise

        return with_noise(result, point.structure.model, point.known, seed)
    return result
