"""The one family of exceptions: what failed, where, by how much, what to do next.

::

    GrisailleError
    ├── ModelError          the model as written cannot be read
    ├── StructureError      the equations do not determine the unknowns
    ├── DataError           signals, times or tables that cannot be used
    ├── SimulationError     a trajectory could not be completed
    ├── EstimationError     an estimation problem cannot be posed or solved
    ├── CompilationError    generated code could not be built
    ├── ArgumentError       a call with arguments that do not exist; a TypeError, too
    └── InsufficientMemoryError   a call that would take more memory than there is; a MemoryError, too
"""

from __future__ import annotations


class GrisailleError(Exception):
    """Base of every error that grisaille raises on purpose."""


class ModelError(GrisailleError):
    """The model as written cannot be read."""


class StructureError(GrisailleError):
    """The equations do not determine the unknowns, or the start values contradict them."""


class DataError(GrisailleError):
    """Signals, times or tables that cannot be used."""


class SimulationError(GrisailleError):
    """A trajectory could not be completed; ``partial`` keeps what was computed."""

    def __init__(self, message: str, partial: object = None) -> None:
        super().__init__(message)
        self.partial = partial


class EstimationError(GrisailleError):
    """An estimation problem cannot be posed or solved."""


class CompilationError(GrisailleError):
    """Generated code could not be built; the message holds the compiler's words."""


class ArgumentError(GrisailleError, TypeError):
    """A call with arguments that do not exist, or without those that it needs."""


class InsufficientMemoryError(GrisailleError, MemoryError):
    """A call that would take more memory than there is; nothing was begun."""


INDEPENDENT_OF_VALUES = (CompilationError, InsufficientMemoryError)
"""Raised whatever the values of the unknowns: a search does not look for others at which a run would do."""
