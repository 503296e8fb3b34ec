"""Integrators as data: one table of schemes, and tableaux of explicit ones."""

from grisaille.compilation.schemes.scheme import Scheme, explicit_scheme
from grisaille.compilation.schemes.table import (
    AUTO,
    EXPLICIT,
    FROZEN,
    FROZEN_EXPLICIT,
    FROZEN_IMPLICIT,
    IMPLICIT,
    Among,
    add,
    all_schemes,
    among,
    methods,
    remove,
    scheme,
)
from grisaille.compilation.schemes.tableau import Tableau, embedded_pair
from grisaille.compilation.schemes.tableau_source import tableau_source

__all__ = [
    "AUTO", "EXPLICIT", "FROZEN", "FROZEN_EXPLICIT", "FROZEN_IMPLICIT", "IMPLICIT", "Among", "Scheme", "Tableau", "add",
    "all_schemes", "among", "embedded_pair", "explicit_scheme", "methods", "remove", "scheme", "tableau_source",
]  # fmt: skip
