"""Explains why the equations of a model do not determine its unknowns, in the user's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from grisaille.errors import StructureError
from grisaille.structure.bipartite_matching import Decomposition
from grisaille.structure.equations import Equations

MAX_SHOWN = 8


def refuse_wrong_count(equations: Equations) -> None:
    """Raise where nothing can be counted: no unknowns but equations, or the other way round."""
    if not equations.rows and equations.unknowns:
        raise StructureError(
            f"{equations.model.name} has the unknowns {_names(equations.unknowns)} but no equations: "
            f"give the class an `equations` list or method."
        )


def explain_singular(equations: Equations, parts: Decomposition) -> NoReturn:
    """Name the over- and the underdetermined part."""
    name = equations.model.name
    count = f"{_number(len(equations.rows), 'equation')} for {_number(len(equations.unknowns), 'unknown')}"
    if equations.aliases:
        count += f" (after merging {_number(len(equations.aliases), 'equal variable')})"
    sentences = [f"The equations of {name} do not determine its unknowns: {count}."]
    for row in equations.repeated:
        sentences.append(f"'{row.text}'{_place(row.source)} only repeats what other equations say.")
    if parts.over_equations:
        texts = [f"'{equations.rows[i].text}'{_place(equations.rows[i].source)}" for i in parts.over_equations]
        unknowns = [equations.unknowns[j] for j in parts.over_unknowns]
        what = f"only the unknowns {_names(unknowns)} are in them" if unknowns else "no unknown is in them"
        extra = len(texts) - len(unknowns)
        sentences.append(
            f"Overdetermined: {_number(len(texts), 'equation')} {_names(texts)}, but {what}. "
            f"Remove {_count(extra, 'equation')}, or turn a parameter or input in them into a variable."
        )
    if parts.under_unknowns:
        unknowns = [equations.unknowns[j] for j in parts.under_unknowns]
        texts = [f"'{equations.rows[i].text}'" for i in parts.under_equations]
        missing = len(unknowns) - len(texts)
        where = f"occur only in {_names(texts)}" if texts else "occur in no equation"
        sentences.append(
            f"Underdetermined: the unknowns {_names(unknowns)} {where}. "
            f"Add {_count(missing, 'equation')}, or declare one of them as gr.Parameter(...) or gr.Input(...)."
        )
        kinds = {row.kind for row in equations.repeated}
        if "flow" in kinds:
            sentences.append(
                "A circuit or mechanism without a reference leaves its potentials open: connect a Ground or Fixed."
            )
        elif "connection" in kinds:
            sentences.append("Two references (Ground, Fixed) may meet at one point: remove one of them.")
        sentences.extend(equations.model.hints)
    raise StructureError("\n  ".join(sentences))


def _number(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _count(n: int, noun: str) -> str:
    return f"one {noun}" if n == 1 else f"{n} {noun}s"


def _place(source: str) -> str:
    return f" ({source})" if source else ""


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    shown = ", ".join(listed[:MAX_SHOWN])
    return f"{{{shown}{f', … {len(listed) - MAX_SHOWN} more' if len(listed) > MAX_SHOWN else ''}}}"
