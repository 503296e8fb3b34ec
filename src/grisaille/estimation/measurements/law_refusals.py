"""Refuse what laws of measurements cannot be combined with: methods for normal noise alone, weights, impossible
values.
"""

from __future__ import annotations

from collections.abc import Mapping

from grisaille.bound_experiment.data_matrix import OutputSamples
from grisaille.errors import DataError, EstimationError
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.measurements.law_properties import name_of
from grisaille.estimation.measurements.output_law import OutputLaw, output_laws
from grisaille.laws import Law
from grisaille.model.measurement.noise_covariances import correlations_of


def refuse_laws(method: Estimator, question: FitRequest) -> None:
    """Refuse outputs that declare laws where the method knows normal noise alone."""
    flat = question.structure.model
    named = [n for n in question.outputs if flat.outputs[n].distribution is not None]
    if not named or method.takes_laws:
        return
    law = type(flat.outputs[named[0]].distribution).__name__
    remedy = (
        "use gr.Collocation(), which integrates over the disturbances by Laplace's method, or give the output normal "
        "noise of the same size, such as noise=sqrt(formula) for counts, where that is near enough"
        if flat.disturbances
        else "use gr.OutputError()"
    )
    raise EstimationError(
        f"Output '{named[0]}' is measured by the law {law}, and gr.{type(method).__name__} takes measurements "
        f"to be normal: {remedy}."
    )


def refuse_kinks(laws: Mapping[str, OutputLaw]) -> None:
    """Refuse laws with kinks where a criterion is expanded around trajectories."""
    for output, law in laws.items():
        if not law.law.is_smooth:
            name = type(law.law).__name__
            raise EstimationError(
                f"Output '{output}' is measured by the law {name}, whose log-density has a kink, and gr.Collocation "
                f"integrates over trajectories by slopes and curvatures: take gr.laws.Student(df=4, scale=…), which "
                f"has tails of its own, in place of {name}."
            )


def refuse_unknown_covariances(method: Estimator, question: FitRequest) -> None:
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


def refuse_moving_limits(question: FitRequest) -> None:
    """Refuse estimated unknowns and predictions in the limits of values: bounds, steps, numbers of trials."""
    flat = question.structure.model
    estimated = {u.target for u in question.unknowns if u.kind == "parameter"}
    for output, law in output_laws(flat, question.outputs).items():
        for path in law.law.held_arguments:
            if path not in law.formulas:
                continue
            formula = law.formulas[path]
            moving = [n for n in formula.parameters if n in estimated] + [
                n for n in formula.needs if n not in flat.inputs
            ]
            if moving:
                what = "is estimated" if moving[0] in estimated else "is predicted"
                raise EstimationError(
                    f"'{path}' of the law {type(law.law).__name__} of output '{output}' contains '{moving[0]}', which "
                    f"{what}, and where values can lie is known before a fit: give a number, or a column of the data "
                    f"through an input, {path.rpartition('.')[2]}=gr.Input()."
                )


def refuse_values(case: ExperimentTerm, s: OutputSamples, law: Law) -> None:
    """Refuse measurements that a law cannot have given, and limits, steps and numbers of trials that make no law."""
    broken = law.refused_arguments()
    if broken is not None:
        k, why = broken
        raise DataError(
            f"Experiment '{case.name}': there is no law {name_of(law)} of '{s.output}' at t = {case.grid[s.rows[k]]:g}"
            f", where {why}. Mend the column or the formula that this number comes from, or make the sample NaN."
        )
    found = law.refused_values(s.values)
    if found is not None:
        k, why = found
        raise DataError(
            f"Experiment '{case.name}': the sample of '{s.output}' at t = {case.grid[s.rows[k]]:g} {why}, as the law "
            f"{type(law).__name__} has it. Mend the data, or give the output another distribution."
        )


def refuse_weights(case: ExperimentTerm, laws: Mapping[str, OutputLaw]) -> None:
    """Refuse weights, which are factors of residuals, beside laws that have none."""
    for s in case.samples:
        if s.output in laws and (s.weights != 1.0).any():
            raise EstimationError(
                f"Experiment '{case.name}' gives weights to '{s.output}', which multiply residuals, and a likelihood "
                f"by laws ({type(laws[s.output].law).__name__}) or of noise that outputs share has none: leave samples "
                f"out as NaN, or write what you know of their scatter into the law, e.g. "
                f"gr.laws.Student(df=4, scale=formula), noise=formula."
            )
