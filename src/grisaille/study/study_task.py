"""A study as plain data, and how one of its runs is done.

A task holds everything that any worker needs: the model by content, the data, the options and the master seed. What
does not change from run to run (structure, kernels, signals) is prepared once per worker; a run then varies the start
or the measurements, and fits. Runs share nothing that changes, so their order and company do not matter.
"""

from __future__ import annotations

import hashlib
import pickle
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

import numpy as np

from grisaille.errors import EstimationError, InsufficientMemoryError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.choice import find_candidates
from grisaille.estimators.fitting import accepting_method, build_problem, fit_problem, named_experiments
from grisaille.model.classes import Model
from grisaille.optimization.search import Search
from grisaille.study.result_rows import RowLayout, failed_row, finished_row, layout_of
from grisaille.study.seeds import run_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grisaille.estimation.estimator import Estimator
    from grisaille.experiment.experiment import Experiment


class Variation(Protocol):
    """The differences between the runs of a study."""

    @property
    def changes_guess(self) -> bool: ...

    def vary(self, problem: EstimationProblem, run: int, seed: int) -> EstimationProblem:
        """Return the problem of one run."""
        ...

    def experiments(self, problem: EstimationProblem, run: int, seed: int) -> list[Experiment]:
        """Return the experiments of one run, with its measurements in them."""
        ...

    def header(self) -> dict[str, str]:
        """Return what must be the same when a study is resumed."""
        ...


class DataFailure(EstimationError):
    """The measurements of a run could not be made."""


@dataclass(frozen=True)
class StudyTask:
    """One study."""

    kind: str
    model: Model
    experiments: tuple[Any, ...]
    method: Any
    why: dict[str, str]
    options: dict[str, Any]
    """estimate, guess, bounds, priors, local, as in ``gr.fit``."""
    variation: Variation
    seed: int

    @cached_property
    def packed(self) -> bytes:
        try:
            return pickle.dumps(self)
        except Exception as error:
            raise EstimationError(
                f"The study cannot be sent to other processes: {error} Use executor='serial'."
            ) from error

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(self.packed).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("packed", "key")}


class FitOptions(TypedDict, total=False):
    """What a study hands on to each of its fits, as in ``gr.fit``."""

    estimate: Iterable[object] | None
    guess: Mapping[str, float] | Fitted | None
    bounds: Mapping[str, tuple[float, float]] | None
    priors: object
    local: Iterable[str]


def make_task(
    kind: str,
    model: Model,
    experiments: Sequence[Experiment],
    method: Estimator | str,
    variation: Variation,
    seed: int,
    **given: Unpack[FitOptions],
) -> StudyTask:
    """Return a task with its options in plain form."""
    estimate, guess, bounds = given.get("estimate"), given.get("guess"), given.get("bounds")
    if not isinstance(estimate, str) and estimate is not None:
        estimate = list(estimate)
    candidates = find_candidates(method, model, experiments, estimate)
    if isinstance(estimate, str):
        raise EstimationError(f"estimate= takes a list of names: [{estimate!r}].")
    options = {
        "estimate": None if estimate is None else [str(getattr(e, "path", e)) for e in estimate],
        "guess": dict(guess.beginning) if isinstance(guess, Fitted) else dict(guess or {}),
        "bounds": None if bounds is None else dict(bounds),
        "priors": given.get("priors"),
        "local": tuple(given.get("local", ())),
    }
    data = named_experiments(experiments)
    chosen, why = accepting_method(candidates, model, data, **options)
    return StudyTask(kind, model, tuple(data), chosen, why, options, variation, seed)


@dataclass(frozen=True)
class RunAnswer:
    """A finished run."""

    run: int
    seed: int
    seconds: float
    row: dict[str, Any]


class PreparedTask:
    """A task with its problem posed once; does any of its runs."""

    def __init__(self, task: StudyTask) -> None:
        self.task = task
        self.problem = build_problem(task.model, task.experiments, method=task.method, **task.options)
        if not task.variation.changes_guess:
            # all runs begin here: the frozen steps are chosen once, as each run alone would choose them
            Search(self.problem).first()
        self.layout: RowLayout = layout_of(self.problem, task.variation.changes_guess)

    def __reduce__(self) -> tuple[Any, ...]:
        return PreparedTask, (self.task,)

    def seed(self, run: int) -> int:
        return run_seed(self.task.seed, run)

    def do(self, run: int) -> RunAnswer:
        """Run one run; whatever goes wrong in it becomes its row."""
        begin, seed = time.perf_counter(), self.seed(run)
        guess: np.ndarray = np.zeros(0)
        try:
            problem = self.task.variation.vary(self.problem, run, seed)
            guess = problem.guess
            estimate = self.task.method.estimate(problem)
            row = finished_row(self.layout, estimate, guess, self.task.method)
        except DataFailure as error:
            row = failed_row(self.layout, "data", str(error))
        except InsufficientMemoryError:
            raise  # all runs are as large
        except Exception as error:
            said = str(error) if isinstance(error, EstimationError) else f"{type(error).__name__}: {error}"
            row = failed_row(self.layout, "fit", said, guess)
        return RunAnswer(run, seed, time.perf_counter() - begin, row)

    def fit(self, run: int) -> Fitted:
        """Return the fit of one run, with its measurements; raises what made it fail."""
        seed = self.seed(run)
        problem = self.task.variation.vary(self.problem, run, seed)
        fitted = fit_problem(self.task.model, problem, self.task.method, self.task.why, kind=Fitted, may_change=False)
        fitted.experiments = tuple(self.task.variation.experiments(self.problem, run, seed))
        return fitted
