"""Studies of a problem folder: which of the three, with which settings.

multistart    the same data from other starts
monte-carlo   other data from the model, at the fit (or at the guess)
bootstrap     the fit's own data with its noise drawn anew
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError
from grisaille.laws import SmoothCurve
from grisaille.model.declarations import Disturbance
from grisaille.model.names import suggestion
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    from grisaille.bound_experiment.unknown import Unknown
    from grisaille.model.classes import Model
    from grisaille.problem.folder import Problem
    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille.results.multistart import Multistart

STUDY_KINDS = ("monte-carlo", "multistart", "bootstrap")
DEFAULT_RUNS = 100
RUN_OPTIONS = ("seed", "store", "executor", "progress")
STUDY_OPTIONS = {
    "monte-carlo": ("truth", "noise"), "multistart": ("sampling", "ranges"), "bootstrap": ("resampling", "block"),
}  # fmt: skip


def run_study(problem: Problem, settings: dict[str, Any], changes: dict[str, Any]) -> Multistart | MonteCarlo:
    """Run the study; options of its execution in ``changes`` go to the engine, the rest replaces settings."""
    kind = settings.get("kind", "monte-carlo")
    if kind not in STUDY_KINDS:
        raise DataError(f"kind is {kind!r}; give {', '.join(STUDY_KINDS[:-1])} or {STUDY_KINDS[-1]}.")
    known = (*RUN_OPTIONS, *STUDY_OPTIONS[kind])
    for name in changes:
        if name not in known:
            raise DataError(f"'{name}' is not a setting of {kind} studies. {suggestion(name, known)}")
    chosen = {**settings, **{k: v for k, v in changes.items() if k in STUDY_OPTIONS[kind] and v is not None}}
    running = {k: v for k, v in changes.items() if k in RUN_OPTIONS and v is not None}
    running.setdefault("seed", problem.seed)
    runs = int(settings.get("runs", DEFAULT_RUNS))
    if kind == "multistart":
        return _multistart(problem, runs, chosen, running)
    return (_bootstrap if kind == "bootstrap" else _monte_carlo)(problem, runs, chosen, running)


def _multistart(problem: Problem, runs: int, settings: dict[str, Any], running: dict[str, Any]) -> Multistart:
    from grisaille.results.multistart import multistart

    arguments = {k: v for k, v in problem._arguments().items() if k != "guess"}
    options = {k: settings[k] for k in ("sampling", "ranges") if k in settings}
    _require_ranges(problem, settings.get("ranges", {}))
    return multistart(**arguments, **options, **running, starts=runs)


def _require_ranges(problem: Problem, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Starts can only be drawn between two numbers."""
    from grisaille.estimators.fitting import find_unknowns

    found = find_unknowns(
        problem.model, problem.experiments, list(problem.estimate), bounds=problem.bounds or None,
        priors=problem.priors or None, local=problem.local, method=problem.method,
    )  # fmt: skip
    bases = [u.name.partition("@")[0] for u in found if not _has_range(u) and not _is_bounded(u)]
    open_ones = [n for n in dict.fromkeys(bases) if n not in ranges]
    if open_ones:
        said = ", ".join(f'"{n}" = [lowest, highest]' for n in open_ones)
        raise DataError(
            f"A multistart study draws starts between bounds, and {', '.join(open_ones)} "
            f"{'has' if len(open_ones) == 1 else 'have'} none. Give bounds in [parameters] of problem.toml, or for "
            f"the starts only, in [study]: ranges = {{ {said} }}."
        )


def _has_range(unknown: Unknown) -> bool:
    """Return whether a prior says where starts may be drawn; that a curve is smooth does not."""
    return unknown.prior is not None and not isinstance(unknown.prior, SmoothCurve)


def _is_bounded(unknown: Unknown) -> bool:
    return math.isfinite(unknown.lower) and math.isfinite(unknown.upper)


def _bootstrap(problem: Problem, runs: int, settings: dict[str, Any], running: dict[str, Any]) -> MonteCarlo:
    from grisaille.results.bootstrap import bootstrap

    options = {"kind": settings.get("resampling", "parametric"), "block": settings.get("block")}
    return bootstrap(problem.fit(), runs, **options, **running)


def _monte_carlo(problem: Problem, runs: int, settings: dict[str, Any], running: dict[str, Any]) -> MonteCarlo:
    """Put the truth into the model, so that data and first guess agree; starts of several runs stay the
    model's.
    """
    from grisaille.results.monte_carlo import monte_carlo

    noise = dict(settings.get("noise", {}))
    if settings.get("truth", "fit") == "fit":
        fit = problem.fit()
        values = {u.name: float(v) for u, v in zip(fit.estimate.unknowns, fit.estimate.theta, strict=True)}
        noise = {**fit.estimate.noise, **noise}
    else:
        values = problem.guess
    levels = {n[6:-1]: v for n, v in values.items() if n.startswith("noise(")}
    arguments = {k: v for k, v in problem._arguments().items() if k not in ("experiments", "guess", "model")}
    return monte_carlo(
        model=at_values(problem.model, values, len(problem.experiments) == 1), plan=list(problem.experiments),
        noise={**levels, **noise}, runs=runs, **arguments, **running,
    )  # fmt: skip


def at_values(model: Model, values: Mapping[str, float], with_starts: bool) -> Model:
    """Return the model with shared values of parameters, levels of disturbances and, for a single run, starts."""
    flat = structure_of(model).model
    changes: dict[str, Any] = {n: v for n, v in values.items() if n in flat.parameters}
    for name, disturbance in flat.disturbances.items():
        if f"scale({name})" in values:
            changes[name] = Disturbance(disturbance.spectrum, scale=values[f"scale({name})"])
    starts = {n[6:-1]: v for n, v in values.items() if n.startswith("start(") and n.endswith(")")}
    return model.replace(changes, start=starts) if with_starts and starts else model.replace(changes)
