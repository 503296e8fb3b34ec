"""Programs of direct collocation with other options: on other elements, another criterion, unknowns held."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from grisaille.collocation.direct.direct import DirectProgram


def on_elements(program: DirectProgram, pieces: int) -> DirectProgram:
    """The same program, on the elements that a solution with so many pieces ended with."""
    if program.options.pieces == pieces:
        return program
    return _changed(program, pieces=pieces, longest=program.options.longest / pieces)


def evaluated_program(program: DirectProgram) -> DirectProgram:
    """The program that has the paths of a fit: the marginal likelihood does not keep bounds of states."""
    if program.options.criterion != "laplace" or not program.options.state_bounds:
        return program
    return _changed(program, state_bounds={})


def with_held(program: DirectProgram, held: Mapping[int, float]) -> DirectProgram:
    """The same program with some unknowns at given values."""
    other = copy.copy(program)
    lower, upper = (b.copy() for b in program.bounds)
    lower[list(held)] = upper[list(held)] = list(held.values())
    other.bounds = lower, upper
    return other


def by_marginal_likelihood(program: DirectProgram) -> DirectProgram:
    """The same program with paths integrated out."""
    return _changed(program, criterion="laplace")


def _changed(program: DirectProgram, **options: Any) -> DirectProgram:
    other = copy.copy(program)
    other.options = replace(program.options, **options)
    return other
