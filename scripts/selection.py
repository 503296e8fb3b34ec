"""Which tests ``scripts/check quick`` runs: those of what differs from ``main``, after a core that is always run.

A file of a package selects the tests of that package; a test file, a page of the documentation and a module with a
test of its own select that one. What stands further down the row of packages is left to continuous integration.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from environment import ROOT

CORE = (
    "tests/test_rooms.py", "tests/test_public_names.py", "tests/test_scripts.py", "tests/test_import_time.py",
    "tests/numerics", "tests/model", "tests/optimization", "tests/simulation/test_simulate.py",
)  # fmt: skip
"""Quick tests of what every package stands on."""
EXECUTED = re.compile(r"^(?<!<!-- not executed -->\n)```(python|console)$", re.MULTILINE)
"""What a page has of which it is executed."""
DOCUMENTATION = ("tests/test_docs.py", "tests/test_gallery.py")
"""Tests of all pages, of which the changed ones are taken alone."""


def changed_files(root: Path = ROOT) -> list[str]:
    """Files that differ from where the branch left ``main``, committed or not, by their paths from the root."""
    base = _git(root, "merge-base", "HEAD", "main") or ["HEAD"]
    named = [*_git(root, "diff", "--name-only", base[0]), *_git(root, "ls-files", "--others", "--exclude-standard")]
    return sorted({name for name in named if (root / name).exists()})


def selected_tests(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """Arguments for pytest: the core, then what the changed files select, each once."""
    found = [test for name in changed for test in _tests_of(PurePosixPath(name), root)]
    folders = {name for name in (*CORE, *found) if (root / name).is_dir()}
    chosen = dict.fromkeys([*CORE, *found])
    return [n for n in chosen if not any(str(parent) in folders for parent in PurePosixPath(n.split("::")[0]).parents)]


def _tests_of(path: PurePosixPath, root: Path) -> Iterator[str]:
    first, *rest = path.parts
    if first == "tests" and path.suffix == ".py" and rest:
        is_test = path.name.startswith("test_")
        if is_test and str(path) not in DOCUMENTATION:
            yield str(path)
        elif not is_test and len(rest) > 1:  # what tests of a folder share
            yield f"tests/{rest[0]}"
    elif path.suffix == ".md" and (first == "docs" or str(path) == "README.md"):
        yield f"tests/test_docs.py::test_links_lead_somewhere[{path}]"
        if EXECUTED.search((root / path).read_text("utf-8")):
            yield f"tests/test_docs.py::test_examples_run[{path}]"
    elif path.parts[:2] == ("src", "grisaille") and len(rest) > 1:
        package = rest[1]
        if (root / "tests" / package).is_dir():
            yield f"tests/{package}"
        single = f"tests/test_{PurePosixPath(package).stem}.py"
        if (root / single).is_file():
            yield single
    elif first == "scripts":
        yield "tests/test_scripts.py"


def _git(root: Path, *words: str) -> list[str]:
    """The lines that git prints; none where it fails, as without a repository or a branch ``main``."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []
