"""Direct collocation: linear models against the smoother, index 3, implicit equations, bounds, gaps, refusals."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from collocation.direct_problems import Buffer, Oscillator, Pendulum, Program, buffered, data, followed, posed, program

import grisaille as gr
from grisaille import der
from grisaille.collocation.direct import RadauElements
from grisaille.errors import EstimationError

TIMES = np.linspace(0.0, 10.0, 41)
PUSH = np.sign(np.sin(TIMES))
KNOWN = gr.KalmanML(initial_covariance={"x": 0.0, "v": 0.0})


@pytest.fixture(scope="module")
def oscillation():
    return data(Oscillator(), TIMES, "y", u=PUSH, seed=3)[0]


def smoothed(record, statistic):
    """By the exact filter, at a = 1."""
    fit = gr.fit(Oscillator(), record, ["a"], KNOWN, bounds={"a": (1.0 - 1e-12, 1.0 + 1e-12)})
    states = fit.states().sel(given="smoothed", statistic=statistic)
    return np.column_stack([states["x"], states["v"]])


def test_linear_model_has_the_path_and_bands_of_the_smoother(oscillation) -> None:
    path = followed(program(Oscillator(), oscillation, ["a"]).solve(free=False, grid=RadauElements(4)))
    there = path.sample_at >= 0
    states = np.column_stack([path["x"], path["v"]])
    np.testing.assert_allclose(states[there], smoothed(oscillation, "mean"), atol=1e-6)
    np.testing.assert_allclose(path.deviations[there], smoothed(oscillation, "std"), atol=1e-6)


def test_bands_widen_with_what_the_parameters_leave_open(oscillation) -> None:
    problem = program(Oscillator(), oscillation, ["a", "b"])
    free = problem.solve()
    known = problem.solve(free.theta, free=False)
    assert np.all(followed(free).deviations[1:] > followed(known).deviations[1:])


def test_order_of_convergence(oscillation) -> None:
    """Three Radau points: the error of the path at samples falls by about 2⁵ when elements are halved."""
    paths = [
        followed(program(Oscillator(), oscillation, ["a"]).solve(free=False, grid=RadauElements(n, longest=1.0)))
        for n in (1, 2, 8)
    ]
    x = [p["x"][p.sample_at >= 0] for p in paths]
    coarse, fine = np.abs(x[0] - x[2]).max(), np.abs(x[1] - x[2]).max()
    assert fine < coarse / 12


def test_newton_and_ipopt_agree(oscillation) -> None:
    ours, theirs = (
        program(Oscillator(), oscillation, ["a", "b"], {"a": 0.5, "b": 1.0}, solver=s).solve()
        for s in ("newton", "ipopt")
    )
    assert ours.converged and theirs.converged
    np.testing.assert_allclose(ours.theta, theirs.theta, rtol=1e-7)
    np.testing.assert_allclose(ours.covariance, theirs.covariance, rtol=1e-6)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-10)


def test_covariance_is_the_inverse_curvature_of_the_profile(oscillation) -> None:
    best = program(Oscillator(), oscillation, ["a"]).solve()
    step = 1e-3
    sides = [
        program(Oscillator(), oscillation, ["a"]).solve(best.theta + d, free=False).objective for d in (-step, step)
    ]
    curvature = (sides[0] - 2 * best.objective + sides[1]) / step**2
    assert best.covariance[0, 0] == pytest.approx(1 / curvature, rel=1e-4)


def test_pendulum_of_index_three() -> None:
    times = np.linspace(0.0, 6.0, 61)
    record, run = data(Pendulum(), times, "phi", u=0.3 * np.sign(np.sin(1.3 * times)), seed=5)
    found = program(Pendulum(), record, ["k"], {"k": 0.4}).solve()
    assert found.converged
    assert abs(found.theta[0] - 0.1) < 3 * found.covariance[0, 0] ** 0.5
    path = followed(found)
    assert np.abs(path["x"] ** 2 + path["y"] ** 2 - 1.0).max() < 1e-4
    force, true = path["w"][path.sample_at >= 0], run["w"].to_numpy().reshape(-1)
    assert np.corrcoef(force, true)[0, 1] > 0.7
    # tension follows from the path: m v̇ along the rod
    assert np.isfinite(path["tension"]).all()


def test_chaotic_model_begins_in_the_data_where_its_simulation_is_far_away() -> None:
    class Lorenz(gr.Model):
        s, r, b = gr.Parameter(10.0), gr.Parameter(28.0), gr.Parameter(8 / 3)
        x, y, z = gr.Variable(1.0), gr.Variable(1.0), gr.Variable(20.0)
        wx, wy, wz = (gr.Disturbance(gr.spectra.white(), scale=0.5) for _ in range(3))
        o, o2 = gr.Output(x, noise=0.5), gr.Output(z, noise=0.5)
        equations = [der(x) == s * (y - x) + wx, der(y) == x * (r - z) - y + wy, der(z) == x * y - b * z + wz]

    times = np.linspace(0.0, 5.0, 101)
    run = gr.simulate(Lorenz(), times, realizations=1, seed=2, noise=True)
    record = gr.Experiment(times, {}, {n: run[n].to_numpy().reshape(-1) for n in ("o", "o2")})
    found = program(Lorenz(), record, ["s", "r", "b"], {"s": 9.0, "r": 25.0, "b": 2.5}).solve()
    errors = np.sqrt(np.diag(found.covariance))
    assert found.converged and found.objective < 202
    np.testing.assert_array_less(np.abs(found.theta - [10.0, 28.0, 8 / 3]) / errors, 3.0)


def test_implicit_equations_hold_at_every_point() -> None:
    record = buffered(np.linspace(0.0, 8.0, 41))
    found = program(Buffer(), record, ["c"], {"c": 0.5}).solve()
    path = followed(found)
    assert found.converged
    assert abs(found.theta[0] - 0.8) < 3 * found.covariance[0, 0] ** 0.5
    np.testing.assert_allclose(path["flow"] + path["flow"] ** 3, path["head"], atol=1e-9)


def test_starts_are_estimated_per_record_and_parameters_shared() -> None:
    model = Oscillator()
    pair = [data(model.replace({}, start={"x": s}), TIMES, "y", u=PUSH, seed=k, name=n)[0]
            for k, (n, s) in enumerate({"low": 0.0, "high": 3.0}.items())]  # fmt: skip
    p = program(model, pair, ["a", "start(x)"])
    found = p.solve()
    errors = np.sqrt(np.diag(found.covariance))
    assert [u.name for u in p.unknowns] == ["a", "start(x)@low", "start(x)@high"]
    np.testing.assert_array_less(np.abs(found.theta - [1.0, 0.0, 3.0]) / errors, 3.0)
    np.testing.assert_allclose([followed(found, r)["x"][0] for r in (0, 1)], found.theta[1:], rtol=1e-9)


def test_gaps_and_constants_of_records(oscillation) -> None:
    """Records with a gap and another parameter value, where nothing is shared: as two fits."""
    values = oscillation.measurements("y")[1].copy()
    values[10:15] = np.nan
    other = gr.Experiment(TIMES, {"u": PUSH}, {"y": values}, name="gap", constants={"a": 1.3})
    first = gr.Experiment(TIMES, {"u": PUSH}, {"y": oscillation.measurements("y")[1]}, name="whole")
    both = program(Oscillator(), [first, other], ["b@whole", "b@gap"]).solve()
    alone = [program(Oscillator(), e, ["b"]).solve() for e in (first, other)]
    np.testing.assert_allclose(both.theta, [s.theta[0] for s in alone], rtol=1e-7)
    assert both.objective == pytest.approx(sum(s.objective for s in alone), rel=1e-9)


def test_bounds_of_parameters_and_states(oscillation) -> None:
    free = program(Oscillator(), oscillation, ["a", "b"]).solve()
    structure_bounds = {"x": (-10.0, float(followed(free)["x"].max()) - 0.1)}
    bounded = program(Oscillator(), oscillation, ["a", "b"], state_bounds=structure_bounds).solve()
    assert bounded.converged and followed(bounded)["x"].max() <= structure_bounds["x"][1] + 1e-8
    assert bounded.objective > free.objective
    tight = program(Oscillator(), oscillation, ["a", "b"])
    tight.bounds = (np.array([free.theta[0] + 0.2, -np.inf]), np.array([np.inf, np.inf]))
    held = tight.solve()
    assert held.converged and held.theta[0] == pytest.approx(free.theta[0] + 0.2)
    assert np.isnan(held.covariance[0, 0]) and np.isfinite(held.covariance[1, 1])


class Near:
    """a ~ N(5, 0.001)"""

    key = "near"

    def __call__(self, theta: ca.SX) -> ca.SX:
        return (theta[0] - 5.0) ** 2 / (2 * 1e-6)

    def curvature(self, theta: ca.SX) -> ca.SX:
        return ca.DM([[1e6]])


def test_what_is_known_of_parameters_counts() -> None:
    record = data(Oscillator(), TIMES, "y", u=PUSH, seed=3)[0]
    question = posed(Oscillator(), [record], ["a"])
    points, unknowns = question.points(), question.unknowns
    plain = Program(points, unknowns).solve()
    told = Program(points, unknowns, information=Near()).solve()
    assert told.theta[0] == pytest.approx(5.0, abs=1e-2)
    assert abs(plain.theta[0] - 1.0) < 0.5
    assert told.covariance[0, 0] == pytest.approx(1e-6, rel=1e-2)


def test_correlated_measurement_noise() -> None:
    class Pair(gr.Model):
        k = gr.Parameter(0.7)
        x = gr.Variable(2.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.2)
        y1, y2 = gr.Output(x, noise=0.3), gr.Output(2 * x, noise=0.4)
        equations = [der(x) == -k * x + w]

        def noise_covariance(self):
            return {("y1", "y2"): 0.1}

    rng = np.random.default_rng(8)
    t = np.linspace(0.0, 5.0, 21)
    x = 2.0 * np.exp(-0.7 * t)
    e = rng.multivariate_normal([0, 0], [[0.09, 0.1], [0.1, 0.16]], 21)
    y1, y2 = x + e[:, 0], 2 * x + e[:, 1]
    y2[5] = np.nan
    record = gr.Experiment(t, {}, {"y1": y1, "y2": y2})
    likelihood = gr.evaluate(Pair(), record, gr.KalmanML(initial_covariance={"x": 0.0}), {"k": 0.7})
    found = program(Pair(), record, ["k"])
    from grisaille.collocation import marginal
    from grisaille.collocation.direct import place, simulated_point

    mesh = found.transcribe(RadauElements(2))
    value = marginal(place(mesh, simulated_point(mesh, np.array([0.7]), found.starts)), 1e-10)
    assert value is not None and -value.value == pytest.approx(likelihood.log_likelihood, abs=1e-6)


def test_scales_need_the_marginal_likelihood(oscillation) -> None:
    with pytest.raises(EstimationError, match="criterion='laplace'"):
        program(Oscillator(), oscillation, ["scale(w)"], {"scale(w)": 0.4}).solve()


def test_bounds_of_unknown_states_name_those_there_are(oscillation) -> None:
    with pytest.raises(EstimationError, match=r"'z'.*there are.*x"):
        program(Oscillator(), oscillation, ["a"], state_bounds={"z": (0, 1)}).solve()


def test_starts_that_constraints_dictate_are_refused() -> None:
    times = np.linspace(0.0, 1.0, 5)
    record = gr.Experiment(times, {"u": np.zeros(5)}, {"phi": np.zeros(5)})
    with pytest.raises(gr.GrisailleError):
        program(Pendulum(), record, ["start(x)", "start(y)"], {"start(x)": 0.5, "start(y)": -0.866})


def test_without_disturbances_it_is_output_error() -> None:
    class Quiet(gr.Model):
        k = gr.Parameter(0.7)
        x, y = gr.Variable(1.0), gr.Variable(0.0)
        out = gr.Output(y, noise=0.05)
        equations = [der(x) == -k * x, der(y) == x * x - y]

    times = np.linspace(0.0, 5.0, 21)
    record, _ = data(Quiet(), times, "out", seed=1)
    ours = program(Quiet(), record, ["k", "start(x)"], {"k": 0.3, "start(x)": 1.5}).solve(grid=RadauElements(2))
    exact = gr.fit(Quiet(), record, ["k", "start(x)"], gr.OutputError(rtol=1e-10), progress=False)
    assert ours.converged
    np.testing.assert_allclose(ours.theta, exact.parameters["estimate"], rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(np.diag(ours.covariance)), exact.parameters["std_error"], rtol=0.15)
