"""Remedies for what ``rumoca`` 0.10 does not follow, and for what is no Modelica and can mean one thing only."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator

from grisaille.modelica.full.derivatives import DEFINITION, NAME, with_calls
from grisaille.modelica.full.mending import Edit, apply_edits, end_of_argument, without_words

Texts = dict[str, str]
_TRUTH = re.compile(r"[<>]|==|\b(?:not|and|or|true|false)\b")


def with_derivatives_in_files(texts: Texts, main: str) -> Texts:
    """Return derivatives of formulas as calls in the files of libraries, as they are in the user's own text."""
    changed = {path: text if path == main else with_calls(text) for path, text in texts.items()}
    if changed == texts:
        return texts
    own = changed[main]
    return changed | {main: own if f"function {NAME} " in own else own + DEFINITION}


def with_full_literals(texts: Texts, target: str) -> Texts:
    """Return what is imported from within a class that is no package, under its full name where it is used."""
    imported = re.compile(rf"\bimport\s+{re.escape(target)}\s*;")
    used = re.compile(rf"(?<![\w.]){re.escape(target.rpartition('.')[2])}(?!\w)(?!\s*=(?!=))")
    changed = {}
    for path, text in texts.items():
        bare = without_words(text)
        imports = list(imported.finditer(bare))
        edits = [(m.start(), m.end(), "") for m in imports]
        inside = [range(m.start(), m.end()) for m in imports]
        edits += [
            (m.start(), m.end(), target)
            for m in used.finditer(bare) if imports and not any(m.start() in span for span in inside)
        ]  # fmt: skip
        changed[path] = apply_edits(text, edits)
    return changed


def with_equal_variables(texts: Texts, found: re.Match[str]) -> Texts:
    """Return ``connect(a, b)`` of variables that are no connectors as ``a = b``."""
    plain = set(re.findall(r"connect argument '([^']+)' must be a connector, but has builtin type", found.string))
    connection = re.compile(r"\bconnect\s*\(([^(),;]*),([^(),;]*)\)")

    def equations(text: str) -> Iterator[Edit]:
        for made in connection.finditer(without_words(text)):
            left, right = (re.sub(r"\s", "", side) for side in made.groups())
            if {left, right} <= plain:
                yield made.start(), made.end(), f"{left} = {right}"

    names = ", ".join(f"'{name}'" for name in sorted(plain)[:6])
    return _told(texts, equations, f"connect of {names}, which are no connectors, is taken as their equality")


def without_input(texts: Texts, found: re.Match[str]) -> Texts:
    """Return ``parameter input`` as ``parameter``."""
    both = re.compile(r"\bparameter\s+(input\s)|\b(input\s)\s*parameter\b")

    def prefixes(text: str) -> Iterator[Edit]:
        for made in both.finditer(without_words(text)):
            yield made.start(made.lastindex or 0), made.end(made.lastindex or 0), ""

    return _told(texts, prefixes, "'parameter' and 'input' cannot stand together: it is taken as a parameter")


def with_counted_entries(texts: Texts, name: str) -> Texts:
    """Return ``a = {f(x), time}`` with entries as if-expressions: the compiler counts literals and names."""
    begins = re.compile(rf"(?<![\w.]){re.escape(name)}\s*=\s*\{{")

    def entries(text: str) -> Iterator[Edit]:
        bare = without_words(text)
        for made in begins.finditer(bare):
            at = made.end()
            while at < len(bare) and bare[at - 1] != "}":
                end = end_of_argument(bare, at, ",}")
                entry = text[at:end].strip()
                if entry and not entry.startswith(("{", "if")) and " for " not in entry:
                    nothing = "false" if _TRUTH.search(bare[at:end]) else "0"
                    yield at, end, f"if true then {entry} else {nothing}"
                at = end + 1

    return {path: apply_edits(text, entries(text)) for path, text in texts.items()}


def _told(texts: Texts, edits: Callable[[str], Iterable[Edit]], words: str) -> Texts:
    """Return texts with a liberty that is told."""
    changed = {path: apply_edits(text, edits(text)) for path, text in texts.items()}
    if changed != texts:
        warnings.warn(f"The text is no Modelica as it stands: {words}.", stacklevel=8)
    return changed
