"""Linear models of the modelling language against the textbook filter of the same model written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov
from zoo import textbook_kalman as textbook

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimators import build_problem

TIMES = np.cumsum(np.array([0.0, 0.3, 0.5, 0.2, 0.9, 0.4, 0.4, 0.4, 1.1, 0.3, 0.6, 0.2, 0.8, 0.5, 0.5, 0.7]))
U = np.sin(1.3 * TIMES) + 0.2
Y = np.column_stack([np.cos(TIMES) + 0.1 * np.sin(17 * TIMES), 0.5 * np.sin(TIMES) + 0.05 * np.cos(23 * TIMES)])
Y[4, 0] = Y[5, 1] = Y[9] = np.nan


class Tanks(gr.Model):
    """Two tanks, white noise in one of them, an input, two outputs of which one sees the input directly."""

    a = gr.Parameter(0.7)
    b = gr.Parameter(0.4)
    x1 = gr.Variable(start=0.5)
    x2 = gr.Variable(start=-0.2)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y1 = gr.Output(x1 + 0.1 * u, noise=0.2)
    y2 = gr.Output(x2, noise=0.1)
    equations = [der(x1) == -a * x1 + u + w, der(x2) == b * (x1 - x2)]


def experiment(hold="zoh", **options):
    return gr.Experiment(TIMES, {"u": U}, {"y1": Y[:, 0], "y2": Y[:, 1]}, hold=hold, **options)


def by_hand(hold, P0=None, a=0.7, b=0.4):
    A, B = np.array([[-a, 0.0], [b, -b]]), np.array([[1.0], [0.0]])
    W = np.diag([0.09, 0.0])
    steps = np.diff(TIMES)
    F, Q = zip(*(textbook.van_loan(A, W, h) for h in steps), strict=True)
    c = []
    for k, h in enumerate(steps):
        forced = textbook.held(A, B, h)[:, 0] * U[k]
        if hold == "foh":
            forced = forced + textbook.ramped(A, B, h)[:, 0] * (U[k + 1] - U[k])
        c.append(forced)
    start = Q[0] if P0 is None else P0
    seen = Y - np.outer(U, [0.1, 0.0])
    return textbook.kalman(F, c, Q, np.eye(2), np.zeros(2), np.diag([0.04, 0.01]), seen, np.array([0.5, -0.2]), start)


@pytest.mark.parametrize("hold", ["zoh", "foh"])
def test_irregular_samples_holds_and_gaps(hold):
    value = gr.evaluate(Tanks(), experiment(hold), method=gr.KalmanML(), parameters={"a": 0.7}).log_likelihood
    assert value == pytest.approx(by_hand(hold)[0], rel=1e-11)


def test_inputs_with_times_of_their_own():
    """Cells end on the steps of inputs too."""
    fine = np.linspace(0, TIMES[-1], 401)
    given = gr.Experiment(None, {"u": (np.union1d(fine, TIMES), np.interp(np.union1d(fine, TIMES), TIMES, U))},
                          {"y1": (TIMES, Y[:, 0]), "y2": (TIMES, Y[:, 1])}, hold="foh")  # fmt: skip
    value = gr.evaluate(Tanks(), given, method=gr.KalmanML(initial_covariance={"x1": 0.3}), parameters={"a": 0.7})
    assert value.log_likelihood == pytest.approx(by_hand("foh", np.diag([0.3, 0.0]))[0], rel=1e-11)


def test_start_covariances():
    A = np.array([[-0.7, 0.0], [0.4, -0.4]])
    stationary = solve_continuous_lyapunov(A, -np.diag([0.09, 0.0]))
    for given, P0 in (
        ("stationary", stationary), ({"x1": 0.3, "x2": 2.0}, np.diag([0.3, 2.0])), (0.1 * np.eye(2), 0.1 * np.eye(2)),
        (np.zeros((2, 2)), np.zeros((2, 2))),
    ):  # fmt: skip
        method = gr.KalmanML(initial_covariance=given)
        value = gr.evaluate(Tanks(), experiment(), method=method, parameters={"a": 0.7}).log_likelihood
        assert value == pytest.approx(by_hand("zoh", P0)[0], rel=1e-11)


NAMES = {"a": 0.7, "b": 0.4, "scale(w)": 0.3, "noise(y1)": 0.2, "noise(y2)": 0.1, "start(x1)": 0.5, "start(x2)": -0.2}


@pytest.mark.parametrize("start", ["first-sample", "stationary", "diffuse", {"x1": 0.3}])
@pytest.mark.parametrize("hold", ["zoh", "foh"])
def test_gradient_by_every_kind_of_unknown(start, hold):
    problem = build_problem(Tanks(), experiment(hold), list(NAMES), gr.KalmanML(initial_covariance=start), guess=NAMES)
    found = problem.evaluate(problem.guess).slope
    for k, name in enumerate(NAMES):
        h = 1e-4 * max(abs(problem.guess[k]), 0.1) * np.eye(len(NAMES))[k]
        ends = [problem.evaluate(problem.guess + m * h, sensitive=False).objective for m in (2, 1, -1, -2)]
        slope = (8 * (ends[1] - ends[2]) - (ends[0] - ends[3])) / (12 * h[k])
        assert found[k] == pytest.approx(slope, rel=1e-6, abs=1e-8 * np.abs(found).max()), name


class Pulled(gr.Model):
    """Two carts joined by a rigid rod: index 3, pulled by a coloured force; the rod's force is never integrated."""

    m1 = gr.Parameter(1.0)
    m2 = gr.Parameter(2.0)
    k = gr.Parameter(3.0)
    c = gr.Parameter(0.8)
    x1 = gr.Variable(start=0.1)
    x2 = gr.Variable(start=1.1)
    v1 = gr.Variable(start=0.0)
    v2 = gr.Variable(start=0.0)
    f = gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.5), scale=0.6)
    y = gr.Output(x1, noise=0.05)
    rod = gr.Output(f, noise=0.3)
    equations = [
        der(x1) == v1,
        der(x2) == v2,
        m1 * der(v1) == -k * x1 - c * v1 + f,
        m2 * der(v2) == -f + w,
        x2 - x1 == 1.0,
    ]


class Single(gr.Model):
    """The same reduced by hand."""

    m1 = gr.Parameter(1.0)
    m2 = gr.Parameter(2.0)
    k = gr.Parameter(3.0)
    c = gr.Parameter(0.8)
    x1 = gr.Variable(start=0.1)
    v1 = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.5), scale=0.6)
    y = gr.Output(x1, noise=0.05)
    rod = gr.Output(w - m2 * (w - k * x1 - c * v1) / (m1 + m2), noise=0.3)
    equations = [der(x1) == v1, (m1 + m2) * der(v1) == -k * x1 - c * v1 + w]


@pytest.mark.parametrize("start", ["first-sample", "stationary"])
def test_high_index_equals_the_model_reduced_by_hand(start):
    data = gr.Experiment(TIMES, {}, {"y": Y[:, 0] * 0.3, "rod": Y[:, 1]})
    method = gr.KalmanML(initial_covariance=start)
    values = {"k": 2.5, "c": 0.9, "m2": 1.7, "scale(w)": 0.5}
    one, two = (gr.evaluate(M(), data, method=method, parameters=values) for M in (Pulled, Single))
    assert one.log_likelihood == pytest.approx(two.log_likelihood, rel=1e-10)
    for name in values:
        assert one.gradient[name] == pytest.approx(two.gradient[name], rel=1e-8, abs=1e-8), name


def test_high_index_against_the_textbook():
    A = np.array([[0, 1, 0], [-1.0, -0.8 / 3, 1 / 3], [0, 0, -1.5]])
    W = np.diag([0, 0, (0.6 * 1.5) ** 2])
    P0 = solve_continuous_lyapunov(A, -W)
    H = np.array([[1.0, 0, 0], [2.0, 2 * 0.8 / 3, 1 / 3]])
    F, Q = zip(*(textbook.van_loan(A, W, h) for h in np.diff(TIMES)), strict=True)
    y = np.column_stack([Y[:, 0] * 0.3, Y[:, 1]])
    zero = np.zeros((len(TIMES), 3))
    truth = textbook.kalman(F, zero, Q, H, np.zeros(2), np.diag([0.0025, 0.09]), y, np.array([0.1, 0, 0]), P0)[0]
    data = gr.Experiment(TIMES, {}, {"y": y[:, 0], "rod": y[:, 1]})
    value = gr.evaluate(Pulled(), data, method=gr.KalmanML(initial_covariance="stationary"), parameters={"k": 3.0})
    assert value.log_likelihood == pytest.approx(truth, rel=1e-10)


class Flushed(gr.Model):
    """A flow that changes the time constant: linear, with coefficients that vary with the input."""

    V = gr.Parameter(2.0)
    x = gr.Variable(start=1.0)
    q = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.2)
    y = gr.Output(x, noise=0.1)
    equations = [V * der(x) == -q * x + w]


def test_coefficients_that_follow_an_input():
    q = np.abs(U) + 0.1
    data = gr.Experiment(TIMES, {"q": q}, {"y": Y[:, 0]})
    steps = np.diff(TIMES)
    F, Q = zip(
        *(textbook.van_loan(np.array([[-q[k] / 2]]), np.array([[0.01]]), h) for k, h in enumerate(steps)), strict=True
    )
    zero = np.zeros((len(steps), 1))
    truth = textbook.kalman(F, zero, Q, np.eye(1), np.zeros(1), np.eye(1) * 0.01, Y[:, :1], np.ones(1), Q[0])[0]
    value = gr.evaluate(Flushed(), data, method=gr.KalmanML(), parameters={"V": 2.0})
    assert value.log_likelihood == pytest.approx(truth, rel=1e-11)
    ends = [
        gr.evaluate(Flushed(), data, method=gr.KalmanML(), parameters={"V": 2.0 + h}).objective for h in (1e-5, -1e-5)
    ]
    assert value.gradient["V"] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_what_the_exact_filter_refuses():
    data = gr.Experiment(TIMES, {"q": np.abs(U) + 0.1}, {"y": Y[:, 0]}, hold="foh")
    with pytest.raises(
        EstimationError, match=r"Flushed vary too fast with q for that, or its states are too fast: hold"
    ):
        gr.evaluate(Flushed(), data, method=gr.KalmanML(filter="linear"), parameters={"V": 1e-5})

    class Bent(gr.Model):
        x = gr.Variable(start=1.0)
        k = gr.Parameter(1.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.2)
        y = gr.Output(x, noise=0.1)
        equations = [der(x) == -k * x**2 + w]

    with pytest.raises(EstimationError, match=r"the equation of der\(x\) is not"):
        gr.evaluate(
            Bent(), gr.Experiment(TIMES, {}, {"y": Y[:, 0]}), method=gr.KalmanML(filter="linear"), parameters={"k": 2.0}
        )


def test_weights_and_skipped_samples():
    plain = gr.evaluate(Tanks(), experiment(), method=gr.KalmanML(), parameters={"noise(y1)": 0.1, "noise(y2)": 0.05})
    twice = gr.evaluate(
        Tanks(), experiment(weights=2.0), method=gr.KalmanML(), parameters={"noise(y1)": 0.2, "noise(y2)": 0.1}
    )
    assert twice.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-12)
    y = Y.copy()
    y[:3] = np.nan
    later = gr.Experiment(TIMES, {"u": U}, {"y1": y[:, 0], "y2": y[:, 1]}, hold="zoh")
    skipped = gr.evaluate(Tanks(), experiment(skip=3), method=gr.KalmanML(), parameters={"a": 0.7}).log_likelihood
    assert skipped == pytest.approx(
        gr.evaluate(Tanks(), later, method=gr.KalmanML(), parameters={"a": 0.7}).log_likelihood, rel=1e-13
    )


class Correlated(Tanks):
    """Noises of both outputs that go together."""

    def noise_covariance(self):
        return {("y1", "y2"): 0.01}


def test_correlated_measurement_noise():
    A, B, W = np.array([[-0.7, 0.0], [0.4, -0.4]]), np.array([[1.0], [0.0]]), np.diag([0.09, 0.0])
    steps = np.diff(TIMES)
    F, Q = zip(*(textbook.van_loan(A, W, h) for h in steps), strict=True)
    c = [textbook.held(A, B, h)[:, 0] * U[k] for k, h in enumerate(steps)]
    R = np.array([[0.04, 0.01], [0.01, 0.01]])
    seen = Y - np.outer(U, [0.1, 0.0])
    truth = textbook.kalman(F, c, Q, np.eye(2), np.zeros(2), R, seen, np.array([0.5, -0.2]), Q[0])[0]
    value = gr.evaluate(Correlated(), experiment(), method=gr.KalmanML(), parameters={"a": 0.7})
    assert value.log_likelihood == pytest.approx(truth, rel=1e-11)


def test_a_start_before_the_first_sample():
    later = gr.Experiment(TIMES[1:], {"u": (TIMES, U)}, {"y1": Y[1:, 0], "y2": Y[1:, 1]}, t0=TIMES[0])
    blank = Y.copy()
    blank[0] = np.nan
    full = gr.Experiment(TIMES, {"u": U}, {"y1": blank[:, 0], "y2": blank[:, 1]})
    values = [
        gr.evaluate(Tanks(), e, method=gr.KalmanML(), parameters={"a": 0.7}).log_likelihood for e in (later, full)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


BENT = {
    "max": (lambda u: gr.maximum(u, 0.2), lambda u: np.maximum(u, 0.2)),
    "absolute": (abs, np.abs),
    "saturated square": (lambda u: gr.minimum(u * u, 0.5) - 0.3 * u, lambda u: np.minimum(u * u, 0.5) - 0.3 * u),
}


def bent(formula, place):
    class Bent(gr.Model):
        a = gr.Parameter(0.7)
        x = gr.Variable(1.0)
        u = gr.Input()
        w = gr.Disturbance(gr.spectra.white(), scale=0.3)
        y = gr.Output(x + (formula(u) if place == "output" else 0 * u), noise=0.1)
        equations = [der(x) == -a * x + w + (formula(u) if place == "forcing" else 0 * u)]

    return Bent()


@pytest.mark.parametrize("place", ["forcing", "output"])
@pytest.mark.parametrize("name", BENT)
def test_formulas_of_inputs_whose_slope_jumps(name, place):
    """Their second derivative vanishes, and they are no polynomials all the same."""
    formula, computed = BENT[name]
    found = [
        gr.evaluate(
            bent(f, place), gr.Experiment(TIMES, {"u": u}, {"y": Y[:, 0]}), gr.KalmanML(), parameters={"a": 0.7}
        )
        for f, u in ((formula, U), (lambda u: u, computed(U)))
    ]
    assert found[0].log_likelihood == pytest.approx(found[1].log_likelihood, abs=1e-10)
    assert found[0].gradient["a"] == pytest.approx(found[1].gradient["a"], rel=1e-9)
