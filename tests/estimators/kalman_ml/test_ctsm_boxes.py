"""Six fits of a measured test box by CTSM-R: its likelihoods, its estimates under its conventions, and better optima.

The published estimates stop where levels of noise have lost their slope (p11 near −17: exp(p11) is zero). With these
left where they are, ours agree; with these free, five of the six have a higher maximum elsewhere.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille import der, exp
from grisaille.errors import EstimationError


class Box(gr.Model):
    """Air and wall of a test box."""

    Ti0, Tw0 = gr.Parameter(33.0), gr.Parameter(31.7)
    Ci, Cw = gr.Parameter(5e4), gr.Parameter(2.6e5)
    Riw, Rwe = gr.Parameter(0.044), gr.Parameter(0.24)
    Aw = gr.Parameter(0.08)
    p11, p22, e11 = gr.Parameter(-10.0), gr.Parameter(-5.0), gr.Parameter(-6.0)
    Ti, Tw = gr.Variable(start=Ti0), gr.Variable(start=Tw0)
    Te, Gv, Qi = gr.Input(), gr.Input(), gr.Input()
    w1 = gr.Disturbance(gr.spectra.white(), scale=exp(p11))
    w2 = gr.Disturbance(gr.spectra.white(), scale=exp(p22))
    yTi = gr.Output(Ti, noise=exp(e11 / 2))
    equations = [
        der(Ti) == (Tw - Ti) / (Ci * Riw) + Aw / Ci * Gv + Qi / Ci + w1,
        der(Tw) == (Ti - Tw) / (Cw * Riw) + (Te - Tw) / (Cw * Rwe) + w2,
    ]


class SplitBox(Box):
    """Radiation on both."""

    p = gr.Parameter(0.5)
    equations = [
        der(Box.Ti) == (Box.Tw - Box.Ti) / (Box.Ci * Box.Riw) + Box.Aw * p / Box.Ci * Box.Gv + Box.Qi / Box.Ci + Box.w1,
        der(Box.Tw) == (Box.Ti - Box.Tw) / (Box.Cw * Box.Riw) + (Box.Te - Box.Tw) / (Box.Cw * Box.Rwe)
        + Box.Aw * (1 - p) / Box.Cw * Box.Gv + Box.w2,
    ]  # fmt: skip


class ThreeBox(gr.Model):
    """Air, inner and outer wall."""

    Ti0, Tw10, Tw20 = gr.Parameter(33.0), gr.Parameter(33.0), gr.Parameter(32.0)
    Ci, Cw1, Cw2 = gr.Parameter(1e4), gr.Parameter(2e4), gr.Parameter(2.7e5)
    Riw, Rww, Rwe = gr.Parameter(0.04), gr.Parameter(0.02), gr.Parameter(0.25)
    Aw, p = gr.Parameter(0.09), gr.Parameter(0.01)
    p11, p22, p33, e11 = gr.Parameter(-14.0), gr.Parameter(-13.0), gr.Parameter(-6.0), gr.Parameter(-9.0)
    Ti, Tw1, Tw2 = gr.Variable(start=Ti0), gr.Variable(start=Tw10), gr.Variable(start=Tw20)
    Te, Gv, Qi = gr.Input(), gr.Input(), gr.Input()
    w1 = gr.Disturbance(gr.spectra.white(), scale=exp(p11))
    w2 = gr.Disturbance(gr.spectra.white(), scale=exp(p22))
    w3 = gr.Disturbance(gr.spectra.white(), scale=exp(p33))
    yTi = gr.Output(Ti, noise=exp(e11 / 2))
    equations = [
        der(Ti) == (Tw1 - Ti) / (Ci * Riw) + Aw * p / Ci * Gv + w1,
        der(Tw1) == (Ti - Tw1) / (Cw1 * Riw) + Qi / Cw1 + (Tw2 - Tw1) / (Cw1 * Rww) + Aw * (1 - p) / Cw1 * Gv + w2,
        der(Tw2) == (Tw1 - Tw2) / (Cw2 * Rww) + (Te - Tw2) / (Cw2 * Rwe) + w3,
    ]


class FourBox(gr.Model):
    """Air, heater, inner and outer wall."""

    Ti0, Th0, Tw10, Tw20 = gr.Parameter(33.0), gr.Parameter(69.0), gr.Parameter(33.0), gr.Parameter(32.0)
    Ci, Ch, Cw1, Cw2 = gr.Parameter(2.8e4), gr.Parameter(300.0), gr.Parameter(1e5), gr.Parameter(2e5)
    Riw, Rih, Rww, Rwe = gr.Parameter(0.02), gr.Parameter(0.9), gr.Parameter(0.02), gr.Parameter(0.2)
    Aw, p = gr.Parameter(0.13), gr.Parameter(0.01)
    p11, p22, p33, p44, e11 = (gr.Parameter(v) for v in (-20.0, -2.0, -6.0, -6.0, -20.0))
    Ti, Th = gr.Variable(start=Ti0), gr.Variable(start=Th0)
    Tw1, Tw2 = gr.Variable(start=Tw10), gr.Variable(start=Tw20)
    Te, Gv, Qi = gr.Input(), gr.Input(), gr.Input()
    w1 = gr.Disturbance(gr.spectra.white(), scale=exp(p11))
    w2 = gr.Disturbance(gr.spectra.white(), scale=exp(p22))
    w3 = gr.Disturbance(gr.spectra.white(), scale=exp(p33))
    w4 = gr.Disturbance(gr.spectra.white(), scale=exp(p44))
    yTi = gr.Output(Ti, noise=exp(e11 / 2))
    equations = [
        der(Ti) == (Tw1 - Ti) / (Ci * Riw) + p * Aw / Ci * Gv + (Th - Ti) / (Ci * Rih) + w1,
        der(Th) == (Ti - Th) / (Ch * Rih) + Qi / Ch + w2,
        der(Tw1) == (Ti - Tw1) / (Cw1 * Riw) + (Tw2 - Tw1) / (Cw1 * Rww) + (1 - p) * Aw / Cw1 * Gv + w3,
        der(Tw2) == (Tw1 - Tw2) / (Cw2 * Rww) + (Te - Tw2) / (Cw2 * Rwe) + w4,
    ]


class SteppedBox(gr.Model):
    """The box with diffusion that an input raises."""

    Ti0, Tw0 = gr.Parameter(33.0), gr.Parameter(31.7)
    Ci, Cw = gr.Parameter(5e4), gr.Parameter(2.6e5)
    Riw, Rwe = gr.Parameter(0.044), gr.Parameter(0.24)
    Aw, sigmalevel = gr.Parameter(0.08), gr.Parameter(1.0)
    p11, p22, e11 = gr.Parameter(-10.0), gr.Parameter(-5.0), gr.Parameter(-6.0)
    Ti, Tw = gr.Variable(start=Ti0), gr.Variable(start=Tw0)
    Te, Gv, Qi, stepQi = gr.Input(), gr.Input(), gr.Input(), gr.Input()
    w1, w2 = gr.Disturbance(gr.spectra.white()), gr.Disturbance(gr.spectra.white())
    yTi = gr.Output(Ti, noise=exp(e11 / 2))
    level = 1 + stepQi * sigmalevel
    equations = [
        der(Ti) == (Tw - Ti) / (Ci * Riw) + Aw / Ci * Gv + Qi / Ci + level * exp(p11) * w1,
        der(Tw) == (Ti - Tw) / (Cw * Riw) + (Te - Tw) / (Cw * Rwe) + level * exp(p22) * w2,
    ]


BOXES = {
    "TiTw": (Box, 1e-6), "TiTw_GinTw": (SplitBox, 1e-6), "TiTw2_QinTw": (ThreeBox, 1e-6), "TiThTw2": (FourBox, 1e-6),
    "TiTw_sigmalevels_a": (SteppedBox, 5e-6), "TiTw_sigmalevels_b": (SteppedBox, 5e-6),
}  # fmt: skip
CTSM = gr.KalmanML(robust=3.0, bounds="transform", penalty=1e-4)
"""As in CTSM-R: Huber's threshold, P₀ from the first sampling interval, the first observation counted, its penalty."""
UNSEEN = {
    "TiTw": ["p11"], "TiTw_GinTw": ["p11"], "TiTw2_QinTw": ["p11", "p22"], "TiThTw2": ["p11", "e11", "p"],
    "TiTw_sigmalevels_a": ["p11"], "TiTw_sigmalevels_b": ["p11", "e11"],
}  # fmt: skip
"""What the published fits left where the likelihood is flat."""


@pytest.fixture(scope="module")
def box(reference_data):
    folder = reference_data / "ctsmr_testbox"
    table = pd.read_csv(folder / "data.csv")
    fits = json.loads((folder / "ctsmr_fits.json").read_text())

    def of(name):
        inputs = ["Te", "Gv", "Qi"] + ["stepQi"] * ("sigma" in name)
        data = gr.Experiment(
            table["t"].to_numpy(),
            {n: table[n].to_numpy() for n in inputs},
            {"yTi": table["yTi"].to_numpy()},
            hold="foh",
        )
        return data, fits[name]

    return of


@pytest.mark.parametrize("name", BOXES)
def test_likelihood_at_published_estimates(box, name):
    data, fit = box(name)
    model, digits = BOXES[name]
    value = gr.evaluate(model(), data, method=CTSM, parameters=fit["estimate"])
    # with its robust loss this is no likelihood to us; to CTSM it is
    assert -value.objective == pytest.approx(fit["loglik"], abs=digits)
    assert np.isnan(value.log_likelihood)


def fitted(box, name, held):
    data, published = box(name)
    estimate = {n: v for n, v in published["estimate"].items() if n not in held}
    bounds = {n: (published["lower"][n], published["upper"][n]) for n in estimate}
    inside = {n: min(max(v, bounds[n][0] + 1e-9), bounds[n][1] - 1e-9) for n, v in estimate.items()}
    model = BOXES[name][0](**{n: published["estimate"][n] for n in held})
    fit = gr.fit(model, data, estimate=list(estimate), method=CTSM, guess=inside, bounds=bounds)
    assert fit.converged, fit.status
    return fit, published


def counted(fit: gr.Fit) -> float:
    """What CTSM calls the log-likelihood: the robust criterion without the penalty of the bounds."""
    return fit.estimate.penalty - fit.objective


@pytest.mark.parametrize("name", BOXES)
def test_estimates_are_the_published_ones_where_these_are_determined(box, name, monkeypatch):
    # CTSM-R's deviations are those of the curvature, ours of the sandwich, since Huber's loss is no likelihood
    monkeypatch.setattr(
        "grisaille.estimators.kalman_ml.filter_conclusion.score_sandwich",
        lambda problem, theta, inverse, horizon: inverse,
    )
    fit, published = fitted(box, name, UNSEEN[name])
    assert counted(fit) > published["loglik"] - BOXES[name][1]
    assert fit.objective < published["objective_f"] + BOXES[name][1]
    for n in fit.names:
        # the heater of the largest model, Rih close to its bound: theirs is not yet at the minimum (−log L + penalty is
        # lower by 5e-4 here), and its deviations are too small
        loose = name == "TiThTw2" and n in ("Rih", "Th0", "Ch", "p22")
        assert abs(fit[n] - published["estimate"][n]) < (0.1 if loose else 0.01) * published["sd"][n], n
        if not loose:
            assert fit.parameters.std_error[n] == pytest.approx(published["sd"][n], rel=0.4), n


@pytest.mark.slow
@pytest.mark.parametrize(("name", "more"), [
    ("TiTw", 5.65), ("TiTw_GinTw", 18.6), ("TiTw2_QinTw", 6.81), ("TiThTw2", 0.0005), ("TiTw_sigmalevels_a", 26.9),
    ("TiTw_sigmalevels_b", 30.1),
])  # fmt: skip
def test_our_own_optimum_is_higher(box, name, more):
    fit, published = fitted(box, name, [])
    assert counted(fit) > published["loglik"] + more


def test_a_robust_criterion_has_no_information_criterion(box):
    fit, _ = fitted(box, "TiTw", ["p11"])
    assert 0 < fit.estimate.penalty < 1e-2
    assert any(note.startswith("penalty:") for note in fit.notes)
    with pytest.raises(EstimationError, match="not one"):
        _ = fit.aic
