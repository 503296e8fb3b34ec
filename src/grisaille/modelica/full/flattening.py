"""Full Modelica, made flat by the ``rumoca`` compiler: classes, inheritance, connections become one list of equations.

The compiler gets the text and the folders of libraries that the user names, no others; it runs in a process of its
own. What it gives is written down as Base Modelica, which is read like any other.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from grisaille.errors import ModelError
from grisaille.modelica.full.derivatives import with_named_derivatives
from grisaille.modelica.full.flat_expressions import Unwritable
from grisaille.modelica.full.flat_text import FlatText, Origin, flat_text
from grisaille.modelica.refusals import Source

VERSION = "0.10"
"""Of rumoca whose flat tree is known here; the extra ``modelica`` pins one."""
LONGEST = 600.0
"""Seconds that the compiler may take; the whole Standard Library takes it ten."""
_OTHERWISE = (
    "latten by OpenModelica, `omc -f --baseModelica Plant.mo` without -d=evaluateAllParameters, and give that text."
)
_SAID = re.compile(r"×\s*(.+)")
_RELATED = re.compile(r"^- .*?\[\w+\]: (.+)$", re.MULTILINE)
_FRONT = re.compile(r"^(?:\w+ failed: )?\S+ (?:failed in \w+|could not be compiled): ")


class FlatSource(Source):
    """A flattened text whose places are told as those of the text that the user wrote."""

    def __init__(self, made: FlatText, label: str, lines: Mapping[int, Sequence[int]]) -> None:
        super().__init__(made.text, label)
        self._origins = made.origins
        self._ends_of = lines
        """Ends of lines of the files that are known, by the compiler's number of the file."""

    def line_text(self, lines: list[int]) -> str:
        found: dict[str, None] = {}
        for line in sorted(set(lines)):
            found[self._told(line)] = None
        shown = list(found)
        return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")

    def place(self, at: int) -> str:
        return f"{self.label}, {self._told(self.line(at))}"

    def _told(self, line: int) -> str:
        origin = self._origins[line - 1] if 0 < line <= len(self._origins) else Origin()
        ends = self._ends_of.get(origin.file) if origin.file is not None else None
        if ends is not None:
            number = sum(end < origin.start for end in ends) + 1
            return f"line {number}"
        return f"'{origin.component}'" if origin.component else f"line {line} of the flat model"


def flatten(text: str, label: str, name: str, roots: Sequence[Path]) -> tuple[str, FlatSource]:
    """The Base Modelica text of the model ``name``."""
    _check_compiler()
    text = with_named_derivatives(text)
    answer = _run({"text": text, "label": label, "name": name, "roots": [str(root.resolve()) for root in roots]}, label)
    if "error" in answer:
        raise ModelError(_explained(answer, text, label, name))
    flat = answer["flat"]
    try:
        made = flat_text(flat, name, {int(number): text for number, text in answer.get("files", {}).items()})
    except Unwritable as error:
        raise ModelError(f"'{name}' of {label} was flattened, but {error}.") from None
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ModelError(
            f"'{name}' of {label} was flattened into a tree of a form that is not known here "
            f"({type(error).__name__}: {error}; rumoca {_version()})."
        ) from None
    return made.text, FlatSource(made, label, _own_lines(flat, text))


def is_available() -> bool:
    """Whether the compiler is installed."""
    return importlib.util.find_spec("rumoca") is not None


def _check_compiler() -> None:
    if not is_available():
        raise ModelError(
            f"Full Modelica needs the compiler rumoca, which is not installed: "
            f"`pip install 'grisaille[modelica]'`. Or f{_OTHERWISE}"
        )
    version = _version()
    if not version.startswith(f"{VERSION}."):
        raise ModelError(
            f"rumoca {version} is installed; {VERSION} is known here. `pip install 'grisaille[modelica]'`."
        )


@cache
def _version() -> str:
    try:
        return metadata.version("rumoca")
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _run(asked: Mapping[str, Any], label: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path if p)}
    environment.pop("MODELICAPATH", None)  # libraries are those that were named
    child = [sys.executable, "-P", str(Path(__file__).with_name("rumoca_child.py"))]
    try:
        with tempfile.TemporaryDirectory() as nowhere:  # no other files beside it
            done = subprocess.run(
                child, input=json.dumps(asked), capture_output=True, text=True, timeout=LONGEST, env=environment,
                cwd=nowhere, check=False,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ModelError(f"rumoca did not flatten {label} in {LONGEST:g} s.") from None
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        words = [line for line in done.stderr.strip().splitlines() if line.strip()]
        last = words[-1][:300] if words else f"status {done.returncode}"
        raise ModelError(f"rumoca fell while it flattened {label}: {last}. F{_OTHERWISE}") from None
    return answer


def _explained(answer: Mapping[str, Any], text: str, label: str, name: str) -> str:
    """The compiler's messages, each once, with the lines of the user's text that they are about."""
    error = str(answer["error"])
    errors = [told for told in answer.get("diagnostics") or [] if told.get("level") == "error"]
    if "because resolve/parse failed" in error and not errors:
        return f"{label} has no model '{name}', nor have the folders of path=[…]; or it is no Modelica."
    found: dict[str, None] = {}
    for told in errors:
        said = _SAID.search(str(told["message"]))
        found[f"  line {told['line']}: {said[1] if said else str(told['message']).splitlines()[0]}"] = None
    if not found:
        related = _RELATED.findall(error) or [_FRONT.sub("", error.splitlines()[0])]
        found = {f"  {_line_of(words, text)}{words}": None for words in (w.split("; unknowns[")[0] for w in related)}
    lines = list(found)
    more = [f"  … and {len(lines) - 12} more"] if len(lines) > 12 else []
    hint = "\nLibraries are looked for in path=[…], the folders that hold them." if "unresolved type" in error else ""
    return "\n".join([f"'{name}' of {label} cannot be flattened by rumoca:", *lines[:12], *more]) + hint


def _line_of(words: str, text: str) -> str:
    """``"line 3: "`` where a name that a message quotes stands in the user's text."""
    quoted = re.search(r"['`]([\w.]+)['`]", words)
    found = re.search(rf"(?<![\w.]){re.escape(quoted[1])}(?!\w)", text) if quoted else None
    return f"line {text.count(chr(10), 0, found.start()) + 1}: " if found else ""


def _own_lines(flat: Mapping[str, Any], text: str) -> dict[int, list[int]]:
    """Ends of the lines of the user's text, by the number that the compiler gives it.

    The compiler numbers files without saying which is which; in the user's own every reference stands where it should.
    """
    raw = text.encode()
    ends = [m.start() for m in re.finditer(b"\n", raw)]
    fits: dict[int, bool] = {}
    for file, start, end, ident in _references([flat["equations"], flat["variables"]]):
        written = raw[start:end].decode(errors="replace")
        fits[file] = fits.get(file, True) and end <= len(raw) and ident in written
    return {file: ends for file, fit in fits.items() if fit}


def _references(root: Any) -> Iterator[tuple[int, int, int, str]]:
    stack = [root]
    while stack:
        top = stack.pop()
        if isinstance(top, list):
            stack.extend(top)
        elif isinstance(top, Mapping):
            inner = top.get("VarRef")
            if inner is None:
                stack.extend(v for k, v in top.items() if k not in ("span", "component_ref", "source_span"))
            elif inner["span"] and inner["name"]["component_ref"]:
                span = inner["span"]
                yield span["source"], span["start"], span["end"], inner["name"]["component_ref"]["parts"][-1]["ident"]
