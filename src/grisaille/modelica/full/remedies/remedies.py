"""What is rewritten when ``rumoca`` 0.10 has refused a model: in copies of all its texts, each remedy once.

A remedy is asked for by the words of the refusal. The same model is meant after it; lines stay where they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from grisaille.modelica.full.mending import Edit, apply_edits, end_of_argument, end_of_parentheses, without_words
from grisaille.modelica.full.package_sizes import with_numbers
from grisaille.modelica.full.record_constants import with_scalars
from grisaille.modelica.full.remedies.remedies_of_algorithms import with_whens_as_equations
from grisaille.modelica.full.remedies.remedies_of_names import (
    with_counted_entries,
    with_derivatives_in_files,
    with_equal_variables,
    with_full_literals,
    without_input,
)
from grisaille.modelica.full.remedies.remedies_of_types import with_interface, with_member, with_other_kind
from grisaille.modelica.full.statements_as_assertions import (
    with_assertions,
    with_entries_set,
    with_told_function,
    with_told_returns,
)
from grisaille.modelica.full.table_texts import without_object

SAMPLE = "grisaille_sample"
"""The function that stands for ``sample`` while a text is flattened."""
_SAMPLE = (
    f"\nfunction {SAMPLE} input Real start; input Real interval; output Boolean y; algorithm y := start < interval; "
    f"end {SAMPLE};\n"
)
TIME = "grisaille_time"
"""The function that stands for ``time`` in initial algorithms."""
_TIME = f"\nfunction {TIME} output Real y; algorithm y := 0; end {TIME};\n"
ORDINAL = "grisaille_ordinal"
"""The function that stands for ``Integer`` of an enumeration, whose argument is compared with itself."""
_ORDINAL = (
    f"\nfunction {ORDINAL} input Boolean u; output Integer y; algorithm y := if u then 1 else 0; end {ORDINAL};\n"
)
_CONNECTOR = re.compile(r"\bconnector\s+(\w+)\b.*?\bend\s+\1\s*;", re.DOTALL)
BALANCED = "grisaille_balanced"
"""A model with as many equations as unknowns, whose own ones, ``0 = 0`` or unknowns of this name, are left out."""
_INITIAL = re.compile(r"\binitial\s+algorithm\b")
_SECTION = re.compile(
    r"\b(?:equation|algorithm|initial|public|protected|annotation)\b|\bend\s+(?!if|for|while|when)\w+\s*;"
)
_ENUMERATION = re.compile(r"\btype\s+(\w+)\s*=\s*enumeration\s*\(")
_LITERAL = re.compile(r"[(,]\s*(\w+)")
MAIN = ""
"""The user's own text among the texts."""

Texts = dict[str, str]
Remedy = Callable[[Texts, re.Match[str]], Texts]


class Remedies:
    """Remedies that have been tried on one model."""

    def __init__(self) -> None:
        self.tried: set[str] = set()

    def applied(self, error: str, texts: Texts) -> Texts | None:
        """Return the texts after the first remedy that the words ask for; None where there is none left."""
        for pattern, remedy in _REMEDIES:
            found = pattern.search(error)
            if found is None or found[0] in self.tried:
                continue
            self.tried.add(found[0])
            changed = remedy(texts, found)
            if changed != texts:
                return changed
        return None


def _with_named_samples(texts: Texts, found: re.Match[str]) -> Texts:
    """Return ``sample(start, interval)`` as calls of a function: rumoca wants to know the start of a clock."""
    call = re.compile(r"(?<![\w.])sample(?=\s*\()")
    changed = {
        path: apply_edits(text, ((m.start(), m.end(), SAMPLE) for m in call.finditer(without_words(text))))
        for path, text in texts.items()
    }
    return changed | {MAIN: changed[MAIN] + _SAMPLE} if changed != texts else texts


def _with_named_time(texts: Texts, found: re.Match[str]) -> Texts:
    """Return ``time`` in initial algorithms as calls of a function: rumoca takes it for what parameters cannot depend
    on.
    """
    changed = {path: apply_edits(text, _times_at_the_start(without_words(text))) for path, text in texts.items()}
    return changed | {MAIN: changed[MAIN] + _TIME} if changed != texts else texts


def _times_at_the_start(bare: str) -> Iterator[Edit]:
    for section in _INITIAL.finditer(bare):
        end = _SECTION.search(bare, section.end())
        for used in re.finditer(r"(?<![\w.])time(?!\w)", bare[section.end() : end.start() if end else len(bare)]):
            yield section.end() + used.start(), section.end() + used.end(), f"{TIME}()"


def _with_named_ordinals(texts: Texts, found: re.Match[str]) -> Texts:
    """Return ``Integer(e)`` of an enumeration as ``grisaille_ordinal(e >= e)``: rumoca does not compute with
    literals.
    """
    call = re.compile(r"(?<![\w.])Integer\s*\((?=([^();=]+)\))")

    def places(bare: str) -> Iterator[Edit]:
        for m in call.finditer(bare):
            yield m.start(), m.end(), f"{ORDINAL}({m[1]} >= "

    changed = {path: apply_edits(text, places(without_words(text))) for path, text in texts.items()}
    return changed | {MAIN: changed[MAIN] + _ORDINAL} if changed != texts else texts


_VECTORS = re.compile(r"(?<![\w.])(?:cross|skew|outerProduct|symmetric)\s*\(")
_WHOLE = re.compile(r"(?<![\w.\[:])\d+(?![\w.\]:])")


def _with_real_vectors(texts: Texts, found: re.Match[str]) -> Texts:
    """Return ``cross({1, 0, 0}, v)`` as ``cross({1.0, 0.0, 0.0}, v)``."""

    def places(bare: str) -> Iterator[Edit]:
        for call in _VECTORS.finditer(bare):
            end = end_of_parentheses(bare, call.end())
            for braces in re.compile(r"\{[^{}\[\]()]*\}").finditer(bare, call.end(), end):
                yield from ((m.end(), m.end(), ".0") for m in _WHOLE.finditer(bare, braces.start(), braces.end()))

    return {path: apply_edits(text, places(without_words(text))) for path, text in texts.items()}


def _with_integers(texts: Texts, found: re.Match[str]) -> Texts:
    """Return enumerations that decide whether a component is there, as integers.

    rumoca chooses between integers by ``if``, between literals it does not.
    """
    condition = re.compile(rf"(?<![\w.]){found[1]}(?!\w)[^;]*?\bif\b([^;]*);")
    bare = {path: without_words(text) for path, text in texts.items()}
    asked = " ".join(m[1] for text in bare.values() if found[1] in text for m in condition.finditer(text))
    literals: dict[str, set[str]] = {}
    for text in bare.values():
        for made in _ENUMERATION.finditer(text):
            own = _LITERAL.findall(_top(text[made.end() - 1 : end_of_parentheses(text, made.end())]))
            if own and re.search(rf"(?<!\w){made[1]}\s*\.\s*(?:{'|'.join(own)})(?!\w)", asked):
                literals.setdefault(made[1], set()).update(own)
    return {path: _integers_in(text, literals) for path, text in texts.items()}


def _integers_in(text: str, literals: dict[str, set[str]]) -> str:
    bare = without_words(text)
    edits: list[tuple[int, int, str]] = []
    for made in _ENUMERATION.finditer(bare):
        if made[1] not in literals:
            continue
        end = end_of_parentheses(bare, made.end())
        names = _LITERAL.findall(_top(bare[made.end() - 1 : end]))
        numbers = " ".join(f"constant Integer {name} = {k};" for k, name in enumerate(names, 1))
        kept = f"package {made[1]}__of {numbers} end {made[1]}__of; type {made[1]} = Integer"
        edits.append((made.start(), end + 1, kept))
    for name, own in literals.items():
        used = re.compile(rf"(?<!\w){name}(?=\s*\.\s*(?:{'|'.join(sorted(own))})(?!\w))") if own else None
        edits += [(m.end(), m.end(), "__of") for m in used.finditer(bare)] if used else []
        imported = re.compile(rf"\bimport\s+(\w+\s*=\s*)?([\w.]+\.)?{name}\s*;")
        for m in imported.finditer(bare):
            alias = f"{m[1].split('=')[0].strip()}__of = " if m[1] else ""
            edits.append((m.end(), m.end(), f" import {alias}{m[2] or ''}{name}__of;"))
    return apply_edits(text, edits)


def _top(listed: str) -> str:
    """Return a list without what stands in parentheses inside it."""
    inner = listed[1:]
    while (shorter := re.sub(r"\([^()]*\)", "", inner)) != inner:
        inner = shorter
    return "(" + inner


def _without_causality(texts: Texts, found: re.Match[str]) -> Texts:
    """Return records in connectors without ``input`` and ``output``, which count at the top of a model only."""
    prefix = re.compile(rf"\b(?:input|output)\b(?=\s+[\w.]+\s+{found[1]}(?!\w))")

    def places(bare: str) -> Iterator[Edit]:
        for made in _CONNECTOR.finditer(bare):
            yield from ((m.start(), m.end(), "") for m in prefix.finditer(bare, made.start(), made.end()))

    return {path: apply_edits(text, places(without_words(text))) for path, text in texts.items()}


def _balanced(texts: Texts, found: re.Match[str]) -> Texts:
    """Return the model with equations or unknowns that are left out again: whether it is determined is found out later.

    rumoca counts, and counts wrongly in places; the analysis of the structure says which unknowns are not determined.
    """
    equations, unknowns, name = int(found[1]), int(found[2]), found[3]
    missing = max(unknowns - equations, 0)
    added = f" Real {BALANCED}[{equations - unknowns}];" if not missing else ""
    body = "".join(" 0 = 0 * time;" for _ in range(missing))
    return {**texts, MAIN: f"{texts[MAIN]}\nmodel {BALANCED} extends {name};{added} equation{body} end {BALANCED};\n"}


def unbalanced(flat: dict[str, Any], own: str, numbers: Iterable[int]) -> dict[str, Any]:
    """Return the flat tree without what ``_balanced`` has added to the user's text, known by these numbers."""
    begin = own.find(f"\nmodel {BALANCED} ")
    if begin < 0:
        return flat
    at, files = len(own[:begin].encode()), set(numbers)

    def is_added(equation: Any) -> bool:
        span = equation.get("span") or {}
        return span.get("source") in files and span.get("start", 0) > at

    kept = [equation for equation in flat["equations"] if not is_added(equation)]
    variables = {name: variable for name, variable in flat["variables"].items() if name != BALANCED}
    return {**flat, "equations": kept, "variables": variables}


def _with_own_name(texts: Texts, found: re.Match[str]) -> Texts:
    """Return a function of a library with the name of a built-in one, under another name."""
    name = found[1]
    defined = re.compile(rf"(?<=\W){name}(?!\w)")
    heads = re.compile(r"\b(?:function(?:\s+extends)?|end|\.)\s*$")
    changed = {}
    for path, text in texts.items():
        bare = without_words(text)
        places = [m for m in defined.finditer(bare) if heads.search(bare[max(m.start() - 30, 0) : m.start()])]
        changed[path] = apply_edits(text, ((m.start(), m.end(), f"{name}__own") for m in places))
    return changed


def _without_tables(texts: Texts, found: re.Match[str]) -> Texts:
    """Return tables in files as functions of the names of their files."""
    for kind in ("Table1D", "TimeTable"):
        texts = {
            path: apply_edits(text, without_object(kind, text, without_words(text))) for path, text in texts.items()
        }
    return texts


_MATRIX = re.compile(r"(?<=[=,({])(\s*)\[([^\[\]{}()]*)\]")
_ENTRY = re.compile(r"\s*[-+]?\s*(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*")


def _with_braces(texts: Texts, found: re.Match[str]) -> Texts:
    """Return ``[1, 2; 3, 4]`` of numbers as ``{{1, 2}, {3, 4}}``, of which each component of an array gets its row."""

    def places(bare: str) -> Iterator[Edit]:
        for matrix in _MATRIX.finditer(bare):
            rows = [row.split(",") for row in matrix[2].split(";")]
            if all(_ENTRY.fullmatch(entry) for row in rows for entry in row):
                written = ", ".join(f"{{{', '.join(entry.strip() for entry in row)}}}" for row in rows)
                yield matrix.end(1), matrix.end(), f"{{{written}}}"

    return {path: apply_edits(text, places(without_words(text))) for path, text in texts.items()}


_DELAY = re.compile(r"(?<![\w.])delay\s*(?=\()")


def _with_real_times(texts: Texts, found: re.Match[str]) -> Texts:
    """Return ``delay(x, 1)`` as ``delay(x, 1.0 * (1))``."""

    def places(bare: str) -> Iterator[Edit]:
        for call in _DELAY.finditer(bare):
            at = end_of_argument(bare, call.end() + 1)
            while bare[at : at + 1] == ",":
                last = end_of_argument(bare, at + 1)
                yield at + 1, at + 1, " 1.0 * ("
                yield last, last, ")"
                at = last

    return {path: apply_edits(text, places(without_words(text))) for path, text in texts.items()}


_REMEDIES: list[tuple[re.Pattern[str], Remedy]] = [
    (re.compile(r"(?<=unbalanced model: )(\d+) equations, (\d+) unknowns(?=[^\0]*\0(.*))"), _balanced),
    (re.compile(r"variable `[^`]*\b(\w+)` has the wrong DAE coordinate role"), _without_causality),
    (re.compile(r"`derivative expression`: der"), lambda texts, found: with_derivatives_in_files(texts, MAIN)),
    (re.compile(r"invalid import target: '([\w.]+)'"), lambda texts, found: with_full_literals(texts, found[1])),
    (re.compile(r"connect argument '[^']+' must be a connector, but has builtin type"), with_equal_variables),
    (re.compile(r"cannot combine 'input' with 'parameter' prefix"), without_input),
    (
        re.compile(r"unresolved component dimension for (?:\S+\.)?(\w+): :"),
        lambda texts, found: with_counted_entries(texts, found[1]),
    ),
    (re.compile(r"dimension expression could not be evaluated"), lambda texts, found: with_numbers(texts)),
    (re.compile(r"is determined from `time`"), _with_named_time),
    (re.compile(r"unsupported runtime operator `sample`|owned by clock identity"), _with_named_samples),
    (re.compile(r"conditional component `(\w+)` requires parameter expression"), _with_integers),
    (re.compile(r"ExternalObject lifecycle for '(\w+)': resolved base DefId\(\d+\) is missing"), _with_own_name),
    (re.compile(r"a table read from a file"), _without_tables),
    (
        re.compile(r"unsupported Flat semantic owner `when assignment`: `(?:[\w.\[\], ]+\.)?(\w+)\[[\d, ]+\]` is not"),
        lambda texts, found: with_entries_set(texts, found[1]),
    ),
    (
        re.compile(r"sequential read of `(?:[\w.]+\.)?(\w+)`.*requires an SSA event transition"),
        lambda texts, found: with_whens_as_equations(texts, found[1]),
    ),
    (re.compile(r"delay\(\) (?:time|delayMax) argument must have type"), _with_real_times),
    (re.compile(r"expression shape mismatch"), _with_braces),
    (re.compile(r"expected a numeric expression, found Enumeration"), _with_named_ordinals),
    (re.compile(r"expression type mismatch: expected Real, found Integer"), _with_real_vectors),
    (
        re.compile(
            r"unsupported Flat semantic owner `function (?:statement|loop reduction|loop domain)`: `(?:[\w.]+\.)?(\w+)`"
        ),
        lambda texts, found: with_told_function(texts, found[1]),
    ),
    (re.compile(r"owner `function return`"), lambda texts, found: with_told_returns(texts, MAIN)),
    (
        re.compile(r"unsupported model algorithm|not allowed in while-statement conditions or bodies"),
        lambda texts, found: with_assertions(texts),
    ),
    (
        re.compile(r"violates constrainedby: `([\w.]+)` is not a subtype of `([\w.]+)`"),
        lambda texts, found: with_interface(texts, found[1], found[2]),
    ),
    (
        re.compile(r"expandable connector connection between `([^`]+)` and `([^`]+)` requires unsupported member"),
        lambda texts, found: with_member(texts, found[1], found[2]),
    ),
    (
        re.compile(r"incompatible connector types in connection: (\S+) \([^)]*\)\)? and (\S+) \(.*"),
        lambda texts, found: with_other_kind(texts, found[1], found[2]),
    ),
    (re.compile(r"unresolved Flat reference `([\w.]+)\.(\w+)\.(\w+)`"), with_scalars),
]
