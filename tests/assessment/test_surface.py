"""Cost surfaces: exact on linear models, ranges and failures as asked."""

from __future__ import annotations

import numpy as np
import pytest
from assessment.lines import METHOD, KnownLine, X, line_experiment, line_fit
from scipy.stats import chi2

import grisaille as gr
from grisaille.errors import EstimationError


def test_a_linear_model_has_a_quadratic_surface() -> None:
    fit = line_fit(KnownLine)
    surface = fit.surface("p", "q", points=9)
    y = line_experiment().measurements("y").values
    for p in surface.data["p"].values[::4]:
        for q in surface.data["q"].values[::4]:
            exact = 0.5 * np.sum(((y - p - q * X) / 0.1) ** 2)
            assert float(surface.data["objective"].sel(p=p, q=q)) == pytest.approx(exact, rel=1e-9)
    assert np.allclose(surface.data["deviance"], 2 * (surface.data["objective"] - fit.objective), atol=1e-8)
    assert float(surface.data["deviance"].min()) == pytest.approx(0.0, abs=1e-9)


def test_the_ellipse_lies_on_its_contour() -> None:
    fit = line_fit(KnownLine)
    surface = fit.surface("p", "q", points=3)
    y = line_experiment().measurements("y").values
    grown = [np.sum(((y - p - q * X) / 0.1) ** 2) - 2 * fit.objective for p, q in surface.ellipse]
    assert np.allclose(grown, chi2.ppf(0.95, 2))
    assert surface.threshold == pytest.approx(chi2.ppf(0.95, 2))


def test_the_ellipse_lies_on_its_contour_when_noise_is_unknown() -> None:
    fit = line_fit()
    y = line_experiment().measurements("y").values
    least = np.sum(fit.residuals()["residual"] ** 2)
    surface = fit.surface("p", "q", points=3)
    deviance = [12 * np.log(np.sum((y - p - q * X) ** 2) / least) for p, q in surface.ellipse]
    assert np.allclose(deviance, surface.threshold)


def test_others_follow_when_profiled() -> None:
    class Parabola(gr.Model):
        a, b, c = gr.Parameter(0.0), gr.Parameter(0.0), gr.Parameter(0.0)
        x = gr.Input()
        y = gr.Output(a + b * x + c * x**2)

    fit = gr.fit(Parabola(), line_experiment(), ["a", "b", "c"], METHOD)
    held = fit.surface("a", "b", points=3).data["deviance"]
    profiled = fit.surface("a", "b", points=3, others="profiled").data["deviance"]
    assert (profiled <= held + 1e-6).all() and float((held - profiled).max()) > 1


def test_ranges_and_failed_simulations() -> None:
    class Root(gr.Model):
        a, b = gr.Parameter(1.0), gr.Parameter(0.0)
        x = gr.Input()
        y = gr.Output(b + gr.sqrt(a) * x)

    x = np.linspace(1, 2, 10)
    data = gr.Experiment(inputs={"x": x}, outputs={"y": 1.1 * x + 0.01 * np.cos(50 * x)})
    surface = gr.fit(Root(), data, ["a", "b"], METHOD).surface("a", "b", ranges={"a": (-1.0, 2.0)}, points=4)
    assert surface.data["a"].values.tolist() == [-1.0, 0.0, 1.0, 2.0]
    assert np.isnan(surface.data["deviance"].sel(a=-1.0)).all()
    assert "without a simulation" in str(surface)


def test_mistakes() -> None:
    fit = line_fit()
    for call, words in (
        (lambda: fit.surface("p", "p"), "two different unknowns"),
        (lambda: fit.surface("p", "z"), "'z' was not estimated"),
        (lambda: fit.surface("p", "q", others="free"), "'held' or 'profiled'"),
        (lambda: fit.surface("p", "q", ranges={"p": (2, 1)}), "the first must be below"),
    ):
        with pytest.raises(EstimationError, match=words):
            call()
