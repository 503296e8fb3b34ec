"""What only some methods find, as data of a file: one entry for each field of an estimate that holds such a finding.

Version 0.1.0 kept the same numbers in one table by name, ``extra``, such as ``"student(k)"`` or ``"size(y)@run"``; it
is read into the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.findings.ensemble import EnsembleResult, ErrorSize, UnexplainedErrors
from grisaille.estimation.findings.mesh import MeshResult
from grisaille.estimation.hac.robust_errors import RobustErrors

PLAIN_FIELDS = ("transcription", "compared", "penalty", "explained_exactly", "moved_by_start")
TABLE_FIELDS = ("limits", "details")
OBJECT_FIELDS = ("robust", "ensemble", "mesh")
ENSEMBLE_FIELDS = ("realizations", "monte_carlo_share", "correction")
MESH_FIELDS = ("refinements", "knots", "coefficients", "elements", "pieces")


def findings_as_data(e: Estimate) -> dict[str, Any]:
    """Return every such field as data."""
    objects = {name: getattr(e, name) for name in OBJECT_FIELDS}
    return {
        **{name: getattr(e, name) for name in PLAIN_FIELDS},
        **{name: {k: float(v) for k, v in getattr(e, name).items()} for name in TABLE_FIELDS},
        **{name: None if found is None else asdict(found) for name, found in objects.items()},
    }


def restored_findings(record: Mapping[str, Any], method: Estimator) -> dict[str, Any]:
    """Return the fields of an estimate from the record of a file of this version or of an older one."""
    if "extra" in record:
        said = record["why"].get(type(method).__name__, "") if "transcription" in method.options else ""
        return {"transcription": said.partition(": ")[2], **_of_table(record["extra"])}
    saved = record["findings"]
    ensemble, mesh, robust = (saved[name] for name in ("ensemble", "mesh", "robust"))
    return {
        **{name: saved[name] for name in (*PLAIN_FIELDS, *TABLE_FIELDS)},
        "robust": None if robust is None else RobustErrors(**robust),
        "mesh": None if mesh is None else MeshResult(**mesh),
        "ensemble": None if ensemble is None else _ensemble(ensemble),
    }


def _ensemble(saved: Mapping[str, Any]) -> EnsembleResult:
    sizes = tuple(ErrorSize(**s) for s in saved["sizes"])
    unexplained = tuple(UnexplainedErrors(**u) for u in saved["unexplained"])
    return EnsembleResult(**{**saved, "sizes": sizes, "unexplained": unexplained})


def _of_table(extra: Mapping[str, float]) -> dict[str, Any]:
    """Return the findings of a table by name; those that the package did not write itself are details."""
    left = dict(extra)
    found: dict[str, Any] = {
        "compared": left.pop("criterion", None),
        "penalty": left.pop("penalty", 0.0),
        "explained_exactly": bool(left.pop("explained_exactly", False)),
        "moved_by_start": left.pop("moved_by_start", 0.0),
        "limits": _taken(left, "limit"),
    }
    freedom, independent = _taken(left, "student"), _taken(left, "independent")
    if "stretch" in left:
        found["robust"] = RobustErrors(freedom, independent, left.pop("stretch"))
    if left.pop("disturbed_residuals", 0.0):
        known: dict[str, Any] = {name: left.pop(name) for name in ENSEMBLE_FIELDS if name in left}
        known["realizations"] = int(known.get("realizations", 0))
        sizes, ranks, unexplained = (_taken(left, name) for name in ("size", "size_p", "unexplained"))
        found["ensemble"] = EnsembleResult(
            **known, bias=_taken(left, "bias"), covered=_taken(left, "covered"),
            sizes=tuple(ErrorSize(*_place(at), ratio, ranks[at]) for at, ratio in sizes.items()),
            unexplained=tuple(UnexplainedErrors(*_place(at), times) for at, times in unexplained.items()),
        )  # fmt: skip
    if "refinements" in left:
        found["mesh"] = MeshResult(**{name: int(left.pop(name)) for name in MESH_FIELDS if name in left})
    return {**found, "details": left}


def _taken(left: dict[str, float], head: str) -> dict[str, float]:
    """Take what is called ``head(k)`` or ``head(y)@run`` out of a table, by ``k`` or ``y@run``."""
    keys = [k for k in left if k.startswith(f"{head}(")]
    return {_inside(k.removeprefix(f"{head}("), head): left.pop(k) for k in keys}


def _inside(rest: str, head: str) -> str:
    if head in ("size", "size_p"):
        output, _, experiment = rest.partition(")@")
        return f"{output}@{experiment}"
    return rest.removesuffix(")")


def _place(at: str) -> tuple[str, str]:
    output, _, experiment = at.partition("@")
    return output, experiment
