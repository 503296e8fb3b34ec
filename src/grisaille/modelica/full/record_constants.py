"""Fields of records that are constants of packages, ``constant Gas air(cp = 1006)`` and ``air.cp``, as numbers beside.

rumoca 0.10 does not find the value of such a field. The remedy writes ``constant Real air__cp = 1006;`` behind the
record and ``air__cp`` for ``air.cp``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grisaille.modelica.full.mending import apply_edits, end_of_argument, end_of_parentheses, without_words

Texts = dict[str, str]


def with_scalars(texts: Texts, found: re.Match[str]) -> Texts:
    """Return the texts with the fields of one record as constants of their own."""
    package, record, _ = found.groups()
    declared = re.compile(rf"\bconstant\s+([\w.]+)\s+{record}\s*\(")
    homes = [(path, m) for path in _homes(texts, package) for m in declared.finditer(without_words(texts[path]))]
    if len(homes) != 1 or any(_is_modified(record, without_words(text)) for text in texts.values() if record in text):
        return texts
    path, at = homes[0]
    text, bare = texts[path], without_words(texts[path])
    end = end_of_parentheses(bare, at.end())
    values = dict(_arguments(text[at.end() : end], bare[at.end() : end]))
    values = {**dict(_defaults(texts, at[1], path, record, values)), **values}
    if not values:
        return texts
    behind = bare.index(";", end) + 1
    constants = " ".join(
        f"constant Real {record}__{field}{'[:]' if value.startswith('{') else ''} = {value};"
        for field, value in values.items()
        if not value.startswith('"')
    )
    numbers = [field for field, value in values.items() if not value.startswith('"')]
    changed = {**texts, path: apply_edits(text, [(behind, behind, f" {constants}")])}
    own, last = path, package.rpartition(".")[2]
    return {path: _renamed(text, record, numbers, last, path == own) for path, text in changed.items()}


def _is_modified(record: str, bare: str) -> bool:
    """Return whether a text may give the record other values, ``package Q = P(air(cp = 1010))``."""
    modifier = rf"[(,]\s*(?:(?:final|each|redeclare|replaceable|constant)\s+)*(?:[\w.]+\s+)?{record}\s*[(=]"
    return bool(re.search(rf"{modifier}|\bredeclare\b[^;]*(?<![\w.]){record}(?!\w)", bare))


def _homes(texts: Texts, package: str) -> Iterator[str]:
    """Yield files in which a package may stand, the nearest first and only those."""
    parts = package.split(".")
    for k in range(len(parts), 0, -1):
        stem = "/".join(parts[:k])
        for path in (f"{stem}.mo", f"{stem}/package.mo"):
            if path in texts:
                yield path
                return
    yield from (path for path, text in texts.items() if re.search(rf"\bpackage\s+{parts[-1]}\b", text))


def _arguments(text: str, bare: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of modifiers, each on one line."""
    at = 0
    while at < len(bare):
        end = end_of_argument(bare, at)
        named = re.match(r"\s*(?:final\s+)?(\w+)\s*=\s*", bare[at:end])
        if named is not None:
            yield named[1], re.sub(r"\s+", " ", text[at + named.end() : end]).strip()
        at = end + 1


def _defaults(texts: Texts, kind: str, path: str, record: str, given: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield values of the fields that the record itself gives, in terms of the others."""
    name = kind.rpartition(".")[2]
    head = re.compile(rf"\brecord\s+{name}\b(.*?)\bend\s+{name}\b", re.DOTALL)
    for other in [path, *(p for p in texts if p != path)]:
        made = head.search(without_words(texts[other]))
        if made is None:
            continue
        declared = dict(
            re.findall(r"[\w.]+\s+(\w+)\s*=\s*([^;\"]+?)\s*(?:\"[^\"]*\"\s*)?(?:annotation\b[^;]*)?;", made[1])
        )
        for field, value in declared.items():
            if field not in given:
                yield field, _in_terms(record, re.sub(r"\s+", " ", value), {*given, *declared})
        return


def _in_terms(record: str, value: str, fields: set[str]) -> str:
    """Return a formula of the fields of a record, with the constants that stand for them."""
    name = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?![\w.(])")
    return name.sub(lambda m: f"{record}__{m[0]}" if m[0] in fields else m[0], value)


def _renamed(text: str, record: str, fields: list[str], package: str, is_own: bool) -> str:
    """Return ``air__cp`` for ``air.cp``; in other files than the package's for ``Air.air.cp`` only."""
    front = rf"(?:(?<=\b{package}\.)|(?<![\w.]))" if is_own else rf"(?<=\b{package}\.)"
    used = re.compile(rf"{front}{record}\s*\.\s*({'|'.join(map(re.escape, fields))})(?![\w(])")
    bare = without_words(text)
    return apply_edits(text, ((m.start(), m.end(), f"{record}__{m[1]}") for m in used.finditer(bare)))
