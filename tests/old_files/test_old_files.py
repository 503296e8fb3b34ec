"""What version 0.1.0 wrote is loaded, continued and read as it was, and what could be called can still be called."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from old_files import questions
from old_files.answers import said_by_fit, said_by_study
from old_files.public import public_signatures
from old_files.questions import FILES

SAID: dict[str, dict[str, Any]] = json.loads((FILES / "said.json").read_text(encoding="utf-8"))
PUBLIC = json.loads((FILES / "public.json").read_text(encoding="utf-8"))
STORES = {"monte_carlo": questions.monte_carlo, "multistart": questions.multistart, "bootstrap": questions.bootstrap}


@pytest.mark.parametrize("name", questions.fits())
def test_saved_fits_say_what_they_said(name: str) -> None:
    said = said_by_fit(gr.load(FILES / f"{name}.nc"))
    assert said == SAID[name]


@pytest.mark.parametrize("name", ["output_error_priors", "smoothness", "kalman_ml_prior", "collocation_laplace"])
def test_fits_come_out_as_they_did(name: str) -> None:
    """Estimates to 1e-6 standard errors, standard errors and log-likelihoods to 1e-6."""
    _assert_same_answer(said_by_fit(questions.fitted(name)), SAID[name])


@pytest.mark.parametrize("kind", STORES)
def test_stores_are_read_and_go_on(kind: str, tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    shutil.copy(FILES / f"{kind}.db", store)
    assert said_by_study(STORES[kind](store, 3)) == SAID[kind]
    longer = said_by_study(STORES[kind](store, 4))["estimates"]
    assert {name: column[:3] for name, column in longer.items()} == SAID[kind]["estimates"]
    assert all(np.isfinite(column[3]) for column in longer.values())


def test_a_search_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    shutil.copy(FILES / "checkpoint.json", path)
    fit = questions.checkpointed(path)
    assert fit.converged and any("went on from the checkpoint" in note for note in fit.notes)


def test_a_problem_folder_gives_the_same_fit() -> None:
    _assert_same_answer(said_by_fit(gr.load_problem(FILES / "tank").fit()), SAID["tank"])


def test_public_names_are_called_as_before() -> None:
    """Arguments may be added, neither renamed, reordered nor given another default."""
    now = public_signatures()
    assert not set(PUBLIC) - set(now)
    for name, before in PUBLIC.items():
        if before is not None:
            kept = [row for row in now[name] or [] if row[0] in {argument for argument, *_ in before}]
            assert kept == before, f"{name} was called with {before}"


def _assert_same_answer(said: dict[str, Any], before: dict[str, Any]) -> None:
    assert said["names"] == before["names"] and said["converged"] == before["converged"]
    error = np.array(before["std_error"])
    assert (np.abs(np.subtract(said["estimate"], before["estimate"])) <= 1e-6 * error).all()
    np.testing.assert_allclose(said["std_error"], error, rtol=1e-6)
    if before["log_likelihood"] is not None:
        assert said["log_likelihood"] == pytest.approx(before["log_likelihood"], rel=1e-9)
