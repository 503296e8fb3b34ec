"""A body that sticks and slips: equal steps would be very many, and what grows is not unstable."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille_reproductions.fladischer_lugre import UNKNOWNS, LuGre
from grisaille_reproductions.fladischer_lugre_fit import EXACT, GUESS, WIDE, record


def test_fit_across_the_onset_of_sliding() -> None:
    """Sensitivities grow 1e7-fold when sliding begins; steps stay adaptive; starts far apart agree."""
    data = [record("A", 7), record("B", 8)]
    fits = [gr.fit(LuGre(), data, UNKNOWNS, guess=g, bounds=WIDE) for g in (GUESS, EXACT)]
    assert all(fit.converged and "unstable" not in " ".join(fit.notes) for fit in fits)
    assert all(c.discretisation.step == 0 for c in fits[0].estimate.cases)
    assert np.allclose(fits[0].estimate.theta, fits[1].estimate.theta, atol=0.01 * fits[0].std_errors)
    assert fits[0].estimate.seconds < 20


def test_derivatives_of_adaptive_steps() -> None:
    """Against central differences of the log likelihood, away from the optimum."""
    data, at = record("B", 8), {**EXACT, "mu": 0.11}
    value = gr.evaluate(LuGre(), data, parameters=at)
    for name in ("b", "mu"):
        step = 1e-3 * at[name]
        moved = [{**at, name: at[name] + s * step} for s in (1, -1)]
        ends = [gr.evaluate(LuGre(), data, parameters=m, estimate=UNKNOWNS) for m in moved]
        slope = -(ends[0].log_likelihood - ends[1].log_likelihood) / (2 * step)
        assert value.gradient[name] == pytest.approx(slope, rel=1e-3)
