"""Modifiers of replaceable components with a constraining clause, ``replaceable Pump p(k = 5) constrainedby Part``.

Modelica applies them where the component stays what it is; one that is redeclared gets those of the clause instead
(Modelica 3.6, 7.3.2). rumoca 0.10 keeps them in both cases. In the copies numbers among them become part of a class of
its own, so that they go with it; where that cannot be done, a warning says so.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from grisaille.modelica.full.class_places import arguments
from grisaille.modelica.full.mending import Edit, apply_edits, end_of_parentheses, without_words

Texts = dict[str, str]
_KINDS = "model|package|function|type|record|block|connector|class|operator"
_REDECLARED = re.compile(
    rf"\bredeclare\s+(?:(?:replaceable|final|each|parameter|constant)\s+)*(?!(?:{_KINDS})\b)[\w.]+\s+(\w+)"
)
_REPLACEABLE = re.compile(
    rf"\breplaceable\s+((?:parameter\s+|constant\s+)?)(?!(?:{_KINDS}|parameter|constant)\b)([\w.]+)\s+(\w+)\s*\("
)
_CLAUSE = re.compile(r"\)\s*(?:\"[^\"]*\"\s*)?constrainedby\s+[\w.]+\s*(\()?")
_NUMBER = re.compile(r"\s*(?:final\s+)?(\w+)\s*=\s*(?:[-+]?[\d.]+(?:[eE][-+]?\d+)?|true|false)\s*$")
_PREFIX = re.compile(r"\b(?:inner|outer|redeclare|final)\s*$")


def with_own_modifiers(texts: Texts) -> Texts:
    """Return the texts with modifiers of replaceable components that stay behind where these are redeclared."""
    redeclared = {
        m[1]
        for text in texts.values() if "redeclare" in text
        for m in _REDECLARED.finditer(without_words(text))
    }  # fmt: skip
    if not redeclared:
        return texts
    return {
        path: apply_edits(text, _edits(text, redeclared)) if "constrainedby" in text and "replaceable" in text else text
        for path, text in texts.items()
    }


def _edits(text: str, redeclared: set[str]) -> Iterator[Edit]:
    bare = without_words(text)
    for made in _REPLACEABLE.finditer(bare):
        prefix, kind, name = made.groups()
        end = end_of_parentheses(bare, made.end())
        clause = _CLAUSE.match(bare, end)
        if name not in redeclared or clause is None or made.end() == end:
            continue
        given = [_NUMBER.match(bare[a:b]) for a, b in arguments(bare, made.end(), end)]
        if all(given) and clause[1] is None and not _PREFIX.search(bare[max(made.start() - 20, 0) : made.start()]):
            modifiers = text[made.end() : end]
            given_class = f"{'record' if prefix else 'model'} {name}__given = {kind}({modifiers});"
            yield made.start(), end + 1, f"{given_class} replaceable {prefix}{name}__given {name}"
        else:
            words = " ".join(text[made.start() : end + 1].split())
            warnings.warn(
                f"The flattener keeps the modifiers of '{words[:100]}' where '{name}' is redeclared; by Modelica those "
                f"of its constrainedby-clause count there. Write them in the redeclaration.",
                stacklevel=8,
            )
