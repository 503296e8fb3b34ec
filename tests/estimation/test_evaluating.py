"""``gr.evaluate``: values of criteria without anything unknown, and at the values of fits and their tables."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 4.0, 17)
SEEN = np.exp(-0.6 * TIMES) + 0.05 * np.cos(9 * TIMES)
DATA = gr.Experiment(TIMES, outputs={"y": SEEN}, name="run")
METHODS = [
    gr.OutputError(),
    gr.SimulatedPEM(realizations=4),
    gr.KalmanML(),
    gr.Collocation(),
    gr.Collocation(criterion="laplace", transcription="direct"),
]


class Decay(gr.Model):
    """No parameter is marked as unknown."""

    k, x = gr.Parameter(0.5), gr.Variable(1.0)
    w, y = gr.Disturbance(gr.spectra.white(), scale=0.05), gr.Output(x, noise=0.1)
    equations = [der(x) == -k * x + w]


def test_the_criterion_of_a_model_in_which_nothing_is_unknown() -> None:
    found = gr.evaluate(Decay(), DATA, METHODS[0])
    r = (SEEN - np.exp(-0.5 * TIMES)) / 0.1
    assert found.objective == pytest.approx(0.5 * r @ r, rel=1e-5)
    assert found.log_likelihood == pytest.approx(-0.5 * r @ r - 17 * np.log(0.1 * np.sqrt(2 * np.pi)), rel=1e-5)
    assert (found.gradient, found.names) == ({}, ())
    assert str(found)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_every_method_gives_what_it_gives_at_the_same_values_by_name(method: object) -> None:
    plain, named = gr.evaluate(Decay(), DATA, method), gr.evaluate(Decay(), DATA, method, {"k": 0.5})
    assert plain.objective == pytest.approx(named.objective, rel=1e-9)
    np.testing.assert_allclose(plain.predictions["run"], named.predictions["run"], rtol=1e-9)


def test_open_noise_is_still_found() -> None:
    class Open(Decay):
        y = gr.Output(Decay.x)

    r = SEEN - np.exp(-0.5 * TIMES)
    level = np.sqrt(r @ r / 17)
    found = gr.evaluate(Open(), DATA, METHODS[0])
    assert found.log_likelihood == pytest.approx(-17 * (0.5 + np.log(level * np.sqrt(2 * np.pi))), rel=1e-6)


class TwoLevels(Decay):
    """Open noise of one output, known of the other, and a prior."""

    k = gr.Parameter(0.5, prior=gr.Normal(0.4, 0.1))
    y, z = gr.Output(Decay.x), gr.Output(2 * Decay.x, noise=0.05)
    equations = [der(Decay.x) == -k * Decay.x]


TWICE = 2 * SEEN + 0.03 * np.cos(7 * TIMES)
TWO = gr.Experiment(TIMES, {}, {"y": SEEN, "z": TWICE}, name="run")


@pytest.mark.parametrize("k", [0.3, 0.5, 0.8])
def test_open_noise_is_profiled_in_objective_and_gradient(k: float) -> None:
    """−log L with σ² = Σ e²/N, by NumPy; exactly the function whose slope is told."""

    def value(k: float) -> float:
        e, r = SEEN - np.exp(-k * TIMES), (TWICE - 2 * np.exp(-k * TIMES)) / 0.05
        n, two_pi = len(TIMES), np.log(2 * np.pi)
        levels = 0.5 * n * (np.log(e @ e / n) + 1 + two_pi) + 0.5 * r @ r + n * (np.log(0.05) + 0.5 * two_pi)
        return float(levels + 0.5 * ((k - 0.4) / 0.1) ** 2)

    found = gr.evaluate(TwoLevels(), TWO, gr.OutputError(), {"k": k})
    assert found.objective == pytest.approx(value(k), abs=1e-3)  # of simulations, by their tolerance
    assert found.gradient["k"] == pytest.approx((value(k + 1e-5) - value(k - 1e-5)) / 2e-5, rel=1e-3)


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy", "arctan"])
def test_robust_losses_are_what_is_evaluated(loss: str) -> None:
    method = gr.OutputError(loss=loss, loss_scale=0.7)
    low, here, high = (gr.evaluate(Decay(), DATA, method, {"k": k}) for k in (0.3999, 0.4, 0.4001))
    assert here.gradient["k"] == pytest.approx((high.objective - low.objective) / 2e-4, rel=1e-4)
    plain = gr.evaluate(Decay(), DATA, gr.OutputError(), {"k": 0.4})
    assert here.objective < plain.objective


def test_nothing_is_left_behind_by_an_evaluation() -> None:
    """Twice the same, whatever was evaluated between."""
    method = gr.OutputError()
    first, _, again = (gr.evaluate(TwoLevels(), TWO, method, {"k": k}) for k in (0.5, 0.9, 0.5))
    assert (first.objective, first.gradient) == (again.objective, again.gradient)


def test_a_fit_and_its_table_stand_for_their_values() -> None:
    fit = gr.fit(Decay(), DATA, ["k", "start(x)", "scale(w)"], METHODS[2])
    for given in (fit, fit.parameters, {n: float(fit[n]) for n in fit.names}):
        assert gr.evaluate(Decay(), DATA, METHODS[2], given).log_likelihood == pytest.approx(fit.log_likelihood)


def test_the_level_of_output_error_is_no_value_of_its_own() -> None:
    class Open(gr.Model):
        k, x = gr.Parameter(0.5), gr.Variable(1.0)
        y = gr.Output(x)
        equations = [der(x) == -k * x]

    fit = gr.fit(Open(), DATA, ["k"], METHODS[0])
    assert gr.evaluate(Open(), DATA, METHODS[0], fit.parameters).log_likelihood == pytest.approx(fit.log_likelihood)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3.0, "parameters is 3.0; give a dict of numbers by name"),
        ("table", "a table with the columns k: a fit's own has"),
    ],
)
def test_other_things_are_refused(given: object, said: str) -> None:
    if given == "table":
        given = gr.fit(Decay(), DATA, ["k"], METHODS[0]).covariance
    with pytest.raises(gr.GrisailleError, match=said):
        gr.evaluate(Decay(), DATA, METHODS[0], given)
