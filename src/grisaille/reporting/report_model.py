"""The model as it was written, and its structure as the package found it."""

from __future__ import annotations

from collections.abc import Iterator

from grisaille.errors import GrisailleError
from grisaille.estimation.fitted import Fitted
from grisaille.markup import Html, joined, tag
from grisaille.model.classes import Model
from grisaille.model.notation.typesetting import equations, symbols
from grisaille.reporting.page import bullets, card, facts, scrolling
from grisaille.structure.analysis import Analysis, analyze


def model_part(fit: Fitted) -> Html:
    """Return equations, symbols, structure."""
    return describe(fit.initial_model)


def describe(model: Model) -> Html:
    content = model._content
    written = card(equations(content), title="Equations")
    tables = card(tag("div", *(scrolling(part) for part in symbols(content)), class_="side-by-side"), title="Symbols")
    return joined((written, tables, card(*_structure(model), title="Structure")))


def _structure(model: Model) -> Iterator[Html | None]:
    try:
        analysis = analyze(model)
    except GrisailleError as error:
        yield tag("p", str(error))
        return
    yield facts(_facts(analysis))
    differentiated = [
        joined((tag("code", text), f" is differentiated {times} time{'' if times == 1 else 's'}"))
        for text, times in analysis.differentiated.items()
    ]
    if differentiated:
        yield tag("h3", "Index reduction")
        yield bullets(differentiated)
    if analysis.hidden_constraints:
        yield tag("h3", "Constraints kept, projected on in every step")
        yield bullets(tag("code", f"0 = {text}") for text in analysis.hidden_constraints)


def _facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    kinds = [block.kind for block in analysis.blocks]
    yield "differential index", str(analysis.index)
    yield "states", ", ".join(analysis.states) or "none: a static model"
    yield "start values to choose", str(analysis.degrees_of_freedom)
    yield (
        "blocks",
        ", ".join(f"{kinds.count(k)} {k}" for k in ("explicit", "linear", "implicit") if k in kinds) or "none",
    )
    yield "starts", analysis.start_note
