"""The sentences of methods that compare predictions with data by normal noise alone, output by output."""

from __future__ import annotations

from grisaille.errors import EstimationError
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.question import Question
from grisaille.model.measurement.shared_noise import correlations_of


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


def refuse_unknown_covariances(method: Estimator, question: Question) -> None:
    """Refuse unknown covariances of noise where the method does not estimate them."""
    flat = question.structure.model
    names = correlations_of(flat, question.outputs)
    if not names or method.takes_unknown_covariances:
        return
    better = "gr.KalmanML()" if flat.disturbances else "gr.OutputError()"
    raise EstimationError(
        f"noise_covariance of {flat.name} says that '{names[0]}' is unknown (\"full\"), and gr.{type(method).__name__} "
        f"does not estimate it: use {better}, or leave noise_covariance out, which takes outputs as independent."
    )
