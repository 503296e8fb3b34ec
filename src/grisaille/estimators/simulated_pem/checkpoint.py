"""Checkpoints of a long search in a small JSON file: written after every better point, read when the fit begins again.

The file holds the unknowns by name and a fingerprint of model, data and options; one that belongs to another fit is
refused, never overwritten. It is replaced in one step, so that an interruption leaves the old or the new one, and is
removed when the search has converged.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimators.simulated_pem.mean_problem import MeanProblem
from grisaille.writing import write_whole


class Checkpoint:
    """The file of one fit."""

    def __init__(self, path: str | os.PathLike[str], problem: MeanProblem, options: str) -> None:
        self.path = Path(path)
        self.names = [u.name for u in problem.unknowns]
        self.fingerprint = _fingerprint(problem, options)
        if not self.path.parent.is_dir():
            raise EstimationError(
                f"checkpoint= is {str(self.path)!r}, but there is no folder {str(self.path.parent)!r}."
            )

    def read(self) -> np.ndarray | None:
        """Return the unknowns that were reached, or None without a file."""
        if not self.path.exists():
            return None
        try:
            content = json.loads(self.path.read_text("utf-8"))
            saved, values = content["fingerprint"], content["unknowns"]
            theta = np.array([float(values[n]) for n in self.names])
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise EstimationError(
                f"The checkpoint {str(self.path)!r} cannot be read ({type(error).__name__}: {error}): it is damaged "
                f"or none of these unknowns. Remove it, or give another path."
            ) from error
        if saved != self.fingerprint or not np.isfinite(theta).all():
            raise EstimationError(
                f"The checkpoint {str(self.path)!r} belongs to another model, other data or other options. Remove it "
                f"to begin anew, or give another path."
            )
        return theta

    def write(self, theta: np.ndarray) -> None:
        """Replace the file."""
        content = {"fingerprint": self.fingerprint, "unknowns": dict(zip(self.names, theta.tolist(), strict=True))}
        write_whole(self.path, json.dumps(content, ensure_ascii=True, indent=1).encode(), "The checkpoint")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _fingerprint(problem: MeanProblem, options: str) -> str:
    sha = hashlib.sha256(options.encode())
    for u in problem.unknowns:
        sha.update(repr((u.name, u.lower, u.upper, u.prior)).encode())
    for case in problem.cases:
        sha.update(f"{case.trial.model.fingerprint}{case.experiment.fingerprint}".encode())
        arrays: Sequence[np.ndarray] = [a for s in case.samples for a in (s.rows, s.values, s.weights)]
        for array in arrays:
            sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()
