"""A start in words: which wishes were met, which were not, and what begins at zero because nothing was declared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.structure.starts.initialization import ConsistentStart, Initializer

MAX_SHOWN = 6
NOTABLE_DEVIATION = 1e-6
"""Relative deviation from a declared start that is no rounding of numbers."""
LARGE_DEVIATION = 1e-2
"""Relative deviation that is no rounding of a start to a few digits either."""


def describe_start(initializer: Initializer, t: float, u: np.ndarray, p: np.ndarray, start: ConsistentStart) -> str:
    """Return a start without demands, as ``Initializer.solve`` found it."""
    missed = "; ".join(f"{n} declared {a:g}, got {b:g}" for n, (a, b) in start.guesses_missed.items())
    algebraic = [f"{n} declared {a:g}, is {b:g}" for n, (a, b) in initializer.algebraic_missed(t, u, p, start).items()]
    declared = len(initializer.declared.names) - len(algebraic)
    met = "all declared starts of states are met" if algebraic else "all declared starts are met"
    parts = [f"adjusted: {missed}" if missed else met if declared else ""]
    if algebraic:
        parts.append(f"algebraic variables follow from the equations: {_listed(algebraic)}")
    zero = [n for n in initializer.undeclared_states({}) if n not in start.undeclared]
    if zero:
        verb = "begins" if len(zero) == 1 else "begin"
        parts.append(f"without a declared start {_listed(zero)} {verb} at zero")
    if start.undeclared:
        values = [f"{n} = {v:g}" for n, v in start.undeclared.items()]
        parts.append(f"without a declared start, and held off zero by the equations: {_listed(values)}")
    if start.undecided:
        parts.append(start.undecided)
    if start.note:
        parts.append(start.note)
    return "; ".join(part for part in parts if part) or "nothing to declare: there are no states"


def missed_sentence(start: ConsistentStart, least: float = NOTABLE_DEVIATION) -> str:
    """Return which declared starts a start does not meet, and by how much; empty where all deviations are below
    ``least``, relative to the values.
    """
    missed = {n: (a, b) for n, (a, b) in start.guesses_missed.items() if abs(b - a) > least * max(abs(a), abs(b))}
    if not missed:
        return ""
    texts = [f"{n} begins at {b:.6g} instead of {a:.6g}" for n, (a, b) in missed.items()]
    verb = "a declared start is" if len(missed) == 1 else f"{len(missed)} declared starts are"
    return f"{verb} not met: {_listed(texts)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_SHOWN]) + (", …" if len(names) > MAX_SHOWN else "")
