"""What does not move the mean is refused however few realizations there are; what moves it a little is not."""

from __future__ import annotations

import pytest
from estimators.simulated_pem.mean_models import TIMES, Drifting, record

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError


class Mixed(gr.Model):
    """x' = −x + u + w + 0.2 w²: each realization moves with the scale of w, and their mean a little."""

    x = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=1.0)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -x + u + w + 0.2 * w**2]


@pytest.mark.parametrize("options", [{"realizations": 4}, {"realizations": 4, "antithetic": True}])
def test_scale_in_a_linear_model_is_refused(options: dict[str, int]) -> None:
    data = record(Drifting(), 3, TIMES[:101])
    with pytest.raises(EstimationError, match=r"does not depend on 'scale\(w\)' .*\(128 realizations\)"):
        gr.fit(Drifting(), data, ["a", "scale(w)"], gr.SimulatedPEM(threads=1, **options))


def test_a_small_effect_is_noted_not_refused() -> None:
    """Four realizations could not tell; two halves of 64 do."""
    data = record(Mixed(), 3, TIMES[:101])
    method = gr.SimulatedPEM(realizations=4, seed=2, threads=1)
    fit = gr.fit(Mixed(), data, ["scale(w)"], method, guess={"scale(w)": 0.8})
    assert any(n.startswith("the mean hardly depends on scale(w) at the guess") for n in fit.notes)
