"""The C text of a model's functions with the user's words as comments.

Beside what is read and written: ``x[3]`` is a state, ``out[0]`` of ``gr_F`` a rate, with the equations that it follows
from. Nothing but comments is added (``comments.py``), and only where code is to be looked at: the text that is
compiled otherwise holds nothing that a user named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import casadi as ca

from grisaille.compilation.debugging.comments import c_comment
from grisaille.compilation.derivatives import SPARSE_MATRICES
from grisaille.structure.jets import derivative_text
from grisaille.structure.system import System

MEANINGS = {
    "F": "rates of the states, then what is left of equations that are solved by iteration",
    "J": "derivatives of gr_F by states and unknowns",
    "C": "hidden constraints, on which steps are projected",
    "CJ": "their derivatives by states",
    "O": "what is observed",
    "S": "gaps of switches",
    "B": "gaps of bends",
    "BW": "values that are whole at a bend",
    "G": "gaps of relations that are held between events",
    "GD": "their rates",
    "GJ": "their derivatives by states and unknowns",
    "GP": "their derivatives by parameters",
    "GB": "bends of these gaps",
    "GW": "values that are whole at such a bend",
    "W": "conditions of events, then what they remember",
    "R": "what events set",
    "RD": "rates of what events set",
    "RJ": "derivatives of what events set, by states and unknowns",
    "RP": "derivatives of what events set, by parameters",
    "T": "instants of ticks",
    "TP": "their derivatives by parameters",
    "FP": "derivatives of gr_F by parameters",
    "CP": "derivatives of hidden constraints by parameters",
    "OJ": "derivatives of what is observed, by states and unknowns",
    "OP": "derivatives of what is observed, by parameters",
}

_FUNCTION = re.compile(r"(?:\w+ )+gr_([A-Z]+)(?:_\d+)?\(.*\) \{$")
_READ = re.compile(r" +const double \w+ = ([xzup])\[(\d+)\];$")
_WRITTEN = re.compile(r" +(?:\{.*)?out\[(\d+)\] = [^;]*;(?: \})?$")
_LOOP = re.compile(r" +for \(long k = 0; k < (\d+); k\+\+\) \{.*out\[(\d+) \+ \d+ \* k\] = [^;]*; \}$")


def annotate_source(text: str, system: System, functions: Mapping[str, ca.Function], sparse: bool = False) -> str:
    """Return the text with comments; ``sparse`` where matrices are written as their nonzeros."""
    words = _Words(system, functions, sparse)
    lines, name = [*words.names()], ""
    for line in text.split("\n"):
        if (found := _FUNCTION.fullmatch(line)) is not None:
            if found[1] != name:
                name = found[1]
                lines += words.heading(name)
            lines.append(line)
        elif (found := _READ.fullmatch(line)) is not None:
            lines.append(_beside(line, words.read(found[1], int(found[2]))))
        elif (found := _LOOP.fullmatch(line)) is not None:
            first, more = words.written(name, int(found[2])), int(found[1]) - 1
            lines.append(_beside(line, first and f"{first}; and {more} more like it"))
        elif (found := _WRITTEN.fullmatch(line)) is not None:
            lines.append(_beside(line, words.written(name, int(found[1]))))
        else:
            lines.append(line)
    return "\n".join(lines)


def _beside(line: str, words: str) -> str:
    return f"{line} {c_comment(words)}" if words else line


class _Words:
    """What arguments and results of a system's functions are called."""

    def __init__(self, system: System, functions: Mapping[str, ca.Function], sparse: bool) -> None:
        self.system, self.functions, self.sparse = system, functions, sparse
        self._patterns: dict[str, tuple[int, list[int], list[int]]] = {}
        states, implicit = _sized(system.state_names, system.nx), _sized(system.implicit_names, system.nz)
        parameters, observed = _sized(system.parameter_names, system.np), _sized(system.observed_names, system.ny)
        self.arguments = {
            "x": states, "z": implicit, "p": parameters,
            "u": [derivative_text(s.name, s.order) for s in system.signals],
        }  # fmt: skip
        residuals = [t and f"residual of {t}" for t in _sized(system.residual_texts, system.nz)]
        hidden = [t and f"residual of {t}" for t in _sized(system.constraint_texts, system.nc)]
        gaps, r = [mode.text for mode in system.modes], system.reactions
        ticks = [] if r is None else [tick.text for tick in r.ticks]
        targets = [] if r is None else [[*states, *parameters][k] for k in r.targets]
        self.rows: dict[str, Sequence[str]] = {
            "F": [*map(self._told, states), *(t and f"0 = {t}" for t in residuals)],
            "C": [t and f"0 = {t}" for t in hidden], "O": [n if n in states else self._told(n) for n in observed],
            "G": gaps, "GD": gaps, "W": () if r is None else r.texts, "T": ticks, "R": targets, "RD": targets,
        }  # fmt: skip
        left, unknowns = [*map(self._rate, states), *residuals], [*states, *implicit]
        self.matrices: dict[str, tuple[Sequence[str], Sequence[str]]] = {
            "J": (left, unknowns), "FP": (left, parameters), "CJ": (hidden, states), "CP": (hidden, parameters),
            "OJ": (observed, unknowns), "OP": (observed, parameters), "GJ": (gaps, unknowns), "GP": (gaps, parameters),
            "RJ": (targets, unknowns), "RP": (targets, parameters), "TP": (ticks, parameters),
        }  # fmt: skip

    def names(self) -> list[str]:
        """Return what the arguments are."""
        titles = {"x": "states", "z": "unknowns solved by iteration", "u": "signals", "p": "parameters"}
        lines = []
        for argument, title in titles.items():
            if self.arguments[argument]:
                lines.append(c_comment(f"{argument}: {title}"))
                lines += [c_comment(f"  {argument}[{k}] = {name}") for k, name in enumerate(self.arguments[argument])]
        return lines

    def heading(self, name: str) -> list[str]:
        """Return what a function gives, and the equations that it was made of."""
        lines = [c_comment(f"gr_{name}: {MEANINGS[name]}")] if name in MEANINGS else []
        if name not in ("F", "O"):
            return lines
        made = self.system.state_names if name == "F" else self.system.observed_names
        told = (self.system.origins[n][1] for n in made if n in self.system.origins)
        origins = dict.fromkeys(origin for origin in told if origin is not None)
        for origin in (o for o in origins if len(o.equations) > 1):
            lines.append(c_comment(f"{', '.join(origin.unknowns)}: solved together from"))
            lines += [c_comment(f"  {text}") for text in origin.equations]
        return lines

    def read(self, argument: str, k: int) -> str:
        names = self.arguments[argument]
        return names[k] if k < len(names) else ""

    def written(self, name: str, k: int) -> str:
        if name in self.rows:
            return self.rows[name][k] if k < len(self.rows[name]) else ""
        if name not in self.matrices or name not in self.functions:
            return ""
        rows, columns = self.matrices[name]
        row, column = self._place(name, k)
        of, by = rows[row] if row < len(rows) else "", columns[column] if column < len(columns) else ""
        return f"d({of})/d({by})" if of and by else ""

    def _place(self, name: str, k: int) -> tuple[int, int]:
        """Return row and column of what is written at a place of a matrix."""
        if name not in self._patterns:
            pattern = self.functions[name].sparsity_out(0)
            triplet = pattern.get_triplet() if self.sparse and name in SPARSE_MATRICES else ([], [])
            self._patterns[name] = (max(pattern.size1(), 1), *triplet)
        height, rows, columns = self._patterns[name]
        return (rows[k], columns[k]) if rows else (k % height, k // height)

    def _rate(self, state: str) -> str:
        return self.system.origins[state][0] if state in self.system.origins else state and f"rate of {state}"

    def _told(self, name: str) -> str:
        """Return a state's rate, or another unknown, and the equation it follows from."""
        shown, origin = self.system.origins.get(name, (name, None))
        if origin is None:
            return shown
        count = len(origin.equations)
        return f"{shown}, from {origin.equations[0] if count == 1 else f'{count} equations that are solved together'}"


def _sized(names: Sequence[str], size: int) -> list[str]:
    """Return names for so many entries; nothing where a system does not name them all."""
    return list(names) if len(names) == size else [""] * size
