"""A remedy for algorithms of several ``when`` that set one variable, which ``rumoca`` 0.10 does not take.

Statements are executed in order, so that of two clauses at one instant the later one counts. As equations that is one
clause for the variables that they share, the later condition first: ``when b then n = 0; elsewhen a then …``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from grisaille.modelica.full.mending import Edit, apply_edits, end_of_argument, without_words

Texts = dict[str, str]
_SECTION = re.compile(r"(?<!initial )\balgorithm\b")
_NEXT = re.compile(
    r"\b(?:equation|algorithm|initial|public|protected|annotation)\b|\bend\s+(?!if|for|while|when)\w+\s*;"
)
_WHEN = re.compile(r"\s*\bwhen\b(.*?)\bthen\b(.*?)\bend\s+when\s*;", re.DOTALL)
_SET = re.compile(r"\s*([A-Za-z_]\w*)\s*:=(.*)", re.DOTALL)
_NESTED = re.compile(r"\b(?:if|for|while|elsewhen|when|reinit|assert|terminate|return|break)\b")
_BEFORE = re.compile(r"\bpre\s*\(\s*[\w.]+\s*\)")


@dataclass(frozen=True)
class _Clause:
    condition: str
    values: dict[str, str]


def with_whens_as_equations(texts: Texts, variable: str) -> Texts:
    """Return algorithms that set this variable, and hold nothing but such clauses, as equations."""
    return {
        path: apply_edits(text, _sections(text, without_words(text), variable)) if variable in text else text
        for path, text in texts.items()
    }


def _sections(text: str, bare: str, variable: str) -> Iterator[Edit]:
    for begun in _SECTION.finditer(bare):
        over = _NEXT.search(bare, begun.end())
        end = over.start() if over is not None else len(bare)
        clauses = _clauses(text, bare, begun.end(), end)
        if clauses and any(variable in clause.values for clause in clauses) and _is_simultaneous(clauses):
            yield begun.start(), end, f"equation {' '.join(_written(clauses))} "


def _clauses(text: str, bare: str, at: int, end: int) -> list[_Clause]:
    """Return the clauses of a section; none where it holds anything else."""
    found = []
    while bare[at:end].strip():
        when = _WHEN.match(bare, at, end)
        if when is None or _NESTED.search(when[2]) or _NESTED.search(when[1]):
            return []
        values: dict[str, str] = {}
        place = when.start(2)
        while bare[place : when.end(2)].strip():
            after = end_of_argument(bare, place, ";")
            statement = _SET.match(bare, place, after)
            if statement is None or statement[1] in values:
                return []
            # descriptions of statements are blank, and mean nothing
            value = re.sub(r"\"[^\"]*\"\s*$", "", text[statement.start(2) : after].rstrip())
            values[statement[1]] = value.strip()
            place = after + 1
        found.append(_Clause(text[when.start(1) : when.end(1)].strip(), values))
        at = when.end()
    return found


def _is_simultaneous(clauses: list[_Clause]) -> bool:
    """Return whether nothing asks for the new value of a variable that several set, or for one that is set behind
    it.
    """
    times: dict[str, int] = {}
    for clause in clauses:
        for name in clause.values:
            times[name] = times.get(name, 0) + 1
    done: set[str] = set()
    for clause in clauses:
        if _read(clause.condition) & set(times) - done or any(times[n] > 1 for n in _read(clause.condition) & done):
            return False
        for name, value in clause.values.items():
            read = _read(value) & set(times)
            if any(times[n] > 1 for n in read) or not read <= done | set(clause.values) or name in read:
                return False
            if any(n in clause.values and n not in done for n in read):
                return False
            done.add(name)
    return True


def _read(formula: str) -> set[str]:
    """Return names whose value at this instant a formula asks for."""
    return set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", _BEFORE.sub(" ", without_words(formula))))


def _written(clauses: list[_Clause]) -> Iterator[str]:
    """Yield clauses of what each sets alone, and one for every variable that several set."""
    shared = {n for k, c in enumerate(clauses) for n in c.values if any(n in d.values for d in clauses[:k])}
    for clause in clauses:
        own = " ".join(f"{name} = {value};" for name, value in clause.values.items() if name not in shared)
        if own:
            yield f"when {clause.condition} then {own} end when;"
    for name in sorted(shared):
        branches = [f"{c.condition} then {name} = {c.values[name]};" for c in reversed(clauses) if name in c.values]
        yield f"when {' elsewhen '.join(branches)} end when;"
