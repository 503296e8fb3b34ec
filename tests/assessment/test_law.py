"""One law for intervals, ``fit.test`` and ``gr.compare``: F where noise is estimated, χ² where it is known."""

from __future__ import annotations

import numpy as np
import pytest
from assessment.lines import METHOD, X, line_experiment
from scipy.stats import chi2, f

import grisaille as gr


class Parabola(gr.Model):
    """y = a + b x + c x²."""

    a, b, c = gr.Parameter(0.0), gr.Parameter(0.0), gr.Parameter(0.0)
    x = gr.Input()
    y = gr.Output(a + b * x + c * x**2)


class KnownParabola(Parabola):
    """The same with known noise."""

    y = gr.Output(Parabola.a + Parabola.b * Parabola.x + Parabola.c * Parabola.x**2, noise=0.1)


DATA = line_experiment(seed=8)
Y = DATA.measurements("y").values


def squares(*powers: int) -> float:
    return float(np.linalg.lstsq(np.stack([X**p for p in powers], axis=1), Y, rcond=None)[1][0])


@pytest.mark.parametrize(("held", "kept"), [(["c"], (0, 1)), (["b", "c"], (0,))])
def test_hypotheses_have_the_exact_law_of_a_linear_model(held: list[str], kept: tuple[int, ...]) -> None:
    fit = gr.fit(Parabola(), DATA, ["a", "b", "c"], METHOD)
    less = gr.fit(Parabola(), DATA, [n for n in "abc" if n not in held], METHOD)
    d = len(held)
    exact = f.sf((squares(*kept) / squares(0, 1, 2) - 1) * 9 / d, d, 9)
    assert fit.test(held).p == pytest.approx(exact, rel=1e-6)
    row = gr.compare({"less": less, "more": fit}, nested=[("less", "more")]).tests.iloc[0]
    assert (row.p, row.residual_degrees) == pytest.approx((exact, 9.0), rel=1e-6)
    assert "F with 9 of the residuals" in str(fit.test(held))


def test_a_test_at_the_end_of_an_interval_has_its_level() -> None:
    for model in (Parabola, KnownParabola):
        fit = gr.fit(model(), DATA, ["a", "b", "c"], METHOD)
        for end in fit.intervals(method="profile").loc["c"]:
            assert fit.test({"c": float(end)}).p == pytest.approx(0.05, rel=1e-3)


def test_known_noise_is_chi_square_whatever_the_method() -> None:
    class Decay(gr.Model):
        k = gr.Parameter(0.6, bounds=(0.01, 10.0))
        x = gr.Variable(start=1.0)
        y = gr.Output(x, noise=0.05)
        equations = [gr.der(x) == -k * x]

    t = np.linspace(0, 3, 7)
    data = gr.Experiment(t, {}, {"y": np.exp(-0.5 * t) + 0.05 * np.random.default_rng(2).standard_normal(7)})
    for method in (gr.OutputError(), gr.KalmanML(), gr.Collocation()):
        fit = gr.fit(Decay(), data, ["k"], method)
        assert fit.student == np.inf
        assert fit.profile("k", points=3).threshold == pytest.approx(chi2.ppf(0.95, 1))
    levels = gr.fit(Decay(), data, ["k", "noise(y)"], gr.KalmanML())
    assert levels.student == 5
    assert levels.profile("k", points=3).threshold == pytest.approx(f.ppf(0.95, 1, 5))
