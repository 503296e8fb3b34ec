"""The scripts that set up and check the project: what can be tested without setting up another environment."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from test_docs import PAGES, examples

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


@pytest.fixture(scope="module")
def selection() -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return importlib.import_module("selection")
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ([], []),
        (["src/grisaille/filtering/nonlinear/extended.py"], ["tests/filtering"]),
        (["src/grisaille/filtering/filter.py", "tests/filtering/test_stepping.py"], ["tests/filtering"]),
        (["tests/filtering/test_stepping.py"], ["tests/filtering/test_stepping.py"]),
        (["src/grisaille/writing.py"], ["tests/test_writing.py"]),
        (["src/grisaille/model/classes.py"], []),
        (["tests/conftest.py", "LICENSE", "src/grisaille/errors.py"], []),
        (
            ["docs/simulation.md"],
            [
                f"tests/test_docs.py::test_{name}[docs/simulation.md]"
                for name in ("links_lead_somewhere", "examples_run")
            ],
        ),
        (["VISION.md", "docs/images/report.png"], []),
    ],
)
def test_quick_takes_the_tests_of_what_changed(selection: ModuleType, changed: list[str], tests: list[str]) -> None:
    assert selection.selected_tests(changed) == [*selection.CORE, *tests]


def test_quick_takes_the_pages_that_are_executed(selection: ModuleType) -> None:
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        is_executed = f"tests/test_docs.py::test_examples_run[{name}]" in selection.selected_tests([name])
        assert is_executed == bool(examples(page.read_text("utf-8"))), name


def test_what_quick_selects_is_there(selection: ModuleType) -> None:
    packages = [p.parent.name for p in (ROOT / "src" / "grisaille").glob("*/__init__.py")]
    chosen = selection.selected_tests(f"src/grisaille/{package}/any.py" for package in packages)
    assert [name for name in chosen if not (ROOT / name).exists()] == []


def test_changed_files_are_those_since_main(selection: ModuleType, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-b", "main")
    for name in ("old.py", "gone.py"):
        (tmp_path / name).write_text("")
    git("add", ".")
    git("commit", "-m", "first")
    git("checkout", "-b", "branch")
    (tmp_path / "committed.py").write_text("")
    git("add", ".")
    git("commit", "-m", "second")
    (tmp_path / "old.py").write_text("changed = 1\n")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "new.py").write_text("")
    assert selection.changed_files(tmp_path) == ["committed.py", "new.py", "old.py"]


def test_what_quick_has_no_time_for_is_skipped_in_words() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--no-more-after", "0", "tests/test_rooms.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "3 skipped" in done.stdout
    assert "not begun within 0 s: continuous integration runs it" in done.stdout
