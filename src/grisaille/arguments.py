"""The table of what arguments take: by name, and by function where one takes something else there.

A value that is of the right kind may still be refused by what reads it, in its own words: a name that the model does
not have, an option that goes with another. Arguments of ``ANYTHING`` are checked there altogether.
"""

from __future__ import annotations

import codecs
import inspect
from collections.abc import Hashable, Iterable, Mapping
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
    LARGEST,
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

EXPERIMENTS = EXPERIMENT | listed("a list of them", lambda value: is_ours(value, "Record"))
ONE_PRIOR = ("Law", "Smoothness", "JointLaw")
PRIORS = (
    by_name("priors by name, such as gr.Normal", lambda value: value is None or is_ours(value, *ONE_PRIOR))
    | of_ours("a gr.MultivariateNormal", "MultivariateNormal")
    | listed("a list of those", lambda value: is_ours(value, "MultivariateNormal"))
    | NOTHING
)
PAIRS = listed(
    "pairs of labels, [(smaller, larger), …]",
    lambda value: isinstance(value, tuple | list) and len(value) == 2 and all(map(is_text, value)),
    generated=False,
)
RUNS = listed("the numbers of runs, such as left_out=[3, 17]", lambda value: is_number(value) or value is None)
COLUMNS = NAMES | DICT
CONFIDENCE = number("a number between 0 and 1, such as 0.95", lambda value: True)
WHOLE = whole(-LARGEST, "a whole number")
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


def _takes_one(value: Any) -> bool:
    """Whether something is a function that can be called with one argument."""
    if isinstance(value, type) or not callable(value):
        return False
    try:
        inspect.signature(value).bind(None)
    except (TypeError, ValueError):
        return False
    return True


ARGUMENTS: dict[str, Kind] = {
    # what there is
    "model": MODEL,
    "experiment": EXPERIMENT | TEXT | NOTHING,
    "experiments": EXPERIMENTS,
    "which": EXPERIMENT | TEXT,
    "plan": EXPERIMENTS,
    "fit": FIT,
    "fits": ANYTHING,
    "dataset": DATASET,
    "frame": FRAME,
    "trajectory": DATASET | NOTHING,
    # names and values
    "name": TEXT,
    "names": NAMES | by_name("formulas by label", is_name) | NOTHING,
    "first": TEXT,
    "second": TEXT,
    "estimate": NAMES | NOTHING,
    "local": NAMES,
    "outputs": NAMES | NOTHING,
    "signals": NAMES | NOTHING,
    "model_inputs": NAMES | NOTHING,
    "variables": NAMES | NOTHING,
    "guess": VALUES | FIT | NOTHING,
    "bounds": DICT | NOTHING,
    "ranges": RANGES | NOTHING,
    "priors": PRIORS,
    "parameters": ANYTHING,
    "inputs": ANYTHING,
    "start": ANYTHING,
    "hypothesis": NAMES | VALUES,
    "nested": PAIRS,
    "constants": ANYTHING,
    # numbers
    "level": CONFIDENCE,
    "seed": SEED,
    "runs": WHOLE,
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
    "horizon": HORIZON | NOTHING,
    "rtol": FRACTION,
    "tolerance": FRACTION,
    "max_evaluations": COUNT,
    "max_iterations": COUNT,
    # choices
    "method": ONE,
    "kind": TEXT,
    "sampling": STRATEGY,
    "threshold": one_of("t", "chi2"),
    "others": TEXT,
    "hold": TEXT | DICT | NOTHING,
    "between": one_of("linear", "spline", "exact"),
    "device": one_of("cpu", "cuda", "cuda-single", "auto"),
    "purpose": TEXT,
    "bands": one_of("noise", "all") | NOTHING,
    "flattener": one_of("auto", "rumoca", "omc"),
    "errors": TEXT | NOTHING,
    # yes or no
    "progress": YES_NO,
    "check": YES_NO,
    "profiles": YES_NO,
    "standardized": YES_NO,
    "strict": YES_NO,
    "antithetic": YES_NO,
    "compiled": YES_NO | NOTHING,
    # files and pictures
    "path": PATH,
    "folder": PATH,
    "store": PATH | NOTHING,
    "title": TEXT | NOTHING,
    "ax": ANYTHING,
    "executor": ONE,
    # text files
    "time": TEXT | NOTHING,
    "by": TEXT | NOTHING,
    "unit": TEXT | NOTHING,
    "zone": TEXT | NOTHING,
    "dayfirst": YES_NO | NOTHING,
    "reading": ANYTHING,
    "separator": TEXT | NOTHING,
    "decimal": TEXT,
    "comment": TEXT,
    "encoding": CODING,
    "units_row": YES_NO | NOTHING,
}
"""What an argument of this name takes, wherever nothing else is said."""

ELSEWHERE: dict[str, dict[str, Kind]] = {
    "simulate": {
        "times": ANYTHING, "breaks": ANYTHING, "sensitivities": ANYTHING, "rtol": ANYTHING, "atol": ANYTHING,
        "step": ANYTHING, "max_step": ANYTHING, "max_steps": ANYTHING, "reduce": ANYTHING, "method": TEXT,
        "noise": YES_NO,
    },
    "Simulator": {
        "model": MODEL, "method": TEXT, "strict": YES_NO, "compiled": YES_NO | NOTHING,
    },
    "Simulator.gradient": {"weights": WEIGHTS, "by": NAMES},
    "Fitted.simulated": {"experiment": EXPERIMENT, "sensitivities": LISTED},
    "Fitted.simulate": {"times": ANYTHING},
    "sensitivity": {"experiment": ANYTHING, "parameters": NAMES | NOTHING | FIT},
    "well_posedness": {"parameters": VALUES | NOTHING, "inputs": VALUES | NOTHING},
    "evaluate": {"parameters": VALUES | FIT | FRAME | NOTHING},
    "monte_carlo": {"noise": VALUES | NOTHING},
    "read_modelica": {"source": ONE, "name": TEXT | NOTHING, "path": ANYTHING},
    "load": {"model": MODEL | NOTHING},
    "Fit.intervals": {"method": TEXT, "seed": SEED | NOTHING},
    "Fitted.limits": {"method": TEXT},
    "Fit.curve": {"name": Kind("the name of a vector of values", is_name), "experiment": TEXT | NOTHING},
    "Fit.plot": {"experiments": NAMES | NOTHING},
    "Fit.validate": {"experiment": EXPERIMENT, "start": BEGIN},
    "Fitted.begun": {"start": BEGIN},
    "Fitted.predict": {"start": BEGIN},
    "Experiment": {
        "time": ANYTHING, "outputs": ANYTHING, "name": ANYTHING, "t0": ANYTHING, "weights": ANYTHING, "skip": ANYTHING,
        "marks": ANYTHING,
        "unit": TEXT, "units": ANYTHING, "fill": ANYTHING, "hold": TEXT | DICT,
    },
    "Experiment.from_csv": {
        "path": ANYTHING, "inputs": ANYTHING, "outputs": ANYTHING, "separator": ONE | NOTHING, "name": TEXT | NOTHING,
    },
    "Experiment.from_frame": {
        "inputs": ANYTHING, "outputs": ANYTHING, "name": TEXT | NOTHING, "time": COLUMN | NOTHING,
        "by": COLUMN | NOTHING, "frame": ANYTHING,
    },
    "Experiment.from_mat": {
        "path": ANYTHING, "inputs": ANYTHING, "outputs": ANYTHING, "name": TEXT | NOTHING,
    },
    "Experiment.from_dataset": {"inputs": COLUMNS | NOTHING, "outputs": COLUMNS | NOTHING, "time": TEXT},
    "Experiment.measurements": {"name": ANYTHING},
    "Experiment.resample": {"step": ANYTHING, "times": ANYTHING, "outputs": TEXT},
    "Experiment.split": {"fraction": ANYTHING, "time": ANYTHING, "restart": ANYTHING, "seed": SEED | NOTHING},
    "Analysis.plot": {"path": PATH | NOTHING},
    "WellPosedness.require": {"names": NAMES | NOTHING},
    "Sensitivity.collinearity": {"parameters": NAMES | NOTHING},
    "Sensitivity.plot": {"parameters": NAMES | NOTHING},
    "Problem.study": {"kind": TEXT | NOTHING, "runs": COUNT | NOTHING},
    "OutputError": {
        "optimizer": TEXT, "loss": TEXT, "loss_scale": POSITIVE, "shooting": TEXT, "pieces": COUNT,
        "projection": YES_NO, "covariance": TEXT,
    },
    "KalmanML": {
        "filter": ANYTHING, "propagation": TEXT, "substeps": ONE, "initial_covariance": ANYTHING,
        "first_observation": TEXT, "robust": ANYTHING, "horizon": ANYTHING, "bounds": TEXT, "penalty": ANYTHING,
        "solver": TEXT, "sigma": ANYTHING, "tolerance": ANYTHING, "max_evaluations": ANYTHING,
    },
    "SimulatedPEM": {
        "realizations": ONE, "search": TEXT, "match": TEXT, "correction": YES_NO,
        "weighting": NOTHING | TEXT | MATRIX,
        "batch": ANYTHING, "band": POSITIVE, "polish": YES_NO, "checkpoint": PATH | NOTHING,
    },
    "Collocation": {
        "criterion": TEXT, "intensities": TEXT, "debias": YES_NO, "order": ANYTHING, "knots": ANYTHING, "kinks": TEXT,
        "quadrature": ANYTHING, "trajectories": ANYTHING, "refine": ONE, "optimizer": TEXT,
        "transcription": TEXT, "tolerance": ANYTHING, "max_iterations": ANYTHING,
    },
}  # fmt: skip
"""By function or class, where an argument takes something else than others of its name."""


def kinds_of(who: str, names: Iterable[str]) -> dict[str, Kind]:
    """What the arguments of a function take; those of ``ANYTHING`` are left out."""
    own = ELSEWHERE.get(who, {})
    found = {name: own.get(name, ARGUMENTS.get(name, ANYTHING)) for name in names}
    return {name: kind for name, kind in found.items() if kind is not ANYTHING}


def refuse_wrong(who: str, kinds: Mapping[str, Kind], given: Mapping[str, Any]) -> None:
    """An ``ArgumentError`` for the first argument that is not of its kind."""
    for name, value in given.items():
        kind = kinds.get(name)
        if kind is not None and not _is_accepted(kind, value):
            raise ArgumentError(f"{who}(): {name} is {shown(value)}; give {kind.words}.{_hint(name, value, who)}")


def _is_accepted(kind: Kind, value: Any) -> bool:
    try:
        return bool(kind.accepts(value))
    except Exception:  # a value that cannot even be looked at
        return False


def _hint(name: str, value: Any, who: str) -> str:
    """What was probably meant."""
    if isinstance(value, type) and is_name_of_ours(value, "Model", "Estimator"):
        return f" Make an instance: {value.__name__}()."
    held = value[0] if isinstance(value, list | tuple) and value else value
    if (is_table(held) or isinstance(held, dict)) and name in ("experiment", "experiments", "plan"):
        return " gr.Experiment.from_frame(…) makes one of a table."
    if name == "level" and is_ours(value, "Record") and who.endswith("diagnose"):
        return " fit.validate(experiment) tests a record that was not fitted."
    if name == "experiment" and hasattr(value, "__array__"):
        return " For other times and inputs use fit.simulate(times, inputs)."
    if is_name(value) and not isinstance(value, str) and name in ("name", "first", "second"):
        return " Its name, as in the table of the fit, is a text."
    return ""


def is_name_of_ours(cls: type, *classes: str) -> bool:
    """Whether a class derives from one of these of the package."""
    return any(c.__name__ in classes and c.__module__.startswith("grisaille.") for c in cls.__mro__)
