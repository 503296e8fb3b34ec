"""The C of a model for people: what a run is built from, with the user's words as comments."""

from __future__ import annotations

from importlib import resources

from grisaille.compilation.debugging.comments import c_comment
from grisaille.compilation.derivatives import differentiate
from grisaille.compilation.kernel import sources_with_words
from grisaille.compilation.kernel_source import c_source, linked_sources
from grisaille.compilation.schemes import EXPLICIT, Scheme
from grisaille.compilation.sparse.source import is_worth_it
from grisaille.structure.reduction import Structure
from grisaille.structure.system import System

LINKED_FILES = ("integrator.c", "functions.c", "by_parameters.c", "solvers.c")
"""Parts of large models, in the order of ``linked_sources``."""
FUNCTIONS_FILE = slice(1, 2)


def readable_files(structure: Structure, scheme: Scheme | None) -> dict[str, str]:
    """Return texts by the names of their files: those that the scheme is built from, or the functions of the model
    alone.
    """
    events = structure.jumps.events
    system = structure.system if events is None else events.system
    lines = [c_comment(f"{structure.model.name}: {_what(scheme)}"), c_comment(f"gr_….h: {_headers()}")]
    parts = _functions(system) if scheme is None else [part.text for part in sources_with_words(system)(scheme)]
    names = ["model.c"] if len(parts) == 1 else LINKED_FILES
    return {name: "\n".join([*lines, text]) for name, text in zip(names, parts, strict=True)}


def _functions(system: System) -> list[str]:
    if not is_worth_it(system):
        return [c_source(system, False, differentiate(system), words=True)]
    linked = linked_sources(system, differentiate(system, sparse=True), words=True)
    return [part.text for part in linked(EXPLICIT)[FUNCTIONS_FILE]]


def _what(scheme: Scheme | None) -> str:
    return "the functions of (t, x, z, u, p)" if scheme is None else f"what the {scheme} method is built from"


def _headers() -> str:
    return str(resources.files("grisaille.compilation") / "kernels")
