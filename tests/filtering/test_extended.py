"""The extended filter: equal to the exact one on linear models, on the constraints, with exact derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import atan2, der, exp, sin
from grisaille.errors import EstimationError
from grisaille.estimation.fitting import build_problem

TIMES = np.linspace(0.0, 3.0, 31)


class Pendulum(gr.Model):
    """Cartesian, index 3, pushed by a coloured force that enters linearly."""

    m, g, L = gr.Parameter(0.3), gr.Parameter(9.81), gr.Parameter(2.0)
    k = gr.Parameter(0.4)
    x, y = gr.Variable(start=1.0), gr.Variable(start=-(3.0**0.5))
    vx, vy = gr.Variable(start=0.0), gr.Variable(start=0.0)
    tension = gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.4)
    phi = gr.Output(atan2(x, -y), noise=0.02)
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * vx + w,
        m * der(vy) == tension * y - k * vy - m * g,
        x**2 + y**2 == L**2,
    ]


class Angle(gr.Model):
    """The same pendulum in its angle."""

    m, g, L = gr.Parameter(0.3), gr.Parameter(9.81), gr.Parameter(2.0)
    k = gr.Parameter(0.4)
    a, v = gr.Variable(start=float(np.pi / 6)), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.4)
    phi = gr.Output(a, noise=0.02)
    equations = [der(a) == v, m * L * der(v) == -m * g * sin(a) - k * L * v + w * gr.cos(a)]


def swing(scale=0.4, noise=0.02, seed=2):
    run = gr.simulate(Pendulum().replace({"k": 0.4}), TIMES, realizations=1, seed=seed, parameters={"scale(w)": scale})
    y = run["phi"].values.ravel() + noise * np.random.default_rng(seed).normal(size=len(TIMES))
    return gr.Experiment(TIMES, {}, {"phi": y})


VALUES = {"k": 0.5, "L": 2.05, "scale(w)": 0.35, "noise(phi)": 0.025}


def posed(model, values, data=None, **options):
    return build_problem(model, data or swing(), list(values), gr.KalmanML(**options), guess=values)


def test_gradient_on_the_constraints():
    problem = posed(Pendulum(), VALUES, substeps=2)
    assert type(problem.runner_of(problem.cases[0]).filter).__name__ == "ExtendedFilter"
    found = problem.evaluate(problem.guess).slope
    for k, name in enumerate(VALUES):
        h = 1e-4 * abs(problem.guess[k]) * np.eye(len(VALUES))[k]
        ends = [problem.evaluate(problem.guess + j * h, sensitive=False).objective for j in (2, 1, -1, -2)]
        slope = (8 * (ends[1] - ends[2]) - (ends[0] - ends[3])) / (12 * h[k])
        assert found[k] == pytest.approx(slope, rel=1e-6), name


def test_constraints_hold_after_every_update():
    problem = posed(Pendulum(), VALUES, substeps=2)
    runner = problem.runner_of(problem.cases[0])
    q, dq, x0 = runner._posed(problem.values_for(problem.cases[0], problem.guess), False)
    kept = []
    runner.filter.run(q, dq, x0, states=kept)
    names = list(runner.filter.model.names)
    for means, P in ((kept[0].x_pred, kept[0].P_pred), (kept[0].x_filt, kept[0].P_filt)):
        x, y, vx, vy = (means[:, names.index(n)] for n in ("x", "y", "vx", "vy"))
        assert np.abs(x**2 + y**2 - 2.05**2).max() < 1e-11
        assert np.abs(x * vx + y * vy).max() < 1e-9
        across = np.zeros_like(means)
        across[:, names.index("x")], across[:, names.index("y")] = x, y
        assert np.abs(np.einsum("ti,tij->tj", across, P)).max() < 1e-9 * P.max()


def test_difference_to_the_angle_form_shrinks_with_the_noise():
    """Coordinates matter to an extended filter only as far as noise is not small."""
    gaps = []
    for part in (1.0, 0.5, 0.25):
        values = {"scale(w)": 0.4 * part, "noise(phi)": 0.02 * part}
        data = swing(0.4 * part, 0.02 * part)
        errors = [
            posed(M(), values, data, substeps=4).evaluate(np.array(list(values.values()))).errors
            for M in (Pendulum, Angle)
        ]
        gaps.append(np.abs(errors[0] - errors[1]).max())
    assert gaps[0] < 2e-3
    assert gaps[1] < gaps[0] / 3
    assert gaps[2] < gaps[1] / 3


class Store(gr.Model):
    """Linear, to be filtered both ways."""

    a, b = gr.Parameter(0.7), gr.Parameter(0.4)
    x1, x2 = gr.Variable(start=0.5), gr.Variable(start=-0.2)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.5)
    v = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x2, noise=0.1)
    equations = [der(x1) == -a * x1 + u + w + v, der(x2) == b * (x1 - x2)]


@pytest.mark.parametrize("start", ["first-sample", "stationary", {"x1": 0.2}])
def test_a_linear_model_gives_what_the_exact_filter_gives(start):
    u = np.sin(TIMES)
    y = 0.4 * np.sin(TIMES - 1) + 0.05 * np.cos(31 * TIMES)
    y[5:8] = np.nan
    data = gr.Experiment(TIMES, {"u": u}, {"y": y}, hold="foh")
    values = {"a": 0.8, "scale(w)": 0.4, "noise(y)": 0.1, "start(x1)": 0.4}
    exact = posed(Store(), values, data, initial_covariance=start).evaluate(np.array(list(values.values())))
    gaps = []
    for substeps in (1, 4):
        found = posed(Store(), values, data, initial_covariance=start, filter="extended", substeps=substeps)
        other = found.evaluate(found.guess)
        gaps.append(abs(other.log_likelihood - exact.log_likelihood))
    assert gaps[1] < 3e-7
    assert gaps[0] > 60 * gaps[1]  # fourth order
    assert np.allclose(other.slope, exact.slope, rtol=1e-6, atol=1e-6)


def test_fit_of_a_nonlinear_model():
    data = [swing(seed=seed).replace(name=str(seed)) for seed in (3, 4)]
    guess = {"k": 0.3, "scale(w)": 0.6, "noise(phi)": 0.04}
    fit = gr.fit(Pendulum(), data, estimate=list(guess), method=gr.KalmanML(substeps=2), guess=guess)
    assert fit.converged, fit.status
    for name, value in {"k": 0.4, "scale(w)": 0.4, "noise(phi)": 0.02}.items():
        assert abs(fit[name] - value) < 4 * fit.parameters.std_error[name], name
    assert not any("discretisation" in note for note in fit.notes)
    with pytest.raises(EstimationError, match="States are available for linear models"):
        fit.states()


def test_what_it_refuses():
    class Squared(Pendulum):
        equations = [
            der(Pendulum.x) == Pendulum.vx,
            der(Pendulum.y) == Pendulum.vy,
            Pendulum.m * der(Pendulum.vx) == Pendulum.tension * Pendulum.x + Pendulum.w**2,
            Pendulum.m * der(Pendulum.vy) == Pendulum.tension * Pendulum.y - Pendulum.m * Pendulum.g,
            Pendulum.x**2 + Pendulum.y**2 == Pendulum.L**2,
        ]

    with pytest.raises(EstimationError, match="The disturbance w has no linear effect where it is zero"):
        posed(Squared(), {"m": 0.3})
    with pytest.raises(EstimationError, match="'diffuse' needs a linear model"):
        posed(Pendulum(), VALUES, initial_covariance="diffuse")

    class Stiff(gr.Model):
        x = gr.Variable(start=1.0)
        k = gr.Parameter(1e6)
        w = gr.Disturbance(gr.spectra.white(), scale=0.1)
        y = gr.Output(x, noise=0.1)
        equations = [der(x) == -k * (x + 0.1 * exp(-x)) + w]

    with pytest.raises(EstimationError, match="too stiff for explicit steps"):
        posed(Stiff(), {"k": 1e6}, gr.Experiment(TIMES, {}, {"y": np.ones(31)}))
