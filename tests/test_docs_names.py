"""Files and names that the pages for contributors quote exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "grisaille"
PAGES = ("docs/architecture.md", "docs/glossary.md", "docs/extending.md", "docs/conventions.md", "CONTRIBUTING.md")
FILE = re.compile(r"[\w./-]+\.(?:py|c|h|json|md|toml|yaml)|[\w./-]*\w/[\w./-]*")
FREE = {"MyLaw", "NAME_command"}
"""Names that a page makes up for the reader's own code."""


def quoted(text: str) -> list[str]:
    """Return what stands between backticks, blocks of code left out."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


@cache
def files() -> tuple[str, ...]:
    """Return the paths of all files that a page may name, relative to the root."""
    tops = ("src", "tests", "docs", "scripts", "benchmarks")
    found = [p for top in tops for p in (ROOT / top).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return tuple(p.relative_to(ROOT).as_posix() for p in (*found, *ROOT.glob("*.*")))


@cache
def words() -> frozenset[str]:
    """Return every word of the code, docstrings and comments left out, which may be older than the names."""
    found: set[str] = set()
    for path in (*PACKAGE.rglob("*.py"), *(ROOT / "scripts").iterdir(), *(ROOT / "benchmarks").glob("*.py")):
        if path.is_file():
            code = re.sub(r'(?m)"""(?:.|\n)*?"""|#.*$', "", path.read_text("utf-8"))
            found.update(re.findall(r"[^\W\d]\w*", code))
    for path in (*PACKAGE.rglob("*.[ch]"), *PACKAGE.rglob("*.json")):
        found.update(re.findall(r"[^\W\d]\w*", path.read_text("utf-8")))
    return frozenset(found | {part for name in files() for part in re.split(r"[/.]", name)})


def is_there(path: str, folder: str = "") -> bool:
    """Return whether a file or a folder ends like this, below ``folder`` where one is given."""
    path, inside = path.strip("/"), f"/{folder}" if folder else ""
    return any(f"{inside}/" in f"/{f}" and (f"/{f}".endswith(f"/{path}") or f"/{path}/" in f"/{f}") for f in files())


@pytest.mark.parametrize("page", PAGES)
def test_quoted_files_exist(page: str) -> None:
    named = [q for q in quoted((ROOT / page).read_text("utf-8")) if FILE.fullmatch(q) and "NAME" not in q]
    assert [q for q in named if q not in ("problem.toml", "model.py") and not is_there(q)] == []


def test_files_in_the_table_of_packages_lie_in_their_package() -> None:
    rows = re.findall(r"(?m)^\| `(\w+)` \| (.*)$", (ROOT / "docs/architecture.md").read_text("utf-8"))
    packages = [(p, row) for p, row in rows if (PACKAGE / p).is_dir()]
    assert len(packages) > 20
    lost = [
        (p, name) for p, row in packages for name in quoted(row)
        if re.fullmatch(r"\w+\.(py|h)", name) and name != "model.py" and not is_there(name, f"grisaille/{p}")
    ]  # fmt: skip
    assert lost == []


@pytest.mark.parametrize("page", PAGES[:-1])
def test_quoted_names_are_in_the_code(page: str) -> None:
    lost = [
        (name, q) for q in quoted((ROOT / page).read_text("utf-8"))
        for name in re.findall(r"[^\W\d]\w{2,}(?!\w|…)", q)
        if not FILE.fullmatch(q) and name not in words() and name not in FREE
    ]  # fmt: skip
    assert lost == []


def test_names_quoted_beside_a_file_are_in_it() -> None:
    """``estimators/choice.py` (`ORDER`)`` means that ORDER is in that file."""
    for page in PAGES:
        for path, name in re.findall(r"`([\w/]+\.py)` \(`(\w+)[^`]*`", (ROOT / page).read_text("utf-8")):
            held = [ROOT / f for f in files() if f"/{f}".endswith(f"/{path}")]
            assert any(re.search(rf"\b{name}\b", p.read_text("utf-8")) for p in held), (page, path, name)
