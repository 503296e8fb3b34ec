"""What arguments take: as they are annotated, by name where that says more, by function where one differs there.

A value that is of the right kind may still be refused by what reads it, in its own words: a name that the model does
not have, an option that goes with another. Arguments of ``ANYTHING`` are checked there altogether.
"""

from __future__ import annotations

import codecs
import inspect
from collections.abc import Callable, Hashable, Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from grisaille.errors import ArgumentError
from grisaille.kinds import (
    ANYTHING,
    COUNT,
    DICT,
    EXPERIMENT,
    FIT,
    FRACTION,
    MAX_COUNT,
    MODEL,
    NAMES,
    NOTHING,
    PATH,
    POSITIVE,
    SEED,
    TEXT,
    VALUES,
    YES_NO,
    Kind,
    by_name,
    is_name,
    is_number,
    is_ours,
    is_table,
    is_text,
    is_values,
    listed,
    number,
    of_ours,
    one_of,
    shown,
    whole,
)

EXPERIMENTS = EXPERIMENT | listed("a list of them", lambda value: is_ours(value, "ExperimentContent"))
ONE_PRIOR = ("Law", "Smoothness", "JointLaw")
PRIORS = (
    by_name("priors by name, such as gr.Normal", lambda value: value is None or is_ours(value, *ONE_PRIOR))
    | of_ours("a gr.MultivariateNormal", "MultivariateNormal")
    | listed("a list of those", lambda value: is_ours(value, "MultivariateNormal"))
)
PAIRS = listed(
    "pairs of labels, [(smaller, larger), …]",
    lambda value: isinstance(value, tuple | list) and len(value) == 2 and all(map(is_text, value)),
    generated=False,
)
RUNS = listed("the numbers of runs, such as left_out=[3, 17]", lambda value: is_number(value) or value is None)
COLUMNS = NAMES | DICT
CONFIDENCE = number("a number between 0 and 1, such as 0.95", lambda value: True)
WHOLE = whole(-MAX_COUNT, "a whole number")
LISTED = listed("a list of names", is_name, generated=False)
HORIZON = (
    number("a number above zero", lambda value: value > 0)
    | TEXT
    | Kind("a duration", lambda value: isinstance(value, timedelta | np.timedelta64))
)
RANGES = by_name("a dict of pairs, {name: (from, to)}", lambda value: is_values(value) and np.shape(value) == (2,))
BEGIN = TEXT | by_name("values by name", is_number)
DATASET = Kind("an xarray.Dataset", lambda value: type(value).__name__ == "Dataset")
FRAME = Kind("a pandas.DataFrame", lambda value: is_table(value))
POINTS = Kind(
    "a table of starts", lambda value: np.ndim(value) == 2 and np.isfinite(np.asarray(value, dtype=float)).all()
)
STRATEGY = (
    TEXT | by_name("lists of values by name", lambda value: np.ndim(value) == 1 and is_values(list(value))) | POINTS
)
WEIGHTS = DICT | Kind("a function that makes one of the values", lambda value: _takes_one(value))
ONE = Kind("one value", lambda value: np.ndim(value) == 0)
"""Where what reads it says more."""
COLUMN = Kind("the name of a column", lambda value: isinstance(value, Hashable) and not isinstance(value, bool | slice))
CODING = Kind("the name of a text encoding, such as 'utf-8'", lambda value: codecs.lookup(value) is not None)
MATRIX = Kind(
    "a matrix of numbers", lambda value: is_values(value) and np.isfinite(np.asarray(value, dtype=float)).all()
)


def _takes_one(value: object) -> bool:
    """Return whether something is a function that can be called with one argument."""
    if isinstance(value, type) or not callable(value):
        return False
    try:
        inspect.signature(value).bind(None)
    except (TypeError, ValueError):
        return False
    return True


BY_ANNOTATION: dict[str, Kind] = {
    "bool": YES_NO,
    "str": TEXT,
    "str | Path": PATH,
    "str | os.PathLike[str]": PATH,
    "Model": MODEL,
    "Fitted": FIT,
    "Experiment": EXPERIMENT,
    "Experiment | Sequence[Experiment]": EXPERIMENTS,
    "Experiment | str": EXPERIMENT | TEXT,
    "xarray.Dataset": DATASET,
    "xr.Dataset": DATASET,
    "Iterable[str]": NAMES,
    "str | Iterable[str]": NAMES,
    "Iterable[object]": NAMES,
    "Iterable[str | Expression]": NAMES,
    "str | Iterable[str] | Mapping[str, float]": NAMES | VALUES,
    "Mapping[str, float]": VALUES,
    "Mapping[str, float] | Fitted": VALUES | FIT,
    "Mapping[str, float] | Fitted | pd.DataFrame": VALUES | FIT | FRAME,
    "Mapping[str, tuple[float, float]]": DICT,
    "Mapping[str, str] | str": TEXT | DICT,
    "str | Mapping[str, str]": TEXT | DICT,
    "Estimator | str": ONE,
    "Horizon": HORIZON,
    "Mapping[str, Prior | None] | Sequence[MultivariateNormal] | MultivariateNormal": PRIORS,
    "Errors": TEXT,
}
"""What an argument takes that is annotated so; ``| None`` is understood, a ``Literal`` is a text. Other annotations say
more than can be looked at here."""

BY_NAME: dict[str, Kind] = {
    "level": CONFIDENCE,
    "seed": SEED,
    "runs": WHOLE,
    "draws": COUNT,
    "chains": COUNT,
    "tune": whole(0),
    "acceptance": FRACTION,
    "starts": WHOLE,
    "points": COUNT,
    "samples": COUNT | NOTHING,
    "start_samples": COUNT | NOTHING,
    "block": WHOLE | NOTHING,
    "run": number("the number of a run", lambda value: True),
    "left_out": RUNS,
    "threads": COUNT | NOTHING,
    "realizations": COUNT | NOTHING,
    "step": POSITIVE | NOTHING,
    "rtol": FRACTION,
    "tolerance": FRACTION,
    "max_evaluations": COUNT,
    "max_iterations": COUNT,
    "ranges": RANGES | NOTHING,
    "nested": PAIRS,
    "sampling": STRATEGY,
    "threshold": one_of("t", "chi2"),
    "between": one_of("linear", "spline", "exact"),
    "device": one_of("cpu", "cuda", "cuda-single", "auto"),
    "bands": one_of("noise", "all") | NOTHING,
    "flattener": one_of("auto", "rumoca", "omc"),
    "checkpoint": PATH | NOTHING,
    "executor": ONE,
    "encoding": CODING,
    # what reads these says more about them
    "parameters": ANYTHING,
    "inputs": ANYTHING,
    "start": ANYTHING,
    "constants": ANYTHING,
    "fits": ANYTHING,
}
"""What an argument of this name takes where its annotation says less or nothing."""

BY_FUNCTION: dict[str, dict[str, Kind]] = {
    "Experiment": {"name": ANYTHING},
    "simulate": {"rtol": ANYTHING, "step": ANYTHING},
    "Simulator": {"rtol": ANYTHING, "step": ANYTHING},
    "Simulator.gradient": {"weights": WEIGHTS, "by": NAMES},
    "Fitted.simulated": {"sensitivities": LISTED},
    "sensitivity": {"parameters": NAMES | NOTHING | FIT},
    "well_posedness": {"parameters": VALUES | NOTHING, "inputs": VALUES | NOTHING},
    "evaluate": {"parameters": VALUES | FIT | FRAME | NOTHING},
    "read_modelica": {"source": ONE},
    "Fit.intervals": {"seed": SEED | NOTHING},
    "Fit.curve": {"name": Kind("the name of a vector of values", is_name)},
    "Fit.states": {"names": NAMES | by_name("formulas by label", is_name) | NOTHING},
    "Fit.validate": {"start": BEGIN},
    "Fitted.begun": {"start": BEGIN},
    "Fitted.predict": {"start": BEGIN},
    "Experiment.from_csv": {"path": ANYTHING, "separator": ONE | NOTHING},
    "Experiment.from_frame": {"time": COLUMN | NOTHING, "by": COLUMN | NOTHING},
    "Experiment.from_mat": {"path": ANYTHING},
    "Experiment.from_dataset": {"inputs": COLUMNS | NOTHING, "outputs": COLUMNS | NOTHING},
    "Experiment.measurements": {"name": ANYTHING},
    "Experiment.resample": {"step": ANYTHING},
    "Experiment.split": {"seed": SEED | NOTHING},
    "Problem.study": {"runs": COUNT | NOTHING},
    "Sensitivity.collinearity": {"parameters": NAMES | NOTHING},
    "Sensitivity.plot": {"parameters": NAMES | NOTHING},
    "OutputError": {"loss_scale": POSITIVE, "pieces": COUNT},
    "KalmanML": {"substeps": ONE, "tolerance": ANYTHING, "max_evaluations": ANYTHING},
    "SimulatedPEM": {"realizations": ONE, "weighting": NOTHING | TEXT | MATRIX, "band": POSITIVE},
    "Collocation": {"refine": ONE, "tolerance": ANYTHING, "max_iterations": ANYTHING},
}
"""By function or class, where an argument takes something else than others of its name."""


def annotations_of(function: Callable[..., object]) -> dict[str, str]:
    """Return the arguments of a function or class in order, each with its annotation as a text."""
    taken = inspect.signature(function).parameters.values()
    keyed = (p for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    return {p.name: p.annotation if isinstance(p.annotation, str) else "" for p in keyed}


def kinds_of(who: str, annotations: Mapping[str, str]) -> dict[str, Kind]:
    """Return what the arguments of a function take; those that take anything are left out."""
    own = BY_FUNCTION.get(who, {})
    found = {name: own.get(name) or BY_NAME.get(name) or _annotated(text) for name, text in annotations.items()}
    return {name: kind for name, kind in found.items() if kind is not ANYTHING}


def _annotated(text: str) -> Kind:
    """Return what an annotation says of an argument."""
    plain = text.removesuffix(" | None")
    if plain != text:
        kind = _annotated(plain)
        return kind if kind is ANYTHING else kind | NOTHING
    if text.startswith("Literal[") and text.endswith("]") and "]" not in text[:-1]:
        return TEXT
    return BY_ANNOTATION.get(text, ANYTHING)


def refuse_wrong(who: str, kinds: Mapping[str, Kind], given: Mapping[str, Any]) -> None:
    """An ``ArgumentError`` for the first argument that is not of its kind."""
    for name, value in given.items():
        kind = kinds.get(name)
        if kind is not None and not _is_accepted(kind, value):
            raise ArgumentError(f"{who}(): {name} is {shown(value)}; give {kind.words}.{_hint(name, value, who)}")


def _is_accepted(kind: Kind, value: object) -> bool:
    try:
        return bool(kind.accepts(value))
    except Exception:  # a value that cannot even be looked at
        return False


def _hint(name: str, value: object, who: str) -> str:
    """Return what was probably meant."""
    if isinstance(value, type) and is_name_of_ours(value, "Model", "Estimator"):
        return f" Make an instance: {value.__name__}()."
    held = value[0] if isinstance(value, list | tuple) and value else value
    if (is_table(held) or isinstance(held, dict)) and name in ("experiment", "experiments", "plan"):
        return " gr.Experiment.from_frame(…) makes one of a table."
    if name == "level" and is_ours(value, "ExperimentContent") and who.endswith("diagnose"):
        return " fit.validate(experiment) tests a record that was not fitted."
    if name == "experiment" and hasattr(value, "__array__"):
        return " For other times and inputs use fit.simulate(times, inputs)."
    if is_name(value) and not isinstance(value, str) and name in ("name", "first", "second"):
        return " Its name, as in the table of the fit, is a text."
    return ""


def is_name_of_ours(cls: type, *classes: str) -> bool:
    """Return whether a class derives from one of these of the package."""
    return any(c.__name__ in classes and c.__module__.startswith("grisaille.") for c in cls.__mro__)
