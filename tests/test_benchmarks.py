"""Commands that the documentation and the benchmarks name: files are there, import, and take the arguments given; those
that can be short are run.

Files beside a benchmark are the first that its imports find: none may have the name of a package.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import re
import runpy
import shlex
import sys
from pathlib import Path

import click
import pytest

from grisaille.cli import program

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
PAGES = [ROOT / "README.md", FOLDER / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PAGES.remove(ROOT / "docs" / "accuracy-history.md")  # names commands in passing
SHELL = re.compile(r"^```(?:sh|bash|console|shell)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:python \S+\.py|grisaille )[^`]*)`")


def documented(word: str) -> list[str]:
    """Every command that begins with a word, without comments and prompts."""
    found: dict[str, None] = {}
    for page in PAGES:
        text = page.read_text("utf-8")
        lines = [line.removeprefix("$ ") for block in SHELL.findall(text) for line in block.splitlines()]
        for line in [*lines, *INLINE.findall(SHELL.sub("", text))]:
            command = re.split(r"\s+#|\s*\||\s+&|…|\.\.\.", line.strip())[0].strip()
            if command.startswith(f"{word} ") and not command.endswith("\\"):
                found[command] = None
    return list(found)


def described() -> list[str]:
    """Commands in the first lines of programs, without and with what is optional; names of values are ones."""
    found: dict[str, None] = {}
    for file in sorted([*FOLDER.glob("*.py"), *(ROOT / "tests" / "fuzz").glob("*.py")]):
        text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        for line in re.findall(r"^ *(python (?:benchmarks|tests)/.*)$", text, re.MULTILINE):
            command = re.split(r"\s{2,}|\s+#", line)[0]
            plain = re.sub(r"\[[^][]*(?:\[[^][]*\])?[^][]*\]", "", command)
            whole = re.sub(r"\[(--[^][|…]*)\]", r"\1", command)
            whole = re.sub(r"\[[^][]*(?:\[[^][]*\])?[^][]*\]", "", whole)
            found.update(dict.fromkeys(re.sub(r"\b[A-Z]+\b", "1", c).strip() for c in (plain, whole)))
    return list(found)


SCRIPTS = [c for c in documented("python") if re.match(r"python (benchmarks|tests|scripts)/", c)]
SCRIPTS += [c for c in described() if c not in SCRIPTS]
COMMANDS = documented("grisaille")


@pytest.mark.parametrize("name", NAMES)
def test_no_benchmark_hides_a_package(name: str) -> None:
    """``coverage.py`` hid the package that numba imports, and ``simulate.py`` failed."""
    known = {"coverage", "numba", "scipy", "numpy", "jax", "diffrax", "casadi", "pandas", "statsmodels", "sksundae"}
    assert name not in known | set(sys.stdlib_module_names)


class Parsed(Exception):
    """A program has read its arguments, which is as far as it is to go."""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs end where they have read their arguments; modules they bring are forgotten."""
    parse = argparse.ArgumentParser.parse_args

    def stop(self: argparse.ArgumentParser, *arguments: object, **named: object) -> None:
        parse(self, *arguments, **named)  # type: ignore[arg-type]
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.mark.parametrize("command", SCRIPTS)
def test_documented_programs_take_their_arguments(command: str, scripts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    _, file, *arguments = shlex.split(command)
    assert (ROOT / file).is_file(), file
    monkeypatch.setattr(sys, "argv", [file, *arguments])
    takes_options = "argparse" in (ROOT / file).read_text("utf-8")
    if not takes_options:
        assert not [a for a in arguments if a.startswith("-")], "it reads no options"
        runpy.run_path(str(ROOT / file), run_name="imported")
        return
    with pytest.raises(Parsed):
        runpy.run_path(str(ROOT / file), run_name="__main__")


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_can_be_imported(name: str, scripts: None) -> None:
    missing = {"jax", "diffrax", "pyomo", "statsmodels", "sksundae", "numba", "cupy", "sympy"}
    wanted = {m for m in missing if re.search(rf"^(?:import|from) {m}\b", (FOLDER / f"{name}.py").read_text(), re.M)}
    if any(importlib.util.find_spec(m) is None for m in wanted):
        pytest.skip(f"needs {', '.join(sorted(wanted))}")
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="imported")


SMALLEST = (
    "law_coverage.py 1 Poisson",
    "law_residuals.py Poisson --sets 1",
    "prior_coverage.py tight --sets 1",
    "shared_noise.py independent --sets 1",
    "state_bands.py leak --sets 1",
    "stiff.py --problems rober --solvers radau --seconds 0.01 --digits 0",
    "kalman.py --only wall --skip numpy jax statsmodels",
    "robust_coverage.py 1",
    "walks.py",
)
"""At most two seconds of processor time each; the others read their arguments above, and build or run for longer."""


@pytest.mark.parametrize("command", SMALLEST)
def test_benchmarks_run_at_their_smallest_size(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, *arguments = shlex.split(command)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [file, *arguments])
    runpy.run_path(str(FOLDER / file), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_documented_commands_take_their_arguments(command: str) -> None:
    """Read as the program reads them; nothing is run."""
    words = shlex.split(command)[1:]
    group: click.Command = program
    context = click.Context(program)
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        if words[0] == "COMMAND":
            return
        found = group.get_command(context, words[0])
        assert found is not None, f"there is no command {words[0]!r}"
        group, words = found, words[1:]
    if isinstance(group, click.Group):
        return
    try:
        group.make_context(group.name, list(words))
    except click.exceptions.Exit as done:  # --help
        assert done.exit_code == 0
    except click.exceptions.MissingParameter:
        assert not [w for w in words if w.startswith("-")]  # a name of a command in running text
