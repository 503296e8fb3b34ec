"""Bends averaged over steps: likelihoods of filters are smooth in what moves a crossing."""

import casadi as ca
import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.filtering import positive_part, share_above

N, STEP = 60, 0.2
TIMES = STEP * np.arange(N)
INPUT = np.where(TIMES % 4 < 2, 1.5, -0.5)


def model_of(law):
    class Plant(gr.Model):
        k = gr.Parameter(0.8, bounds=(0.05, 5))
        c = gr.Parameter(0.5, bounds=(-5, 5))
        x = gr.Variable(1.3)
        u = gr.Input()
        w = gr.Disturbance(gr.spectra.white(), scale=0.05)
        y = gr.Output(x, noise=0.02)
        equations = [der(x) == law(x - c, k) + u + w]

    return Plant()


LAWS = {
    "maximum": lambda g, k: -0.3 * g - k * gr.maximum(g, 0),
    "abs": lambda g, k: -g - k * abs(g),
    "where": lambda g, k: -0.3 * g - gr.where(g > 0, 2 * k * g, 0),
    "table": lambda g, k: -gr.table(g, [-1, -0.5, 0, 0.5, 1], [-1, -0.1, 0, 2 * k, 2.2 * k]),
}


def record(model):
    path = gr.simulate(model, TIMES, {"u": INPUT}, realizations=1, seed=3)["y"].values.ravel()
    noise = 0.02 * np.random.default_rng(0).normal(size=N)
    return gr.Experiment(TIMES, {"u": INPUT}, {"y": path + noise})


@pytest.fixture(scope="module")
def posed():
    models = {name: model_of(law) for name, law in LAWS.items()}
    return {name: (model, record(model)) for name, model in models.items()}


@pytest.mark.parametrize("filter", ["extended", "unscented"])
@pytest.mark.parametrize("law", LAWS)
def test_a_gradient_is_a_difference_of_the_criterion(posed, law, filter):
    """Before they were up to 43 % off, by how a step of the difference happened to pass the staircase."""
    density = gr.log_density(*posed[law], ["k", "c"], gr.KalmanML(filter=filter))
    for at in ([0.7, 0.41], [0.75, 0.46]):
        gradient = density.gradient(np.array(at))
        for i, h in [(i, h) for i in (0, 1) for h in (1e-4, 1e-5)]:
            step = h * np.eye(2)[i]
            difference = (density(at + step) - density(at - step)) / (2 * h)
            assert difference == pytest.approx(gradient[i], rel=1e-5, abs=1e-3)


def test_bends_of_implicit_equations_are_averaged():
    """The solution of an equation that bends bends, too: a gradient was 16 % off."""

    class Valve(gr.Model):
        k = gr.Parameter(0.8, bounds=(0.05, 5))
        c = gr.Parameter(0.2, bounds=(-5, 5))
        x = gr.Variable(0.6)
        z = gr.Variable(start=0.5)
        u = gr.Input()
        w = gr.Disturbance(gr.spectra.white(), scale=0.05)
        y = gr.Output(x, noise=0.02)
        equations = [der(x) == -k * abs(z - c) + u - 0.5 * x + w, z**3 + z == x + 0.3 * gr.maximum(x - c, 0)]

    model = Valve()
    method = gr.KalmanML(filter="extended", propagation="moments")
    density = gr.log_density(model, record(model), ["k", "c"], method)
    for at in ([0.7, 0.23], [0.75, 0.31]):
        gradient = density.gradient(np.array(at))
        for i, h in [(i, h) for i in (0, 1) for h in (1e-4, 1e-5)]:
            step = h * np.eye(2)[i]
            difference = (density(at + step) - density(at - step)) / (2 * h)
            assert difference == pytest.approx(gradient[i], rel=1e-5, abs=1e-3)


@pytest.mark.parametrize("rate", [1e2, 1e6])
def test_what_settles_within_a_step_moves_no_further(rate):
    """Averages over the way that a fast state would go if it went on at its rate are averages over far too much."""

    class Sensor(gr.Model):
        k = gr.Parameter(0.8, bounds=(0.05, 5))
        c = gr.Parameter(0.3, bounds=(-5, 5))
        x, v = gr.Variable(0.6), gr.Variable(0.6)
        u = gr.Input()
        w = gr.Disturbance(gr.spectra.white(), scale=0.05)
        y = gr.Output(v, noise=0.02)
        equations = [
            der(x) == -k * abs(x - c) - 0.5 * x + u + w,
            der(v) == rate * (gr.maximum(x, 0.25) - v - 0.5 * abs(v - 0.4)),
        ]

    class Settled(Sensor):
        v = gr.Variable()

        def equations(self):
            yield der(self.x) == -self.k * abs(self.x - self.c) - 0.5 * self.x + self.u + self.w
            yield self.v == gr.maximum(self.x, 0.25) - 0.5 * abs(self.v - 0.4)

    path = gr.simulate(Settled(), TIMES, {"u": 0.4 * INPUT}, realizations=1, seed=3)["y"].values.ravel()
    data = gr.Experiment(
        TIMES, {"u": 0.4 * INPUT}, {"y": path + 0.02 * np.random.default_rng(0).normal(size=N)}, start={"v": path[0]}
    )
    fast, settled = (
        gr.evaluate(model(), data.replace(start=start), gr.KalmanML(filter="extended")).log_likelihood
        for model, start in ((Sensor, {"v": path[0]}), (Settled, {}))
    )
    assert fast == pytest.approx(settled, abs=0.05 if rate > 1e5 else 10.0)


@pytest.mark.parametrize("propagation", ["linearize", "moments"])
def test_nothing_is_left_of_an_average_in_short_steps(posed, propagation):
    """Averages are of second order, and the end is that of the filter whose steps meet every bend."""
    values = []
    for steps in (16, 32, 64, 128):
        method = gr.KalmanML(filter="extended", propagation=propagation, substeps=steps)
        values.append(gr.evaluate(*posed["where"], method).log_likelihood)
    errors = np.abs(np.diff(values))
    assert errors[-1] < 3e-4 and errors[-1] < errors[0] / 8


def test_averages_add_up_over_points_one_step_apart():
    g, w = ca.SX.sym("g"), 0.3
    R, S = positive_part(g, w), share_above(g, w)
    slopes = ca.Function("slopes", [g], [ca.jacobian(R, g), S, ca.jacobian(g * S, g)])
    for offset in np.linspace(0, w, 7):
        points = offset + w * np.arange(-5, 6)
        sums = [sum(float(slopes(p)[i]) for p in points) for i in range(3)]
        expected = sum(float(np.clip(0.5 + p / w, 0, 1)) for p in points)
        assert sums == pytest.approx([expected] * 3, abs=1e-12)


@pytest.mark.parametrize(
    "law", [lambda g, k: -k * gr.sqrt(gr.maximum(g, 0) + 1e-12), lambda g, k: -k * gr.where(g > 0, g**1.5, 0)]
)
def test_formulas_are_not_evaluated_where_they_mean_nothing(law):
    model = model_of(law)
    density = gr.log_density(model, record(model), ["k", "c"], gr.KalmanML(filter="extended"))
    assert np.isfinite([density([0.7, 0.41]), *density.gradient(np.array([0.7, 0.41]))]).all()
