"""The names that `grisaille.compilation.schemes` exports."""

from grisaille.compilation.schemes.scheme import Scheme as Scheme, explicit_scheme as explicit_scheme
from grisaille.compilation.schemes.table import (
    AUTO as AUTO,
    EXPLICIT as EXPLICIT,
    FROZEN as FROZEN,
    FROZEN_EXPLICIT as FROZEN_EXPLICIT,
    FROZEN_IMPLICIT as FROZEN_IMPLICIT,
    IMPLICIT as IMPLICIT,
    Among as Among,
    add as add,
    all_schemes as all_schemes,
    find_scheme as find_scheme,
    methods as methods,
    remove as remove,
    schemes_of as schemes_of,
)
from grisaille.compilation.schemes.tableau import Tableau as Tableau, embedded_pair as embedded_pair
