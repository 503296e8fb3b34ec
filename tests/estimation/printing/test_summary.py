"""The table of a fit: columns that hold, words for one, and the law of its intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

import grisaille as gr


class Line(gr.Model):
    a = gr.Parameter(1.0, bounds=(-1e9, 1e9))
    u = gr.Input()
    y = gr.Output(a * u, noise=1e-9)
    equations = []


class Open(Line):
    y = gr.Output(Line.a * Line.u)


def data(scatter=0.0):
    u = np.linspace(1.0, 2.0, 12)
    return gr.Experiment(None, {"u": u}, {"y": 3 * u + scatter * np.cos(40 * u)})


def test_huge_t_values_stay_in_their_column():
    text = str(gr.fit(Line(), data()))
    header, row = (next(x for x in text.splitlines() if x.startswith(start)) for start in (" " * 22, "a "))
    assert "e+" in row
    assert row.rstrip().endswith("0.000")
    assert header.index("  unit") == len(row.rstrip())


def test_known_noise_gives_normal_intervals_and_open_noise_students():
    known, unknown = gr.fit(Line(), data()), gr.fit(Open(), data(0.1))
    for fit, law in ((known, norm), (unknown, t(11))):
        low, high = fit.intervals(0.9).loc["a"]
        assert (high - low) / 2 == pytest.approx(law.ppf(0.95) * fit.parameters.std_error["a"])
    assert known.parameters.upper["a"] - float(known["a"]) == pytest.approx(1.96 * known["a"].std_error, rel=1e-3)


def test_one_sample_is_singular():
    class Two(gr.Model):
        a = gr.Parameter(1.0, bounds=(0.0, 9.0))
        u = gr.Input()
        y = gr.Output(a * u, noise=1.0)
        v = gr.Output(a + u, noise=1.0)
        equations = []

    u = np.arange(1.0, 4.0)
    fit = gr.fit(Two(), gr.Experiment(None, {"u": u}, {"y": 2 * u, "v": [3.0, np.nan, np.nan]}))
    assert "1 sample," in str(fit)
    assert "3 samples," in str(fit)
    assert "(1 sample)" in str(fit.diagnose())
