"""``ax=``: every picture can be drawn on the user's own axes, and says how many it needs."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from assessment.lines import METHOD, Line, line_experiment, line_fit
from reporting.fits import tank_fit

import grisaille as gr
from grisaille.errors import DataError
from grisaille.reporting import plot_spectrum, trajectories


def study():
    options = {"runs": 4, "noise": {"y": 0.1}, "executor": "serial"}
    return gr.monte_carlo(Line(p=1.5, q=-0.4), line_experiment(), ["p", "q"], METHOD, **options)


def starts():
    return gr.multistart(Line(), line_experiment(), ["p"], METHOD, sampling=np.array([[0.0], [1.0]]), executor="serial")


def decay():
    class Decay(gr.Model):
        x = gr.Variable(1.0, "m")
        equations = [gr.der(x) == -x]

    return gr.simulate(Decay(), np.linspace(0, 1, 5))


PICTURES = {
    "fit": (2, lambda ax: line_fit().plot(ax=ax)),
    "profile": (1, lambda ax: line_fit().profile("q", points=3).plot(ax=ax)),
    "surface": (1, lambda ax: line_fit().surface("p", "q", points=5).plot(ax=ax)),
    "diagnosis": (4, lambda ax: line_fit().diagnose().plot(ax=ax)),
    "sensitivity": (1, lambda ax: gr.sensitivity(Line(), line_experiment()).plot(ax=ax)),
    "experiment": (2, lambda ax: line_experiment().plot(ax=ax)),
    "structure": (2, lambda ax: gr.analyze(tank_fit().model).plot(ax=ax)),
    "trajectories": (1, lambda ax: trajectories(decay(), ax=ax)),
    "spectrum": (3, lambda ax: plot_spectrum(gr.spectra.lowpass(2.0), ax=ax)),
    "estimates": (2, lambda ax: study().plot(ax=ax)),
    "waterfall": (1, lambda ax: starts().plot(ax=ax)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_own_axes(name: str) -> None:
    count, draw = PICTURES[name]
    figure, axes = plt.subplots(count)
    assert draw(axes) is figure
    assert all(one.has_data() for one in np.atleast_1d(axes))
    assert figure.get_suptitle() == ""
    with pytest.raises(DataError, match=f"{count} panels, but ax= has {count + 1} axes"):
        draw(plt.subplots(count + 1)[1])
    plt.close("all")


def test_a_model_without_equations_has_a_picture_too() -> None:
    assert "nothing to solve" in gr.analyze(Line()).plot().axes[0].texts[0].get_text()


def test_what_is_no_axes_is_refused() -> None:
    with pytest.raises(DataError, match="no matplotlib axes"):
        line_fit().profile("q", points=3).plot(ax="left")


def test_units_of_time_below_the_header_of_a_file() -> None:
    text = "t,u,y\nh,V,m\n0,1,2\n1,1,3\n2,1,4\n"
    options = {"time": "t", "inputs": ["u"], "outputs": ["y"]}
    experiment = gr.Experiment.from_csv(io.StringIO(text), **options)
    assert experiment.plot().axes[-1].get_xlabel() == "time [h]"
    with pytest.raises(DataError, match="is in h by its header or the row below it"):
        gr.Experiment.from_csv(io.StringIO(text), **options, unit="min")
    dates = (
        text.replace("\nh", "\nUTC")
        .replace("\n0", "\n2024-01-01")
        .replace("\n1", "\n2024-01-02")
        .replace("\n2,", "\n2024-01-03,")
    )
    assert gr.Experiment.from_csv(io.StringIO(dates), **options).clock.unit == "s"


def test_residuals_and_sensitivities_in_hours() -> None:
    class Decay(gr.Model):
        a = gr.Parameter(0.7)
        x = gr.Variable(2.0)
        y = gr.Output(x)
        equations = [gr.der(x) == -a * x]

    t = np.linspace(0, 2, 12)
    data = gr.Experiment(t, {}, {"y": 2 * np.exp(-0.6 * t) + 0.01 * np.cos(9 * t)}, unit="h")
    fit = gr.fit(Decay(), data, ["a"], gr.OutputError())
    assert fit.diagnose().plot().axes[0].get_xlabel() == "time [h]"
    assert gr.sensitivity(Decay(), data).plot().axes[-1].get_xlabel() == "time [h]"
