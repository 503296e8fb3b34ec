"""What ``gr.Collocation()`` is: the marginal likelihood, which does not lean, by splines and by elements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError

TIMES = np.linspace(0.0, 40.0, 201)


class Drifting(gr.Model):
    """A process that forgets where it was at a rate a."""

    a = gr.Parameter(1.0, "1/s", bounds=(1e-3, 50.0))
    size = gr.Parameter(1.0)
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=size)
    y = gr.Output(x, noise=0.2 * size)
    equations = [der(x) == -a * x + w]


class Coloured(gr.Model):
    """The same behind a filter: elements instead of splines."""

    a = gr.Parameter(1.0, "1/s", bounds=(1e-3, 50.0))
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=5.0), scale=1.0)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -a * x + w]


def record(size: float = 1.0, rate: float = 1.0, bandwidth: float | None = None, seed: int = 0) -> gr.Experiment:
    """By the exact recursion in NumPy; coloured noise on a grid twenty times as fine."""
    random = np.random.default_rng(seed)
    fine = 1 if bandwidth is None else 20
    h, x, w, states = TIMES[1] / fine, 0.0, random.normal() * np.sqrt((bandwidth or 0.0) / 2), [0.0]
    for k in range(fine * (len(TIMES) - 1)):
        if bandwidth is None:
            keep = np.exp(-rate * h)
            x = keep * x + np.sqrt((1 - keep**2) / (2 * rate)) * random.normal()
        else:
            x += h * (w - rate * x)
            w += -h * bandwidth * w + bandwidth * np.sqrt(h) * random.normal()
        if (k + 1) % fine == 0:
            states.append(x)
    noise = 0.2 if bandwidth is None else 0.05
    return gr.Experiment(TIMES, outputs={"y": size * (np.array(states) + noise * random.normal(size=len(TIMES)))})


@pytest.mark.parametrize("method", [
    gr.Collocation(), gr.Collocation(transcription="direct"), gr.Collocation(optimizer="ipopt"),
], ids=["splines", "elements", "ipopt"])  # fmt: skip
def test_a_rate_of_forgetting_is_the_filters(method: gr.Collocation) -> None:
    """The published criterion ends at the bound of a, as the smoothest path is the likeliest."""
    data = record()
    exact = gr.fit(Drifting(), data, ["a"], gr.KalmanML(initial_covariance={"x": 0.0}), progress=False)
    fit = gr.fit(Drifting(), data, ["a"], method, guess={"a": 0.3}, progress=False)
    assert fit.converged
    assert fit["a"] == pytest.approx(float(exact["a"]), abs=0.01 * exact["a"].std_error)
    assert fit["a"].std_error == pytest.approx(exact["a"].std_error, rel=0.02)
    assert fit.log_likelihood == pytest.approx(exact.log_likelihood, abs=0.01)
    assert not [n for n in fit.notes if n.startswith("bias")]


@pytest.mark.parametrize("size", [1e-9, 1e6])
def test_in_other_units(size: float) -> None:
    fit = gr.fit(Drifting(size=size), record(size), ["a"], gr.Collocation(), progress=False)
    exact = gr.fit(Drifting(size=size), record(size), ["a"], gr.KalmanML(initial_covariance={"x": 0.0}), progress=False)
    assert fit.converged and fit["a"] == pytest.approx(float(exact["a"]), abs=0.01 * exact["a"].std_error)


def test_coloured_noise_and_its_scale() -> None:
    data = record(bandwidth=5.0, seed=2)
    fit, exact = (
        gr.fit(Coloured(), data, ["a", "scale(w)"], method, progress=False)
        for method in (gr.Collocation(intensities="estimate"), gr.KalmanML(initial_covariance={"x": 0.0}))
    )
    assert fit.converged
    for name in ("a", "scale(w)"):
        assert fit[name] == pytest.approx(float(exact[name]), abs=0.02 * exact[name].std_error)


def test_the_name_of_the_criterion() -> None:
    assert gr.Collocation() == gr.Collocation(criterion="laplace") == gr.Collocation(criterion="auto")
    assert gr.Collocation(debias=True) == gr.Collocation(criterion="amle", debias=True)
    assert replace(gr.Collocation(), knots=9).criterion == "laplace"
    with pytest.raises(EstimationError, match="optimizer='ipopt' finds parameters and trajectories together"):
        gr.Collocation(criterion="ipda", optimizer="ipopt")
