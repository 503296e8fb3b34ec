"""The declared scatter of the outputs of a fit: a law, a level of noise, or nothing; and which of it is estimated.

Sentences on residuals speak of the law that was declared, and tests of their size ask whether anything was estimated
that makes them as large as they are.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.measurements.output_law import OutputLaw
from grisaille.laws import Beta, Binomial, Law, LogNormal, NegativeBinomial, Student
from grisaille.model.measurement.distributions import innermost


def laws_of(estimate: Estimate) -> dict[str, Law]:
    """Return the laws that measured outputs declare, with formulas as arguments; empty of fits with normal noise."""
    if not estimate.cases:
        return {}
    outputs = estimate.cases[0].trial.flat.outputs
    names = dict.fromkeys(s.output for c in estimate.cases for s in c.samples)
    return {n: law for n in names if (law := outputs[n].distribution) is not None}


def leaves_residuals(estimate: Estimate) -> bool:
    """Return whether a fit has residuals of predictions, as squares and laws do; filters have innovations."""
    return estimate.evaluation.is_least_squares or bool(laws_of(estimate))


def has_declared_size(estimate: Estimate, case: ExperimentTerm, output: str) -> bool:
    """Return whether nothing was estimated that makes the residuals of an output as large as they are."""
    mine = [u for u, f in zip(estimate.unknowns, estimate.free, strict=True) if f and u.applies_to(case.name)]
    if output in estimate.noise or any(u.kind == "scale" or (u.kind == "noise" and u.target == output) for u in mine):
        return False
    if not laws_of(estimate):
        return True
    flat = case.trial.flat
    law: OutputLaw = flat.cached_value(("law", output), partial(OutputLaw.of, flat, output))
    inside = {n for formula in law.formulas.values() for n in formula.parameters}
    return not any(u.kind == "parameter" and u.target in inside for u in mine)


def name_of(law: Law) -> str:
    """Return a law's name; of wrapped ones with what they wrap, ``Censored(Poisson)``."""
    inner = getattr(law, "of", None)
    return f"{type(law).__name__}({name_of(inner)})" if isinstance(inner, Law) else type(law).__name__


def heavier(law: Law | None) -> str:
    """Return laws with heavier tails than a given one, written as calls.

    law : None for normal noise
    """
    inner = None if law is None else innermost(law)
    if isinstance(inner, Binomial):
        return "gr.laws.NegativeBinomial(size=…) where few of n count; no other law of counts out of n scatters more"
    if inner is not None and inner.is_discrete:
        same = isinstance(inner, NegativeBinomial)
        return "a smaller size of gr.laws.NegativeBinomial" if same else "gr.laws.NegativeBinomial(size=…)"
    if isinstance(inner, Student):
        return "gr.laws.Student with a smaller df"
    if isinstance(inner, Beta):
        return "a smaller precision of gr.laws.Beta"
    if isinstance(inner, LogNormal):
        return "gr.laws.Student(df=4, scale=…) of logarithms: gr.Output(gr.log(formula)) and logarithms of the data"
    if inner is not None and np.isfinite(np.ravel(inner.support)).any():
        return "one with heavier tails, such as gr.laws.LogNormal(log_std=…)"
    return "gr.laws.Student(df=4, scale=…), the law of data with outliers"


def scatter_beside(law: Law, ratio: float) -> str:
    """Say how wide residuals are beside a law whose numbers were declared, and what to do.

    ratio : root mean square of quantile residuals
    """
    name = name_of(law)
    if not ratio > 1:
        return (
            f"under-dispersed: the scatter is {ratio:.2g} times that of the law {name}: standard errors are too large"
        )
    said = f"over-dispersed: the scatter is {ratio:.2g} times that of the law {name}"
    if isinstance(innermost(law), Binomial):
        return (
            f"{said}: shares vary from sample to sample; gr.OutputError(covariance='sandwich') has errors "
            f"that account for it"
        )
    if law.is_discrete and not isinstance(law, NegativeBinomial):
        return f"{said}: gr.laws.NegativeBinomial(size=…) has a size of its own"
    open_numbers = [n for n in law.arguments if n != law.location_path and n not in law.held_arguments]
    if not open_numbers:
        return said
    return f"{said}: let a parameter stand for {open_numbers[0].rpartition('.')[2]} and estimate it"
