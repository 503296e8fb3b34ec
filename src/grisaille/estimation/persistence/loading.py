"""A saved fit, back as it was.

Only numbers and text are read; nothing in the file is executed, and classes come from fixed lists. The model, the
experiments and the numbers must have the fingerprints they were saved with. Simulations are prepared when first needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import DataError, GrisailleError
from grisaille.estimation.approximation import ApproximationCheck
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.experiment_terms import ExperimentTerm, trial_of
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.intervals import Intervals
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.measurements.measured_problem import SIMULATED_KINDS
from grisaille.estimation.measurements.output_law import have_laws, output_laws
from grisaille.estimation.noise import noise_levels
from grisaille.estimation.persistence.findings import restored_findings
from grisaille.estimation.persistence.netcdf import read_groups
from grisaille.estimation.persistence.saving import FORMAT, METHOD_ARRAY_PREFIX, digest, seal
from grisaille.estimation.persistence.type_checks import check_fields, check_record
from grisaille.estimation.prior_terms import prior_term
from grisaille.estimation.problem import Evaluation
from grisaille.experiment.experiment import Experiment
from grisaille.laws.law_content import from_data
from grisaille.model import packing
from grisaille.model.classes import Model, restore_model
from grisaille.simulation.runner import Prediction
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import xarray as xr

READABLE_FORMATS = (1, FORMAT)
"""Formats: the first has one table where the second has the findings of methods field by field."""
UNSEALED_NOTE = (
    "file: saved by a version whose digest covers the numbers but not the texts beside them (status, notes, names); "
    "save it again to have all of it covered."
)


def read_file(target: Path) -> dict[str, xr.Dataset]:
    """Return the groups of a file of ours by their names."""
    if not target.is_file():
        raise DataError(f"There is no file {str(target)!r} to load.")
    try:
        return read_groups(target)
    except Exception as error:
        raise DataError(f"{str(target)!r} is not a complete netCDF file ({error}).") from error


def restore_fit(
    target: Path,
    groups: Mapping[str, xr.Dataset],
    model: Model | None,
    check: bool,
    estimators: Mapping[str, type[Estimator]],
) -> Fitted:
    """Return the fit that the groups of a file hold.

    target : the file, for what is said of it
    """
    with damaged_files_refused(target, "fit.save"):
        if int(groups[""].attrs["format"]) not in READABLE_FORMATS:
            known = " and ".join(map(str, READABLE_FORMATS))
            raise DataError(f"{str(target)!r} has the format {groups[''].attrs['format']}; this version reads {known}.")
        return _restore(target, groups, model, check, estimators)


@contextmanager
def damaged_files_refused(target: Path, writer: str) -> Iterator[None]:
    """Refuse a file that cannot be understood, whatever it makes of itself.

    writer : what writes such files
    """
    try:
        yield
    except GrisailleError:
        raise
    except Exception as error:
        raise DataError(
            f"{str(target)!r} cannot be loaded: {type(error).__name__}: {error}. It is damaged, or was not written by "
            f"{writer}."
        ) from error


def _restore(
    target: Path,
    groups: Mapping[str, xr.Dataset],
    model: Model | None,
    check: bool,
    estimators: Mapping[str, type[Estimator]],
) -> Fitted:
    root = groups[""]
    text = str(root["record"].values)
    saved = root.attrs.get("seal")
    if check and saved is not None and seal(str(root["model"].values), text) != str(saved):
        raise DataError(f"The texts in {str(target)!r} are not those that were saved: the file is damaged.")
    record = json.loads(text)
    check_record(record)
    if saved is None:
        record["notes"] = [*record["notes"], UNSEALED_NOTE]
    arrays = {str(n): np.ascontiguousarray(root[n].values) for n in root.data_vars if n not in ("model", "record")}
    if check and digest(arrays) != record["digest"]:
        raise DataError(f"The numbers in {str(target)!r} are not those that were saved: the file is damaged.")
    chosen = _model(target, str(root["model"].values), record, model, check)
    experiments = [
        _experiment(target, groups[f"experiment_{k}"], fingerprint, check)
        for k, fingerprint in enumerate(record["experiment_fingerprints"])
    ]
    predictions = [groups[f"prediction_{k}"]["y"].values for k in range(len(record["discretisation"]))]
    method = _method(target, record["method"], {**Estimator.known, **estimators})
    fit = rebuild_fit(chosen, experiments, method, record, arrays, predictions)
    check_fields(fit.estimate, "evaluation", "cases")
    for found in (*fit.estimate.unknowns, *(c.discretisation for c in fit.estimate.cases if c.discretisation)):
        check_fields(found)
    _check_targets(fit)
    return fit


def _check_targets(fit: Fitted) -> None:
    """Raise where an unknown is one of something that the model does not have."""
    flat = structure_of(fit.initial_model).model
    tables: dict[str, Mapping[str, Any]] = {
        "parameter": flat.parameters,
        "start": flat.variables,
        "noise": flat.outputs,
        "scale": flat.disturbances,
    }
    for unknown in fit.estimate.unknowns:
        if unknown.kind in tables and unknown.target not in tables[unknown.kind]:
            raise KeyError(f"{unknown.name} is one of '{unknown.target}', which the model does not have")


def rebuild_fit(
    model: Model,
    experiments: Sequence[Experiment],
    method: Estimator,
    record: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    predicted: Sequence[np.ndarray],
) -> Fitted:
    """Return a fit of its content: ``record`` and ``arrays`` as ``saving`` makes them."""
    predictions = tuple(
        Prediction(y, np.zeros((0, 0, 0)), "", float(d))
        for y, d in zip(predicted, record["discretisation"], strict=True)
    )
    unknowns = _unknowns(record["unknowns"], arrays)
    cases = tuple(
        _case(model, e, unknowns, method, steps) for e, steps in zip(experiments, record["steps"], strict=True)
    )
    fit = Fitted(
        model, experiments, method, _estimate(record, method, arrays, unknowns, cases, predictions), record["why"]
    )
    fit.known_intervals = {(i["level"], i["method"]): _intervals(i) for i in record.get("intervals", ())}
    fit.kept = {n.removeprefix(METHOD_ARRAY_PREFIX): a for n, a in arrays.items() if n.startswith(METHOD_ARRAY_PREFIX)}
    return fit


def _model(target: Path, text: str, record: Mapping[str, Any], given: Model | None, check: bool) -> Model:
    if given is None:
        content = packing.unpack(text)
        check_fields(content)
        saved = restore_model(content)
        if check and saved.fingerprint != record["model_fingerprint"]:
            raise DataError(f"The model in {str(target)!r} is not the one that was saved: the file is damaged.")
        return saved
    if check and given.fingerprint != record["model_fingerprint"]:
        same = given.structure_key == record["structure_key"]
        what = "has the same equations but other values" if same else "has other equations"
        raise DataError(
            f"The model given {what} than the one {str(target)!r} was saved with. Load without model= to use the saved "
            f"one, or with check=False to use yours all the same."
        )
    return given


def _experiment(target: Path, dataset: xr.Dataset, fingerprint: str, check: bool) -> Experiment:
    experiment = Experiment.from_dataset(dataset)
    if check and experiment.fingerprint != fingerprint:
        raise DataError(f"The experiment '{experiment.name}' in {str(target)!r} is not as it was saved: it is damaged.")
    return experiment


def _method(target: Path, saved: Mapping[str, Any], known: Mapping[str, type[Estimator]]) -> Estimator:
    found = known.get(saved["class"])
    if found is None:
        raise DataError(
            f"{str(target)!r} was made by the estimator {saved['class']}, which is not known here: import the module "
            f"that defines it first. Known are {', '.join(known)}."
        )
    options = dict(saved["options"])
    if options.get("compiled") is False:  # of files that were made when models could be interpreted
        options["compiled"] = None
    return found(**options)


def _unknowns(saved: list[dict[str, Any]], arrays: Mapping[str, np.ndarray]) -> tuple[Unknown, ...]:
    joint: dict[str, Any] = {}  # unknowns of one joint prior share one object

    def prior(content: Any) -> Any:
        if content is None:
            return None
        return joint.setdefault(json.dumps(content), from_data(content))

    return tuple(
        Unknown(
            **{**u, "prior": prior(u["prior"])}, guess=float(arrays["guess"][k]), lower=float(arrays["lower"][k]),
            upper=float(arrays["upper"][k]),
        )
        for k, u in enumerate(saved)
    )  # fmt: skip


def _intervals(saved: Mapping[str, Any]) -> Intervals:
    lower, upper = (np.array(saved[side], dtype=float) for side in ("lower", "upper"))
    return Intervals(lower, upper, tuple(saved["kinds"]), saved["said"], tuple(saved["notes"]))


def _case(
    model: Model, experiment: Experiment, unknowns: tuple[Unknown, ...], method: Estimator, steps: Mapping[str, Any]
) -> ExperimentTerm:
    """Return the experiment with its samples at hand and its simulation prepared later."""
    flat = structure_of(model).model
    measured = tuple(experiment.outputs)
    known = output_laws(flat, measured) if have_laws(flat, measured) else noise_levels(flat, measured)
    outputs = tuple(dict.fromkeys([*measured, *(n for o in measured for n in known[o].needs)]))
    question = FitRequest.of(model, [experiment], unknowns)
    trial, mine = question.trials[0]
    if not method.density.levels.are_unknowns:  # those that laws name are no part of what is simulated
        trial, mine = trial_of(model, experiment, unknowns, SIMULATED_KINDS)

    @cache
    def later() -> Any:
        return method.pose(question).cases[0].runner

    return ExperimentTerm(experiment, trial, later, outputs, mine, Discretisation.of(steps))


def _approximation(saved: Mapping[str, Any] | None) -> ApproximationCheck | None:
    return (
        None
        if saved is None
        else ApproximationCheck(**{**saved, "moves": tuple(saved["moves"]), "curvatures": tuple(saved["curvatures"])})
    )


def _estimate(
    record: Mapping[str, Any],
    method: Estimator,
    arrays: Mapping[str, np.ndarray],
    unknowns: tuple[Unknown, ...],
    cases: tuple[ExperimentTerm, ...],
    predictions: tuple[Prediction, ...],
) -> Estimate:
    parts = (arrays["theta"], arrays["residuals"], arrays["jacobian"], arrays["errors"], predictions)
    term = prior_term(unknowns, arrays["theta"])
    has_prior_rows = len(arrays["residuals"]) == len(arrays["errors"]) + len(term.residuals)
    evaluation = Evaluation(*parts, prior=term if has_prior_rows else None)
    if record.get("likelihood", False):
        more: dict[str, Any] = {name: arrays[name] for name in ("slope", "curvature") if name in arrays}
        evaluation = LikelihoodEvaluation(
            *parts, value=record["objective"], log_likelihood=record["log_likelihood"], **more
        )
    columns = record["trace_columns"]
    trace = tuple(
        {c: float(v) for c, v in zip(columns, row, strict=True) if not np.isnan(v)} for row in arrays["trace"]
    )
    plain = ("noise", "log_likelihood", "is_likelihood", "count", "objective", "converged", "status", "evaluations",
             "seconds", "offset")  # fmt: skip
    return Estimate(
        unknowns=unknowns, theta=arrays["theta"], covariance=arrays["covariance"], free=arrays["free"].astype(bool),
        evaluation=evaluation, cases=cases, notes=tuple(record["notes"]), trace=trace,
        caution=record.get("caution", ""), approximation=_approximation(record.get("approximation")),
        failures=tuple(record["failures"]), **restored_findings(record, method), **{key: record[key] for key in plain},
    )  # fmt: skip
