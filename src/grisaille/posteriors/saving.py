"""A posterior as a netCDF file and back: its fit as ``fit.save`` writes it, and the draws in groups that ArviZ reads.

The root names the kind and holds what is no array; ``posterior`` and ``sample_stats`` hold draws and how they came
about, ``unbounded`` the same in unbounded coordinates; ``fit`` and what belongs to it is the fit. Nothing in a file is
executed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.persistence.netcdf import groups_as_bytes
from grisaille.estimation.persistence.saving import digest, file_groups, seal
from grisaille.posteriors.chain import SamplingOptions
from grisaille.posteriors.posterior import SampledPosterior
from grisaille.posteriors.posterior_draws import STATISTICS, PosteriorDraws
from grisaille.writing import write_whole

if TYPE_CHECKING:
    import xarray as xr

KIND, FORMAT = "grisaille posterior", 1
FIT_GROUP = "fit"
"""The group that holds what is the root of a saved fit."""
TEXTS = {"names": list, "priors": dict, "defaults": dict, "failures": dict, "options": dict, "corrections": list}
"""What the record holds beside numbers, and of which kind it is."""
WHOLE, LOGICAL = ("n_steps", "tree_depth"), ("diverging",)


def save(posterior: SampledPosterior, path: str | os.PathLike[str]) -> None:
    """Write a posterior; a file of that name is replaced in one step."""
    import xarray as xr

    drawn = posterior._drawn
    arrays = {"xi": drawn.xi, "theta": drawn.theta, "divergences": drawn.divergences, **drawn.statistics}
    record = json.dumps({
        "names": list(posterior.names), "priors": posterior.priors, "defaults": posterior.defaults,
        "failures": posterior.failures, "seed": posterior.seed, "seconds": posterior.seconds,
        "options": asdict(drawn.options), "corrections": list(drawn.corrections), "evaluations": drawn.evaluations,
        "digest": digest(_plain(arrays)),
    })  # fmt: skip
    root = xr.Dataset({"record": ((), np.array(record, dtype=object))})
    unbounded = xr.Dataset({
        "xi": (("chain", "draw", "unknown"), drawn.xi), "divergences": (("failure", "unknown"), drawn.divergences),
    })  # fmt: skip
    statistics = posterior.statistics.assign(diverging=posterior.statistics["diverging"].astype(np.int8))
    content = groups_as_bytes([
        ("", root.assign_attrs(kind=KIND, format=FORMAT, seal=seal("", record))),
        ("posterior", posterior.draws), ("sample_stats", statistics), ("unbounded", unbounded),
        *((name or FIT_GROUP, group) for name, group in file_groups(posterior.fit)),
    ])  # fmt: skip
    write_whole(path, content, "The posterior")


def fit_groups(groups: Mapping[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Return the groups of the fit that a posterior is of, as in a file of its own."""
    own = ("", "posterior", "sample_stats", "unbounded")
    return {"" if n == FIT_GROUP else n: group for n, group in groups.items() if n not in own}


def restored(
    path: str | os.PathLike[str], groups: Mapping[str, xr.Dataset], fit: Fitted, check: bool
) -> SampledPosterior:
    """Return the posterior of a file.

    fit : the one in it
    check : refuse contents that are not as they were saved
    """
    target, root = Path(path), groups[""]
    if int(root.attrs["format"]) != FORMAT:
        raise DataError(f"{str(target)!r} has the format {root.attrs['format']}; this version reads {FORMAT}.")
    text = str(root["record"].values)
    record = json.loads(text)
    wrong = [n for n, kind in TEXTS.items() if not isinstance(record.get(n), kind)]
    if wrong:
        raise TypeError(f"{wrong[0]} is {record.get(wrong[0])!r}")
    names = [str(n) for n in record["names"]]
    inner = groups["unbounded"]
    theta = np.stack([groups["posterior"][n].values for n in names], axis=-1)
    kinds: dict[str, Any] = {**dict.fromkeys(WHOLE, int), **dict.fromkeys(LOGICAL, bool)}
    statistics = {n: np.asarray(groups["sample_stats"][n].values).astype(kinds.get(n, float)) for n in STATISTICS}
    divergences = np.asarray(inner["divergences"].values, dtype=float).reshape(-1, len(names))
    arrays = {"xi": inner["xi"].values, "theta": theta, "divergences": divergences, **statistics}
    if check and (seal("", text) != str(root.attrs["seal"]) or digest(_plain(arrays)) != record["digest"]):
        raise DataError(f"The draws in {str(target)!r} are not those that were saved: the file is damaged.")
    drawn = PosteriorDraws(
        theta, np.asarray(inner["xi"].values), statistics, divergences, SamplingOptions(**record["options"]),
        tuple(record["corrections"]), int(record["evaluations"]),
    )  # fmt: skip
    return SampledPosterior(
        fit, names, record["priors"], drawn, int(record["seed"]), defaults=record["defaults"],
        failures=record["failures"], seconds=float(record["seconds"]),
    )  # fmt: skip


def _plain(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays in the types in which files hold them."""
    return {n: np.ascontiguousarray(a, dtype=np.int64 if a.dtype.kind in "biu" else float) for n, a in arrays.items()}
