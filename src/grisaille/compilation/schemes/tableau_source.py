"""Tableaux as C text, for gr_explicit.h: their orders, and ``gr_pair``, which gives the one of an order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grisaille.compilation.schemes.tableau import Tableau


def tableau_source(tableaux: Sequence[Tableau]) -> str:
    """Return the C text that precedes ``gr_explicit.h``."""
    if not tableaux:
        return ""
    rows = max(tableau.rows for tableau in tableaux)
    lines = ['#include "gr_tableau.h"', f"#define GR_ROWS {rows}", f"#define GR_LOW_ORDER {tableaux[0].order}",
             f"#define GR_HIGH_ORDER {tableaux[-1].order}"]  # fmt: skip
    for tableau in tableaux:
        lines += _numbers(tableau)
    lines += ["GR_FN gr_tableau gr_pair(long order) {", *(f"  const gr_tableau of_{_structure(t)};" for t in tableaux)]
    high = f"order == {tableaux[-1].order} ? of_{tableaux[-1].order} : " if len(tableaux) > 1 else ""
    return "\n".join([*lines, "  (void)order;", f"  return {high}of_{tableaux[0].order};", "}", ""])


def _numbers(tableau: Tableau) -> list[str]:
    tables: list[tuple[str, Iterable[float]]] = [
        ("a", (v for i in range(1, tableau.rows) for v in tableau.a[i, :i])), ("c", tableau.c), ("e", tableau.e),
        ("near", (float(j) for pair in tableau.near for j in pair)),
    ]  # fmt: skip
    tables += [("e3", tableau.e3)] if tableau.e3 is not None else []
    tables += [("d", tableau.d.ravel())] if len(tableau.d) else []
    return [
        f"GR_TABLE {_name(n, tableau)}[] = {{{', '.join(repr(float(v)) for v in values)}}};" for n, values in tables
    ]


def _structure(tableau: Tableau) -> str:
    """Return the C structure of the order, with the addresses of its numbers."""
    d = _name("d", tableau) if len(tableau.d) else "0"
    e3 = _name("e3", tableau) if tableau.e3 is not None else "0"
    fields = (
        tableau.order, tableau.last, tableau.rows, len(tableau.d), *(_name(n, tableau) for n in ("a", "c", "e")), e3, d,
        _name("near", tableau), *(repr(float(v)) for v in (tableau.beta, tableau.grow, tableau.shrink, tableau.stiff)),
    )  # fmt: skip
    return f"{tableau.order} = {{{', '.join(map(str, fields))}}}"


def _name(table: str, tableau: Tableau) -> str:
    return f"gr_{table}_of_{tableau.order}"
