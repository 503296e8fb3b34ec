"""Remedies for names that ``rumoca`` 0.10 does not follow: derivatives of formulas, and imported literals."""

from __future__ import annotations

import re

from grisaille.modelica.full.derivatives import DEFINITION, NAME, with_calls
from grisaille.modelica.full.mending import edited, without_words

Texts = dict[str, str]


def with_derivatives_in_files(texts: Texts, main: str) -> Texts:
    """Derivatives of formulas as calls in the files of libraries, as they are in the user's own text."""
    changed = {path: text if path == main else with_calls(text) for path, text in texts.items()}
    if changed == texts:
        return texts
    own = changed[main]
    return changed | {main: own if f"function {NAME} " in own else own + DEFINITION}


def with_full_literals(texts: Texts, target: str) -> Texts:
    """What is imported from within a class that is no package, under its full name where it is used."""
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
        changed[path] = edited(text, edits)
    return changed
