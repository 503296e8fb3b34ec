"""Programs of direct collocation with other options: on other elements, without bounds of states."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from grisaille.collocation.direct import DirectProgram


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


def _changed(program: DirectProgram, **options: Any) -> DirectProgram:
    other = copy.copy(program)
    other.options = replace(program.options, **options)
    return other
