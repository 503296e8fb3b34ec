"""Pictures of fits and of what is asked of them: what is drawn, not how it looks."""

from __future__ import annotations

import numpy as np
import pytest
from assessment.lines import METHOD, Line, line_experiment, line_fit

import grisaille as gr
from grisaille.errors import EstimationError

X = np.linspace(-1, 2, 30)


def test_measured_predicted_and_residuals_of_each_experiment() -> None:
    runs = [line_experiment(k, x=X).replace(name=n) for k, n in enumerate("AB")]
    fit = gr.fit(Line(), runs, ["p", "q"], METHOD)
    figure = fit.plot()
    assert len(figure.axes) == 4
    assert [axes.get_title() for axes in figure.axes[:2]] == ["A", "B"]
    measured, predicted = figure.axes[0].lines
    assert np.array_equal(measured.get_ydata(), runs[0].measurements("y").values)
    mine = fit.residuals().query("experiment == 'A'")
    assert np.array_equal(predicted.get_ydata(), mine["predicted"])
    assert np.array_equal(figure.axes[2].lines[1].get_ydata(), mine["residual"])
    assert len(fit.plot(experiments=["B"]).axes) == 2


def test_unknown_names_are_refused() -> None:
    with pytest.raises(EstimationError, match="no output 'z'; it has y"):
        line_fit().plot(outputs=["z"])


def test_units_and_times_are_labelled() -> None:
    class Decay(gr.Model):
        a = gr.Parameter(0.7)
        x = gr.Variable(2.0, "m")
        y = gr.Output(x, unit="m")
        equations = [gr.der(x) == -a * x]

    t = np.linspace(0, 2, 9)
    data = gr.Experiment(t, {}, {"y": 2 * np.exp(-0.6 * t) + 0.01 * np.cos(9 * t)}, unit="h")
    axes = gr.fit(Decay(), data, ["a"], METHOD).plot().axes
    assert axes[0].get_ylabel() == "y [m]" and axes[1].get_xlabel() == "time [h]"


def test_profile_shows_its_limits() -> None:
    found = line_fit().profile("q", points=4)
    axes = found.plot().axes[0]
    drawn = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]
    assert drawn == list(found.interval)
    assert axes.get_xlabel() == "q"


def test_surface_shows_ellipse_and_estimate() -> None:
    found = line_fit().surface("p", "q", points=7)
    axes = found.plot().axes[0]
    drawn = {str(line.get_label()): line.get_xydata() for line in axes.lines}
    assert np.array_equal(drawn["95 % ellipse"], found.ellipse)
    assert tuple(drawn["estimate"][0]) == found.estimate
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("p", "q")


def test_diagnosis_has_four_panels_per_series() -> None:
    figure = gr.fit(Line(), line_experiment(x=X), ["p", "q"], METHOD).diagnose().plot()
    assert [axes.get_title() for axes in figure.axes] == ["residuals", "autocorrelation", "periodogram", "quantiles"]
    assert all(axes.has_data() for axes in figure.axes)


def test_sensitivities_are_lines_by_parameter() -> None:
    found = gr.sensitivity(Line(), line_experiment(x=X))
    axes = found.plot().axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(found.parameters)
    assert len(found.plot(["q"]).axes[0].lines) == 1
    with pytest.raises(EstimationError, match="no sensitivity to 'z'"):
        found.plot(["z"])
