"""Multiple shooting on the exponential dichotomy of Bock (1983), where single shooting runs away."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.mechanics import Pendulum

import grisaille as gr
from grisaille import der, sin
from grisaille.errors import EstimationError
from grisaille.estimators import build_problem
from grisaille.estimators.output_error import multiple_shooting

TIMES = np.linspace(0.0, 1.0, 21)


class Dichotomy(gr.Model):
    """x1' = x2, x2' = μ² x1 − (μ² + p²) sin pt; sin πt solves it for p = π, beside e^{μt}."""

    mu, p = gr.Parameter(20.0), gr.Parameter(2.0)
    x1, x2 = gr.Variable(0.0), gr.Variable(np.pi)
    y1, y2 = gr.Output(x1), gr.Output(x2)
    equations = [der(x1) == x2, der(x2) == mu**2 * x1 - (mu**2 + p**2) * sin(p * gr.time)]


def measured(noise: float, seed: int = 0) -> gr.Experiment:
    e = noise * np.random.default_rng(seed).standard_normal((2, len(TIMES)))
    return gr.Experiment(
        TIMES, outputs={"y1": np.sin(np.pi * TIMES) + e[0], "y2": np.pi * np.cos(np.pi * TIMES) + e[1]}
    )


UNKNOWNS = ["p", "start(x1)", "start(x2)"]


def test_single_and_multiple_shooting_agree_where_both_work() -> None:
    data = measured(0.05)
    single = gr.fit(Dichotomy(), data, UNKNOWNS, gr.OutputError())
    multiple = gr.fit(Dichotomy(), data, UNKNOWNS, gr.OutputError(shooting="multiple"))
    assert multiple.converged
    assert np.allclose(multiple.estimate.theta, single.estimate.theta, rtol=1e-4, atol=1e-6)
    assert np.allclose(multiple.std_errors, single.std_errors, rtol=1e-3)


def test_dichotomy_too_strong_for_single_shooting() -> None:
    """μ = 60: an error of 1e-16 at the start is 1e10 at the end; single shooting fails and says why."""
    data = measured(0.02, 3)
    single = gr.fit(Dichotomy(mu=60.0), data, UNKNOWNS, gr.OutputError(max_evaluations=100))
    assert not single.converged
    assert "unstable" in single.status and "shooting='multiple'" in single.status
    fit = gr.fit(Dichotomy(mu=60.0), data, UNKNOWNS, gr.OutputError(shooting="multiple", pieces=20))
    assert fit.converged
    assert abs(float(fit["p"]) - np.pi) < 4 * fit["p"].std_error
    assert fit["p"].std_error == pytest.approx(0.003, rel=0.3)


def test_exact_data() -> None:
    fit = gr.fit(Dichotomy(), measured(0.0), UNKNOWNS, gr.OutputError(shooting="multiple"))
    assert float(fit["p"]) == pytest.approx(np.pi, abs=1e-6)


def test_constrained_models_are_refused_by_name() -> None:
    data = gr.Experiment(TIMES, inputs={"u": 0.1}, outputs={"phi": np.zeros(21)})
    with pytest.raises(EstimationError, match="needs independent first-order states, but Pendulum"):
        gr.fit(Pendulum(), data, ["k"], gr.OutputError(shooting="multiple"))


class Disturbed(gr.Model):
    """The same, disturbed in both equations."""

    mu, p = gr.Parameter(40.0), gr.Parameter(2.0, bounds=(0.5, 8.0))
    x1, x2 = gr.Variable(start=0.0), gr.Variable(start=np.pi)
    w1, w2 = gr.Disturbance(gr.spectra.white(), scale=0.05), gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x1, noise=0.05)
    equations = [der(x1) == x2 + w1, der(x2) == mu**2 * x1 - (mu**2 + p**2) * sin(p * gr.time) + w2]


@pytest.fixture(scope="module")
def disturbed() -> gr.Experiment:
    t = np.linspace(0.0, 2.0, 41)
    y = np.sin(np.pi * t) + 0.05 * np.random.default_rng(1).standard_normal(t.size)
    return gr.Experiment(t, outputs={"y": y})


SHOTS = gr.OutputError(shooting="multiple", pieces=20)


def test_pieces_begin_on_the_trajectories_of_a_collocation_fit(disturbed: gr.Experiment) -> None:
    alone = gr.fit(Disturbed(), disturbed, UNKNOWNS, SHOTS, guess={"p": 5.0}, progress=False)
    splines = gr.fit(Disturbed(), disturbed, UNKNOWNS, gr.Collocation(), guess={"p": 5.0}, progress=False)
    fit = gr.fit(Disturbed(), disturbed, UNKNOWNS, SHOTS, guess=splines, progress=False)
    assert fit.converged and alone.converged
    assert fit["p"] == pytest.approx(float(alone["p"]), rel=1e-6)
    assert fit.estimate.evaluations < 0.5 * alone.estimate.evaluations
    assert fit["p"] == pytest.approx(np.pi, abs=4 * fit["p"].std_error)


def test_nodes_that_a_simulation_left_far_away_are_found_again(disturbed: gr.Experiment) -> None:
    """x2 is not measured; the slope of x1 is its first value, also where x1 is disturbed."""
    problem = build_problem(Disturbed(), disturbed, UNKNOWNS, SHOTS)
    nodes = multiple_shooting.MultipleShooting(problem, 20).first_nodes(problem.guess)
    assert np.abs(nodes).max() < 10.0
    far = nodes + 1e9 * (np.arange(len(nodes)) % 2)
    shooting = multiple_shooting.MultipleShooting
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shooting, "first_nodes", lambda *_: far)
        fit = gr.fit(Disturbed(), disturbed, UNKNOWNS, SHOTS, guess={"p": 3.0}, progress=False)
    assert fit.converged
    assert fit["p"] == pytest.approx(np.pi, abs=4 * fit["p"].std_error)


def test_pieces_that_do_not_join_are_no_fit(disturbed: gr.Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiple_shooting, "MAX_ITERATIONS", 1)
    fit = gr.fit(Disturbed(), disturbed, UNKNOWNS, SHOTS, guess={"p": 5.0}, progress=False)
    assert not fit.converged and "iterations were used up" in fit.status


class Scaled(gr.Model):
    """Two coupled states in units of their own."""

    a, b = gr.Parameter(1.0), gr.Parameter(1.0)
    k, c = gr.Parameter(0.5, bounds=(0.01, 10.0)), gr.Parameter(0.2, bounds=(0.0, 10.0))
    x, z = gr.Variable(), gr.Variable()
    y = gr.Output(x / a, noise=0.02)
    equations = [der(x) == -k * x + a * z / b, der(z) == -c * z * (1 + (x / a) ** 2)]


@pytest.mark.parametrize(("a", "b"), [(1e9, 1.0), (1e-9, 1.0), (1e9, 1e-9)])
def test_pieces_join_in_any_units(a: float, b: float) -> None:
    t = np.linspace(0.0, 8.0, 41)
    y = gr.simulate(Scaled(k=0.8, c=0.3), t, start={"x": 1.0, "z": 2.0})["y"].values
    y += 0.02 * np.random.default_rng(5).normal(size=41)
    method = gr.OutputError(shooting="multiple", pieces=4)
    plain, found = (
        gr.fit(Scaled(a=a, b=b), gr.Experiment(t, outputs={"y": y}, start={"x": a, "z": 2 * b}), ["k", "c"], method)
        for a, b in ((1.0, 1.0), (a, b))
    )
    for name in ("k", "c"):
        assert found[name].std_error == pytest.approx(plain[name].std_error, rel=1e-3)
        assert abs(float(found[name]) - float(plain[name])) < 1e-3 * plain[name].std_error
    assert found.converged and not found.notes
