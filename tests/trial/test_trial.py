"""One experiment at given unknowns: exact derivatives, forms that change with values, what is kept and refused."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, spectra
from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities
from grisaille.errors import DataError, GrisailleError, ModelError

TIMES = np.linspace(0.0, 2.0, 5)


class Tank(gr.Model):
    """A formula of a parameter, a scale, a noise and a start."""

    k, area = gr.Parameter(0.5), gr.Parameter(2.0)
    rate = gr.Parameter(k / area)
    u = gr.Input(default=1.0)
    w = gr.Disturbance(spectra.lowpass(2.0), scale=0.3)
    h = gr.Variable(3 * k)
    y = gr.Output(h, noise=0.1)
    equations = [der(h) == u - rate * h + w]


class Rod(gr.Model):
    """A pendulum in Cartesian coordinates, index 3, whose start a parameter moves."""

    L, g = gr.Parameter(1.0), gr.Parameter(9.81)
    x, y = gr.Variable(0.6 * L), gr.Variable(-0.8 * L)
    vx, vy, T = gr.Variable(0.0), gr.Variable(), gr.Variable()
    equations = [der(x) == vx, der(y) == vy, der(vx) == -T * x, der(vy) == -T * y - g, x**2 + y**2 == L**2]


def test_q_holds_parameters_then_scales_then_noises_with_exact_derivatives() -> None:
    moves = EstimatedQuantities.named(["noise(y)", "k", "start(h)", "scale(w)"])
    point = BoundExperiment(Tank(), TIMES, moves=moves, constants={"area": 4.0}).at([0.2, 0.8, 7.0, 0.6])
    np.testing.assert_allclose(point.q, [0.8, 4.0, 0.2, 0.6, 0.2])
    np.testing.assert_allclose(point.dq, [[0, 0, 0, 0, 1], [1, 0, 0.25, 0, 0], np.zeros(5), [0, 0, 0, 1, 0]])
    assert point.scales == {"w": 0.6} and point.demands == {"h": 7.0}
    np.testing.assert_allclose(point.start.x, [7.0])
    np.testing.assert_allclose(point.dstart.sx, [[0], [0], [1], [0]])


@pytest.mark.parametrize("model", [Tank(), Rod()])
def test_derivatives_of_the_start_agree_with_differences(model: gr.Model) -> None:
    names = [n for n in BoundExperiment(model, TIMES).formulas.names if n != "rate"]
    trial = BoundExperiment(model, TIMES, moves=EstimatedQuantities.named(names))
    theta = np.array([BoundExperiment(model, TIMES).at().known[n] for n in names])
    point, step = trial.at(theta), 1e-6
    for k in range(len(names)):
        moved = step * np.eye(len(names))[k]
        ends = [trial.at(theta + sign * moved).start.x for sign in (1, -1)]
        np.testing.assert_allclose(point.dstart.sx[k], (ends[0] - ends[1]) / (2 * step), atol=1e-7)


class Divided(gr.Model):
    """The tearing divides by b, unless b is zero."""

    b = gr.Parameter(1.0)
    i1, i2, v = gr.Variable(), gr.Variable(), gr.Variable(1.0)
    y = gr.Output(v, noise=0.1)
    equations = [der(v) == -i1, i1 + b * i2 == v, i2 + b * i1 == 0.5 * v]


def test_another_form_where_a_divisor_vanishes() -> None:
    trial = BoundExperiment(Divided(), TIMES, moves=EstimatedQuantities.named(["b"]))
    for b in (0.5, 0.0, 0.25):
        observed = trial.at([b]).observed()
        i1 = (1 - 0.5 * b) / (1 - b**2)
        assert observed["i1"] == pytest.approx(i1) and observed["i2"] == pytest.approx(0.5 - b * i1)


class Ramp(gr.Model):
    """Bends at an instant that a parameter moves; jumps where ``jumps`` is one."""

    tau, jumps = gr.Parameter(1.0), gr.Parameter(0.0)
    x = gr.Variable(0.0)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == gr.maximum(gr.time - tau, 0) + jumps * gr.where(gr.time > tau, 1.0, 0.0)]


def test_signals_are_made_again_only_where_instants_move() -> None:
    still = BoundExperiment(Ramp(), TIMES, moves=EstimatedQuantities.named(["jumps"]))
    assert still.at([0.0]).signals is still.at([0.0]).signals
    moving = BoundExperiment(Ramp(), TIMES, moves=EstimatedQuantities.named(["tau"]))
    first = moving.at([1.0]).signals
    assert moving.at([1.0]).signals is first
    assert 1.3 in moving.at([1.3]).table.breaks and 1.3 not in first.table.breaks


def test_a_jump_that_moves_is_refused_by_name() -> None:
    trial = BoundExperiment(Ramp(), TIMES, moves=EstimatedQuantities.named(["tau"]), constants={"jumps": 2.0})
    with pytest.raises(ModelError, match=r"derivative by 'tau' would be wrong.*t = 1"):
        trial.at([1.0]).refuse_moving_jumps()
    BoundExperiment(Ramp(), TIMES, moves=EstimatedQuantities.named(["tau"])).at([1.0]).refuse_moving_jumps()


class Impulse(gr.Model):
    """Index reduction differentiates an equation that jumps with time."""

    k = gr.Parameter(1.0)
    x, v, f = gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    w = gr.Disturbance(spectra.white(), scale=0.1)
    y = gr.Output(v, noise=0.1)
    equations = [der(x) == v, der(v) == -k * v + f + w, x == gr.where(gr.time > 1.0, 1.0, 0.0)]


METHODS = [
    gr.OutputError(),
    gr.KalmanML(),
    gr.Collocation(),
    gr.SimulatedPEM(realizations=2),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_a_jump_that_would_be_differentiated_is_refused_alike(method) -> None:
    data = gr.Experiment(TIMES, {}, {"y": np.zeros(5)})
    with pytest.raises(DataError, match=r"Index reduction differentiates 'x == where.*makes it jump by -1 at t = 1"):
        gr.fit(Impulse(), data, ["k"], method)


def test_a_formula_without_a_value_is_named() -> None:
    trial = BoundExperiment(Tank(), TIMES, moves=EstimatedQuantities.named(["area"]))
    with pytest.raises(GrisailleError, match="formula of parameter 'rate' gives"):
        trial.at([0.0])


def test_points_without_derivatives_keep_what_was_solved() -> None:
    point = BoundExperiment(Rod(), TIMES, moves=EstimatedQuantities.named(["L"])).at([1.2])
    start = point.start
    still = point.without_derivatives()
    assert still.start is start and still.names == () and still.dp.shape[0] == 0 and point.dstart.sx.shape[0] == 1


def test_a_prepared_form_is_kept_or_refused() -> None:
    """What a filter was made for is not replaced by other equations on the way."""
    trial = BoundExperiment(Divided(), TIMES, moves=EstimatedQuantities.named(["b"]))
    dividing = next(f for f in (trial.at([b]).form for b in (0.5, 0.0)) if f.structure.system.pivot_texts)
    assert trial.at([0.25], dividing).form is dividing
    with pytest.raises(ModelError, match="Divided is solved by dividing by something that vanishes"):
        trial.at([0.0], dividing)
