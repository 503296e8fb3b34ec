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
    methods,
    remove,
    scheme,
    schemes_of,
)
from grisaille.compilation.schemes.tableau import Tableau, embedded_pair
from grisaille.compilation.schemes.tableau_source import tableau_source

__all__ = [
    "AUTO",
    "EXPLICIT",
    "FROZEN",
    "FROZEN_EXPLICIT",
    "FROZEN_IMPLICIT",
    "IMPLICIT",
    "Among",
    "Scheme",
    "Tableau",
    "add",
    "all_schemes",
    "embedded_pair",
    "explicit_scheme",
    "methods",
    "remove",
    "scheme",
    "schemes_of",
    "tableau_source",
]  # fmt: skip
