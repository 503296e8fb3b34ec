"""Units that stand in the headers of columns: ``T [degC]``, and of times ``t (h)`` too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from grisaille.errors import DataError
from grisaille.experiment.times.clock import UNITS

IN_BRACKETS = re.compile(r"^.*?\S\s*\[\s*([^\[\]]*[^\[\]\d\s][^\[\]]*?)\s*\]\s*$")
IN_PARENTHESES = re.compile(r"^.*?\S\s*\(\s*([^()]+?)\s*\)\s*$")


def units_in_headers(headers: Iterable[object]) -> dict[str, str]:
    """Return the units of those columns that name one; in parentheses only units of time count as units."""
    found = {}
    for header in headers:
        if not isinstance(header, str):
            continue
        brackets, parentheses = IN_BRACKETS.match(header), IN_PARENTHESES.match(header)
        if brackets:
            found[header] = brackets[1]
        elif parentheses and parentheses[1] in UNITS:
            found[header] = parentheses[1]
    return found


def refuse_other_time_unit(time: str, unit: str | None, named: Mapping[str, str]) -> None:
    """Refuse numbers whose unit is given as another one than their column names."""
    own = named.get(time, "")
    if unit is not None and own in UNITS and unit in UNITS and UNITS[own] != UNITS[unit]:
        raise DataError(
            f"The column of times, '{time}', is in {own} by its header or the row below it, and unit='{unit}' is "
            f"given: numbers are not converted. Leave unit= out, or convert the column and rename it."
        )
