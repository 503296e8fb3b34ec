"""The one sentence of methods that compare predictions with data by normal noise alone."""

from __future__ import annotations

from grisaille.errors import EstimationError
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.question import Question


def refuse_laws(method: Estimator, question: Question) -> None:
    """Refuse outputs that declare laws where the method knows normal noise alone."""
    flat = question.structure.model
    named = [n for n in question.outputs if flat.outputs[n].distribution is not None]
    if not named or method.takes_laws:
        return
    law = type(flat.outputs[named[0]].distribution).__name__
    remedy = (
        "The model has disturbances, which gr.OutputError() holds at zero: give the output normal noise of the same "
        "size, such as noise=sqrt(formula) for counts, where that is near enough"
        if flat.disturbances
        else "use gr.OutputError()"
    )
    raise EstimationError(
        f"Output '{named[0]}' is measured by the law {law}, and gr.{type(method).__name__} takes measurements to be "
        f"normal: {remedy}."
    )
