"""``gr.load_problem``: a problem folder as an object that can be fitted and studied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grisaille.calling import checked, checked_methods
from grisaille.errors import DataError
from grisaille.problem.folder_findings import Findings
from grisaille.problem.linting import FolderContents, find_folder, inspect
from grisaille.problem.studies import run_study

if TYPE_CHECKING:
    from grisaille.estimation.estimator import Estimator
    from grisaille.experiment.experiment import Experiment
    from grisaille.laws import Prior
    from grisaille.model.classes import Model
    from grisaille.results.fit import Fit
    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille.results.multistart import Multistart


@dataclass(frozen=True)
@checked_methods
class Problem:
    """A model with its data, what is unknown in it, and how that is estimated.

    folder : where it was read
    title : one line
    model : with the known values of the file
    experiments : as ``gr.fit`` takes them
    estimate, local, guess, bounds, priors : as ``gr.fit`` takes them
    method : an estimator, or ``"auto"``
    seed : of studies
    settings : the table ``[study]``
    notes : remarks, one sentence each
    """

    folder: Path
    title: str
    model: Model
    experiments: tuple[Experiment, ...]
    estimate: tuple[str, ...]
    local: tuple[str, ...]
    guess: dict[str, float]
    bounds: dict[str, tuple[float, float]]
    priors: dict[str, Prior]
    method: Estimator | str
    seed: int
    settings: dict[str, Any]
    notes: tuple[str, ...]

    def fit(self, **changes: Any) -> Fit:
        """Call ``gr.fit`` with the problem.

        changes : arguments of ``gr.fit``, which replace those of the file
        """
        from grisaille.results.fitting import fit

        return fit(**{**self._arguments(), **changes})

    def study(self, kind: str | None = None, runs: int | None = None, **changes: Any) -> Multistart | MonteCarlo:
        """Return a study of the problem.

        kind : ``"monte-carlo"``, ``"multistart"`` or ``"bootstrap"``; that of the file otherwise
        runs : how many; those of the file, or 100, otherwise
        changes : other settings of ``[study]``, and ``seed``, ``store``, ``executor``, ``progress``
        """
        settings = {**self.settings, **{k: v for k, v in (("kind", kind), ("runs", runs)) if v is not None}}
        return run_study(self, settings, changes)

    def _arguments(self) -> dict[str, Any]:
        return {
            "model": self.model, "experiments": list(self.experiments), "estimate": list(self.estimate),
            "method": self.method, "guess": self.guess, "bounds": self.bounds or None, "priors": self.priors or None,
            "local": self.local,
        }  # fmt: skip

    def __str__(self) -> str:
        method = self.method if isinstance(self.method, str) else type(self.method).__name__
        names = ", ".join(e.name or "" for e in self.experiments[:6]) + (", …" if len(self.experiments) > 6 else "")
        return (
            f"{self.title}\n  model        {type(self.model).__name__}\n  experiments  {len(self.experiments)}: {names}"
            f"\n  estimate     {', '.join(self.estimate)}\n  method       {method}"
        )

    __repr__ = __str__


@checked
def load_problem(folder: str | Path, reading: Mapping[str, Any] | None = None) -> Problem:
    """Return the problem in a folder of ``model.py``, ``data/*.csv`` and ``problem.toml``.

    Executes the model file in the folder (``model.py`` unless ``problem.toml`` names another) and no other: load only
    what you would run. Files outside the folder, by ``..``, by absolute paths or by links, are refused. All mistakes
    are told in one ``DataError``.

    folder : its path
    reading : ``decimal``, ``separator``, ``encoding`` or ``dayfirst`` of all its data, instead of what the file says
    """
    root = find_folder(folder)
    findings, contents = inspect(root, reading)
    findings.refuse(str(root))
    return make_problem(root, findings, contents)


def make_problem(root: Path, findings: Findings, contents: FolderContents) -> Problem:
    """Return the problem of contents in which nothing is wrong."""
    wanted, data = contents.wanted, contents.data
    if contents.model is None or wanted.estimate is None:
        raise DataError(f"{root}: the problem could not be read.")
    return Problem(
        folder=root, title=data.get("title", root.resolve().name), model=contents.model,
        experiments=contents.experiments, estimate=tuple(wanted.estimate), local=wanted.local, guess=wanted.guess,
        bounds=wanted.bounds, priors=wanted.priors, method=contents.method, seed=data.get("seed", 0),
        settings=data.get("study", {}), notes=tuple(str(f) for f in findings.notes),
    )  # fmt: skip
