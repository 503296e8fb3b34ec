"""``fit.save``: everything in a fit as a netCDF file, so that it can be read anywhere and loaded without running code.

The file holds numbers and text only: the content of the model, the experiments (each a group that ``Experiment`` can
read), unknowns, estimates, covariance, residuals with their Jacobian, the trace, the method's options, versions of what
computed it, and fingerprints of each part. It is written beside its place and moved there when complete.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import DataError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.intervals import Intervals
from grisaille.estimation.persistence.findings import findings_as_data
from grisaille.estimation.persistence.netcdf import groups_as_bytes
from grisaille.laws.law_content import to_data
from grisaille.model.packing import pack
from grisaille.writing import write_whole

if TYPE_CHECKING:
    import xarray as xr

KIND, FORMAT = "grisaille fit", 2
METHOD_ARRAY_PREFIX = "kept_"
"""Begins the names of arrays that belong to the method."""


def save(fit: Fitted, path: str | os.PathLike[str]) -> None:
    """Write the fit to a netCDF file; a file of that name is replaced in one step."""
    if not Path(path).parent.is_dir():
        raise DataError(f"The fit cannot be saved as {str(path)!r}: there is no folder {str(Path(path).parent)!r}.")
    write_whole(path, groups_as_bytes(file_groups(fit)), "The fit")


def file_groups(fit: Fitted) -> Iterator[tuple[str, xr.Dataset]]:
    """Yield what the file holds, by the name of its group."""
    yield "", root_group(fit)
    for k, experiment in enumerate(fit.experiments):
        yield f"experiment_{k}", experiment.to_dataset()
    for k, prediction in enumerate(fit.estimate.evaluation.predictions):
        yield f"prediction_{k}", _array({"y": prediction.y})


def root_group(fit: Fitted) -> xr.Dataset:
    """Return the root group: numbers as arrays, the rest as JSON text (attributes of HDF5 end at 64 kB, variables do
    not).
    """
    arrays = fit_arrays(fit)
    texts = {
        "model": pack(fit.initial_model._content),
        "record": json.dumps({**fit_record(fit), **seals(fit), "digest": digest(arrays)}, ensure_ascii=True),
    }
    dataset = _array(arrays)
    for name, text in texts.items():
        dataset[name] = ((), np.array(text, dtype=object))
    return dataset.assign_attrs(kind=KIND, format=FORMAT, seal=seal(texts["model"], texts["record"]))


def fit_arrays(fit: Fitted) -> dict[str, np.ndarray]:
    """Return the arrays of a fit; the columns of the trace are named in the record."""
    e = fit.estimate
    arrays = {
        "theta": e.theta, "covariance": e.covariance, "free": e.free.astype(np.int8),
        "residuals": e.evaluation.residuals, "jacobian": e.evaluation.jacobian, "errors": e.evaluation.errors,
        "guess": np.array([u.guess for u in e.unknowns]), "lower": np.array([u.lower for u in e.unknowns]),
        "upper": np.array([u.upper for u in e.unknowns]),
    }  # fmt: skip
    if not e.evaluation.is_least_squares:
        arrays |= {"slope": e.evaluation.gradient, "curvature": e.evaluation.information}
    if fit.method.states is not None:
        arrays |= {
            f"{METHOD_ARRAY_PREFIX}{name}": value for name, value in fit.method.states.arrays_to_save(fit).items()
        }
    columns = list(dict.fromkeys(c for row in e.trace for c in row))
    rows = [[row.get(c, np.nan) for c in columns] for row in e.trace]
    arrays["trace"] = np.array(rows, dtype=float).reshape(len(rows), len(columns))
    return {name: np.ascontiguousarray(a) for name, a in arrays.items()}


def fit_record(fit: Fitted) -> dict[str, Any]:
    """Return what is not an array, beside the model, the experiments and the method."""
    e = fit.estimate
    return {
        "why": fit.why,
        "unknowns": [_unknown(u) for u in e.unknowns],
        "noise": e.noise,
        "likelihood": not e.evaluation.is_least_squares,
        "log_likelihood": e.log_likelihood, "is_likelihood": bool(e.is_likelihood), "count": int(e.count),
        "objective": e.objective, "converged": bool(e.converged), "status": e.status, "notes": list(e.notes),
        "caution": e.caution,
        "approximation": None if e.approximation is None else asdict(e.approximation),
        "trace_columns": list(dict.fromkeys(c for row in e.trace for c in row)),
        "evaluations": int(e.evaluations), "failures": list(e.failures), "seconds": e.seconds, "offset": e.offset,
        "findings": findings_as_data(e),
        "intervals": [_interval(level, method, found) for (level, method), found in fit.known_intervals.items()],
        "discretisation": [p.discretisation for p in e.evaluation.predictions],
        "steps": [{} if c.discretisation is None else c.discretisation.data for c in e.cases],
    }  # fmt: skip


def seals(fit: Fitted) -> dict[str, Any]:
    """Return checksums of a file's parts, so that parts that do not belong together are detected."""
    return {
        "model_fingerprint": fit.initial_model.fingerprint,
        "structure_key": fit.initial_model.structure_key,
        "experiment_fingerprints": [x.fingerprint for x in fit.experiments],
        "method": {"class": type(fit.method).__name__, "options": fit.method.options},
        "versions": versions(),
    }


def _interval(level: float, method: str, found: Intervals) -> dict[str, Any]:
    """Return intervals that have been asked for, so that a loaded fit need not compute them again."""
    limits = {"lower": found.lower.tolist(), "upper": found.upper.tolist()}
    return {"level": level, "method": method, **limits, "kinds": found.kinds, "said": found.said, "notes": found.notes}


def _unknown(unknown: Unknown) -> dict[str, Any]:
    prior = None if unknown.prior is None else to_data(unknown.prior)
    return {
        "name": unknown.name, "kind": unknown.kind, "target": unknown.target, "experiment": unknown.experiment,
        "logarithmic": bool(unknown.logarithmic), "logit": bool(unknown.logit), "unit": unknown.unit, "prior": prior,
    }  # fmt: skip


def versions() -> dict[str, str]:
    """Return the versions of what computed the numbers."""
    from importlib.metadata import version

    import grisaille

    packages = {name: version(name) for name in ("casadi", "numpy", "scipy", "pandas", "xarray")}
    return {"grisaille": grisaille.__version__, "python": platform.python_version(), **packages}


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return SHA-256 of all arrays, by name."""
    sha = sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def seal(model: str, record: str) -> str:
    """Return SHA-256 of the texts of a file; the record holds the digest of the arrays."""
    return sha256(f"{len(model)}:{model}{record}".encode()).hexdigest()


def _array(arrays: Mapping[str, np.ndarray]) -> xr.Dataset:
    import xarray as xr

    return xr.Dataset(
        {
            n: xr.Variable([f"{n}_{k}" for k in range(a.ndim)], a, encoding={"_FillValue": None})
            for n, a in arrays.items()
        }
    )
