"""The laws of outputs as a fit found them: ``Student(df=4, scale=0.42)``, with estimates in place of parameters."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.estimation.measurements.law_properties import laws_of
from grisaille.estimation.measurements.sample_formulas import SampleFormula
from grisaille.model.measurement.distributions import law_text
from grisaille.model.notation.text import render
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    from grisaille.estimation.fitted import Fitted
    from grisaille.model.flat import FlatModel


def declared_laws(fit: Fitted) -> dict[str, str]:
    """Return the law of each output that declares one, in words.

    What is a formula of variables or of time, or differs between experiments, stays a formula.
    """
    flat = structure_of(fit.settled_model).model
    local = {u.target for u in fit.estimate.unknowns if u.experiment is not None}
    local |= {name for e in fit.experiments for name in e.constants}
    return {name: law_text(law, partial(_shown, flat, local)) for name, law in laws_of(fit.estimate).items()}


def _shown(flat: FlatModel, local: set[str], value: Any) -> str:
    formula = SampleFormula.of(flat, value)
    if formula.needs or formula.depends_on(tuple(local)) or formula.follows_time:
        return render(value)
    found = evaluate_parameters(flat)
    known = dict(zip(found.names, found.values.tolist(), strict=True))
    p = np.array([known[n] for n in flat.parameters])
    return f"{float(formula.values(p, np.zeros((1, 0)), np.zeros(1))[0]):.6g}"
