"""The scripts that set up and check the project: what can be tested without setting up another environment."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``scripts/environment.py`` with its folders moved to a temporary place."""
    spec = importlib.util.spec_from_file_location("environment", SCRIPTS / "environment.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "PYTHON", tmp_path / ".venv" / "python")
    return module


def test_installs_once_and_again_when_requirements_change(
    environment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[tuple[str, ...]] = []
    monkeypatch.setattr(environment, "_works", lambda: (tmp_path / ".venv").is_dir())
    monkeypatch.setattr(environment, "_create", lambda: (tmp_path / ".venv").mkdir())
    monkeypatch.setattr(environment, "_install", installed.append)
    monkeypatch.setattr(environment.shutil, "which", lambda name: f"/usr/bin/{name}")
    environment.prepare("test", "docs")
    environment.prepare("docs", "test")
    assert installed == [("test", "docs")]
    environment.prepare()
    assert installed == [("test", "docs"), ()]
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = []\n")
    environment.prepare("test", "docs")
    assert len(installed) == 3


def test_a_machine_without_a_compiler_gets_one(
    environment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[tuple[str, ...]] = []
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(environment, "_works", lambda: True)
    monkeypatch.setattr(environment, "_install", installed.append)
    monkeypatch.setattr(environment.shutil, "which", lambda name: None)
    monkeypatch.delenv("CC", raising=False)
    environment.prepare()
    monkeypatch.setenv("CC", "mycc")
    environment.prepare()
    assert installed == [("compiler",), ()]


def test_a_python_without_venv_is_told_what_to_do(environment: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_venv", lambda *options: "ensurepip is not available")
    with pytest.raises(SystemExit, match="apt install python3-venv") as stop:
        environment._create()
    assert "ensurepip is not available" in str(stop.value)


def test_a_python_without_ensurepip_fetches_pip(environment: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[bool] = []
    monkeypatch.setattr(environment, "_venv", lambda *options: "" if options else "ensurepip is not available")
    monkeypatch.setattr(environment, "_fetch_pip", lambda: fetched.append(True))
    environment._create()
    assert fetched


def test_a_browser_is_tried_once(environment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(environment, "run", lambda *command, limit: asked.append(command) or 1)
    monkeypatch.setattr(environment.shutil, "which", lambda name: None)
    (tmp_path / ".venv").mkdir()
    environment.prepare_browser()
    environment.prepare_browser()
    assert len(asked) == 1 and "playwright" in asked[0]
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = []\n")
    environment.prepare_browser()
    assert len(asked) == 2


def test_a_browser_of_the_machine_is_enough(environment: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "run", lambda *command, limit: pytest.fail("nothing to install"))
    monkeypatch.setattr(environment.shutil, "which", lambda name: "/usr/bin/chromium" if name == "chromium" else None)
    environment.prepare_browser()


def test_unknown_checks_are_refused_before_anything_is_installed() -> None:
    done = subprocess.run([sys.executable, SCRIPTS / "check", "typos"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Unknown: typos" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no executable bit")
@pytest.mark.parametrize("script", ["scripts/check", "scripts/demo", ".ci/run"])
def test_scripts_are_executable(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
