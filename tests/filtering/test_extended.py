"""Nonlinear filters: on the constraints, with exact derivatives, consistent with the noise; what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2
from zoo.filtered import FEED, FEED_TIMES, REACTOR, SWING, Angle, Pendulum, Reactor, batch, swing

import grisaille as gr
from grisaille import der, exp
from grisaille.errors import EstimationError
from grisaille.estimators import build_problem

VALUES = {"k": 0.5, "L": 2.05, "scale(w)": 0.35, "noise(phi)": 0.025}
WAYS = [
    {"filter": "extended"},
    {"filter": "extended", "propagation": "moments"},
    {"filter": "iterated"},
    {"filter": "unscented"},
]


def posed(model, values, data=None, **options):
    return build_problem(model, data or swing(), list(values), gr.KalmanML(**options), guess=values)


def gapped(robust_outlier=True):
    """The pendulum's record with a gap and an outlier."""
    y = swing().measurements("phi").values.copy()
    y[7:10] = np.nan
    if robust_outlier:
        y[15] += 0.4
    return gr.Experiment(SWING, {}, {"phi": y})


@pytest.mark.parametrize("options", WAYS)
def test_gradient_with_gaps_and_huber(options):
    problem = posed(Pendulum(), VALUES, gapped(), substeps=1, robust=2.0, **options)
    found = problem.evaluate(problem.guess).slope
    for k, name in enumerate(VALUES):
        # values scatter by roots of rounding where hidden constraints make covariances of sigma points singular
        h = (1e-3 if options["filter"] == "unscented" else 1e-4) * abs(problem.guess[k]) * np.eye(len(VALUES))[k]
        ends = [problem.evaluate(problem.guess + j * h, sensitive=False).objective for j in (2, 1, -1, -2)]
        slope = (8 * (ends[1] - ends[2]) - (ends[0] - ends[3])) / (12 * h[k])
        assert found[k] == pytest.approx(slope, rel=1e-6), name


@pytest.mark.parametrize("options", WAYS)
def test_constraints_hold_at_all_times(options):
    """Predicted, filtered and smoothed means, and their covariances, at every sample."""
    problem = posed(Pendulum(), VALUES, substeps=2, **options)
    runner = problem.cases[0].runner
    values = problem.cases[0].own(problem.guess)
    steps = problem.cases[0].discretisation
    found, filter, at = runner.states(values, steps), runner.filter_on(steps, values), runner.posed(values, False)
    predicted, _ = filter.ahead.known(at, np.arange(len(found.x_filt)) - 1)
    names = list(filter.model.names)
    for means, P in ((predicted.x, predicted.P), (found.x_filt, found.P_filt), (found.x_smooth, found.P_smooth)):
        x, y, vx, vy = (means[:, names.index(n)] for n in ("x", "y", "vx", "vy"))
        assert np.abs(x**2 + y**2 - 2.05**2).max() < 1e-11
        assert np.abs(x * vx + y * vy).max() < 1e-9
        across = np.zeros_like(means)
        across[:, names.index("x")], across[:, names.index("y")] = x, y
        assert np.abs(np.einsum("ti,tij->tj", across, P)).max() < 1e-9 * P.max()
        assert np.linalg.eigvalsh(P).min() > -1e-12 * P.max()


@pytest.mark.parametrize("propagation", ["linearize", "moments"])
def test_difference_to_the_angle_form_shrinks_with_the_noise(propagation):
    """Coordinates matter to an extended filter only as far as noise is not small."""
    gaps = []
    for part in (1.0, 0.5, 0.25):
        values = {"scale(w)": 0.4 * part, "noise(phi)": 0.02 * part}
        data = swing(0.4 * part, 0.02 * part)
        ways = [posed(M(), values, data, propagation=propagation, substeps=16) for M in (Pendulum, Angle)]
        errors = [p.evaluate(p.guess, sensitive=False).errors for p in ways]
        gaps.append(np.abs(errors[0] - errors[1]).max())
    assert gaps[0] < 2e-3
    assert gaps[1] < gaps[0] / 3
    assert gaps[2] < gaps[1] / 3


def test_order_of_convergence():
    """Steps half as long: errors a quarter (linearised) and a sixteenth (moments) as large."""
    values = {"scale(w)": 0.4, "noise(phi)": 0.02}
    for propagation, order in (("linearize", 2), ("moments", 4)):
        problem = posed(Angle(), values, propagation=propagation, substeps=1)
        case, found = problem.cases[0], []
        for steps in (4, 8, 16):
            finer = replace(case, discretisation=replace(case.discretisation, substeps=steps))
            found.append(problem.replace(cases=(finer,)).evaluate(problem.guess, sensitive=False).log_likelihood)
        assert (found[1] - found[0]) / (found[2] - found[1]) == pytest.approx(2**order, rel=0.2)


def test_consistency():
    """Errors of the estimates and innovations are as large as the filter says: NEES and NIS, fifty records."""
    levels = {"scale(w)": 0.4, "noise(phi)": 0.02}
    runs = gr.simulate(Pendulum(), SWING, realizations=50, seed=8, parameters={"scale(w)": 0.4})
    random = np.random.default_rng(8)
    nees, nis, covered = [], [], []
    first = posed(Pendulum(), levels, swing(), propagation="moments", substeps=2)
    for k in range(50):
        one = runs.isel(realization=k)
        y = one["phi"].values + 0.02 * random.normal(size=len(SWING))
        other = first.cases[0].with_values(iter([y])).runner
        steps = first.cases[0].discretisation
        kept, names = other.states(first.guess, steps), other.filter.model.names
        found = other.likelihood(first.guess, steps, sensitive=False).likelihood
        nis.append(np.sum(found.innovations**2 / found.variances))
        truth = np.stack([one[n].values for n in names[:4]], axis=1)
        for at in (10, 20, 30):
            x, y, vx, vy = kept.x_filt[at, :4]
            # angle and angular velocity: the two degrees of freedom
            T = np.array([[-y, x, 0.0, 0.0], [vy, -vx, -y, x]]) / 4.0
            error = T @ (kept.x_filt[at, :4] - truth[at])
            nees.append(error @ np.linalg.solve(T @ kept.P_filt[at, :4, :4] @ T.T, error))
        place = names.index("x")
        half = 1.96 * np.sqrt(kept.P_smooth[:, place, place])
        covered.append(np.abs(kept.x_smooth[:, place] - truth[:, 0]) < half)
    low, high = chi2.ppf([0.0005, 0.9995], 50 * len(SWING))
    assert low < np.sum(nis) < high
    low, high = chi2.ppf([0.0005, 0.9995], 2 * len(nees)) / len(nees)
    assert low < np.mean(nees) < high
    assert 0.92 < np.mean(covered) < 0.975


@pytest.mark.parametrize(
    ("scale", "propagation"),
    [(0.0, "linearize"), (0.1, "linearize"), (0.316, "linearize"), (0.0, "moments"), (0.316, "moments")],
)
def test_fits_of_the_reactor_converge(scale, propagation):
    """Without, with weak and with strong diffusion, from a guess a factor of two off; μ is stiff where S is small."""
    guess = {n: v * (1.5 if k % 2 else 0.7) for k, (n, v) in enumerate(REACTOR.items())}
    guess |= {"start(X)": 1.0, "start(V)": 1.0, "start(S)": 0.25}
    method = gr.KalmanML(propagation=propagation)
    fit = gr.fit(Reactor(), batch(scale, 2), estimate=list(REACTOR), method=method, guess=guess)
    assert fit.converged, fit.status
    assert abs(fit["mu_max"] - 1.0) < 4 * fit.parameters.std_error["mu_max"]
    for k in (1, 2, 3):
        assert fit[f"scale(w{k})"] < 0.15 + 2 * scale


def test_fit_of_a_nonlinear_model():
    data = [swing(seed=seed).replace(name=str(seed)) for seed in (3, 4)]
    guess = {"k": 0.3, "scale(w)": 0.6, "noise(phi)": 0.04}
    fit = gr.fit(Pendulum(), data, estimate=list(guess), method=gr.KalmanML(), guess=guess)
    assert fit.converged, fit.status
    for name, value in {"k": 0.4, "scale(w)": 0.4, "noise(phi)": 0.02}.items():
        assert abs(fit[name] - value) < 4 * fit.parameters.std_error[name], name
    assert not any("discretisation" in note for note in fit.notes)
    states = fit.states(names=["phi", "vx"])
    inside = states.phi.sel(given="smoothed")
    assert (inside.sel(statistic="lower") < inside.sel(statistic="upper")).all()


class Tank(gr.Model):
    """Noise that depends on the state and on an input, of both kinds, correlated at the sensors."""

    k, s = gr.Parameter(0.5), gr.Parameter(0.2)
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.5)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(interpretation="ito"), scale=1.0)
    y, z = gr.Output(x, noise=0.02 + 0.05 * x), gr.Output(v, noise=0.05 * (1 + u))
    equations = [der(x) == -k * x**2 + u + s * x * w, der(v) == x - v]

    def noise_covariance(self):
        return {("y", "z"): 0.0005 * self.x}


def test_noise_as_formulas_of_states_and_inputs():
    t = np.linspace(0.0, 4.0, 21)
    u = 0.5 + 0.3 * np.sin(t)
    data = gr.Experiment(t, {"u": u}, {"y": 1 + 0.1 * np.sin(3 * t), "z": 0.8 + 0.1 * np.cos(2 * t)}, hold="foh")
    values = {"k": 0.5, "s": 0.25, "start(x)": 1.1}
    found = {}
    for options in WAYS:
        problem = posed(Tank(), values, data, substeps=8, **options)
        now = problem.evaluate(problem.guess)
        found[options["filter"], options.get("propagation")] = now.log_likelihood
        h = 1e-5 * np.eye(3)[1]
        ends = [problem.evaluate(problem.guess + j * h, sensitive=False).objective for j in (1, -1)]
        assert now.slope[1] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)
    assert found["extended", None] == pytest.approx(found["extended", "moments"], abs=2e-3)
    by_hand = _tank_filter(t, u, data, values)
    assert found["extended", "moments"] == pytest.approx(by_hand, abs=1e-4)


def _tank_filter(t, u, data, values, steps=200):
    """The extended filter of Tank with Euler steps of both moments, extrapolated to none."""
    y = np.column_stack([data.measurements(n).values for n in ("y", "z")])
    k, s = values["k"], values["s"]

    def over(x, P, a, b, n):
        h = (b - a) / n
        for i in range(n):
            now = np.interp(a + i * h, t, u)
            A = np.array([[-2 * k * x[0], 0.0], [1.0, -1.0]])
            W = np.diag([(s * x[0]) ** 2, 0.0])
            x = x + h * np.array([-k * x[0] ** 2 + now, x[0] - x[1]])
            P = P + h * (A @ P + P @ A.T + W)
        return x, P

    def likelihood(n):
        x, total = np.array([values["start(x)"], 0.5]), 0.0
        _, P = over(x, np.zeros((2, 2)), t[0], t[1], n)
        for j in range(len(t)):
            if j:
                x, P = over(x, P, t[j - 1], t[j], n)
            a, b, c = 0.02 + 0.05 * x[0], 0.05 * (1 + u[j]), 0.0005 * x[0]
            S = P + np.array([[a * a, c], [c, b * b]])
            e, K = y[j] - x, P @ np.linalg.inv(S)
            total -= 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(2 * np.pi * S)[1])
            x, P = x + K @ e, P - K @ S @ K.T
        return total

    coarse, fine, finest = (likelihood(n) for n in (steps // 2, steps, 2 * steps))
    return (8 * finest - 6 * fine + coarse) / 3


def test_what_it_refuses():
    class Squared(Pendulum):
        equations = [
            der(Pendulum.x) == Pendulum.vx,
            der(Pendulum.y) == Pendulum.vy,
            Pendulum.m * der(Pendulum.vx) == Pendulum.tension * Pendulum.x + Pendulum.w**2,
            Pendulum.m * der(Pendulum.vy) == Pendulum.tension * Pendulum.y - Pendulum.m * Pendulum.g,
            Pendulum.x**2 + Pendulum.y**2 == Pendulum.L**2,
        ]

    with pytest.raises(EstimationError, match=r"w has no linear effect where it is zero.*gr\.SimulatedPEM\(\)"):
        posed(Squared(), {"m": 0.3})
    with pytest.raises(EstimationError, match="'diffuse' needs a linear model"):
        posed(Pendulum(), VALUES, initial_covariance="diffuse")

    class Stiff(gr.Model):
        x = gr.Variable(start=1.0)
        k = gr.Parameter(1e6)
        w = gr.Disturbance(gr.spectra.white(), scale=0.1)
        y = gr.Output(x, noise=0.1)
        equations = [der(x) == -k * (x + 0.1 * exp(-x)) + w]

    record = gr.Experiment(SWING, {}, {"y": np.ones(31)})
    with pytest.raises(EstimationError, match=r"too stiff for explicit steps.*propagation='linearize'"):
        posed(Stiff(), {"k": 1e6}, record, propagation="moments")
    stiff = posed(Stiff(), {"k": 1e6}, record, propagation="linearize")
    assert np.isfinite(stiff.evaluate(stiff.guess).log_likelihood)


def test_a_model_that_runs_away_is_named():
    """The filter's failure is an answer with the instant, not an exception."""
    data = gr.Experiment(FEED_TIMES, {"F": FEED}, {f"y{i}": np.zeros(101) for i in (1, 2, 3)}, hold="zoh")
    case = posed(Reactor(), {"mu_max": 1.0, "K1": 0.03}, data, substeps=1).cases[0]
    found = case.runner.likelihood(np.array([40.0, 0.03]), case.discretisation, sensitive=False)
    assert "at t = " in found.failure and "runs away" in found.failure
