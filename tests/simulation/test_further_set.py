"""Further problems of the test set and its relatives: index, freedom, digits, constraints, sensitivities."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import xarray as xr
from zoo.further_test_set import PROBLEMS, Problem, Robot, chain, fekete, medical_akzo

import grisaille as gr

NAMES = [p.name for p in PROBLEMS]


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_structure(problem: Problem) -> None:
    analysis = gr.analyze(problem.model())
    assert (analysis.index, analysis.degrees_of_freedom) == (problem.index, problem.freedom)
    assert "adjusted" not in analysis.start_note and "held off zero" not in analysis.start_note


def run_at(problem: Problem, rtol: float) -> xr.Dataset:
    return gr.simulate(problem.model(), [0.0, problem.end], rtol=rtol, max_step=problem.end / 50)


def error(problem: Problem, run: xr.Dataset) -> float:
    return max(abs(float(run[name][-1]) - value) / abs(value) for name, value in problem.reference.items())


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_significant_correct_digits(problem: Problem) -> None:
    run = run_at(problem, 1e-7)
    worst = [error(problem, run)]
    if -np.log10(worst[0]) < problem.digits:
        # rounding may let one step more pass or fail, which moves the error of a single run by a digit
        worst += [error(problem, run_at(problem, rtol)) for rtol in (0.9e-7, 1.1e-7)]
    assert -np.log10(np.median(worst)) >= problem.digits
    assert run.attrs["worst_constraint"] < 1e-8


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.differentiate_by], ids=lambda p: p.name)
def test_sensitivities_against_differences(problem: Problem) -> None:
    model, name = problem.model(), problem.differentiate_by
    grid = np.r_[0.0, np.logspace(-18, 0, 19) if problem.name == "e5" else np.linspace(0.1, 1.0, 10)] * problem.end
    run = gr.simulate(model, grid, rtol=1e-9, sensitivities=[name])
    value = model.parameters[name].value
    step = value * (1e-6 if problem.name == "arenstorf" else 1e-4)
    moved = [gr.simulate(model, grid, rtol=1e-12, parameters={name: value + k * step}) for k in (-2, -1, 1, 2)]
    for c in problem.reference:
        ends = [m[c].values for m in moved]
        expected = (8 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12 * step)
        assert np.abs(run[f"d({c})"].values[:, 0] - expected).max() < 1e-5 * np.abs(expected).max()


def test_robot_follows_its_path() -> None:
    """x1 = 1 - exp(t) and x1 + x3 = 1 - t; near t = 1.54 the arm is folded and the path says no more."""
    analysis = gr.analyze(Robot())
    assert (analysis.index, analysis.degrees_of_freedom) == (5, 0)
    t = np.linspace(0.0, 1.4, 8)
    run = gr.simulate(Robot(), t)
    assert np.abs(run.x1 - (1 - np.exp(t))).max() < 1e-9
    assert np.abs(run.x3 - (np.exp(t) - t)).max() < 1e-9
    assert float(run.x2[-1]) == pytest.approx(3.867337596372711, rel=1e-8)
    assert float(run.u1[-1]) == pytest.approx(21.630009771583094, rel=1e-7)


def test_robot_stops_where_its_arm_is_folded() -> None:
    with pytest.raises(gr.SimulationError, match=r"at t = 1\.54") as stop:
        gr.simulate(Robot(), np.linspace(0.0, 2.0, 21))
    assert stop.value.partial.time[-1] == pytest.approx(1.5)


def angles(n: int, end: float) -> np.ndarray:
    """The chain in minimal coordinates: c_ij cos(θ_i − θ_j) θ_j'' = −c_ij sin(θ_i − θ_j) θ_j'² − g c_ii sin θ_i."""
    c = np.array([[n - max(i, j) for j in range(n)] for i in range(n)], dtype=float)

    def rate(_: float, state: np.ndarray) -> np.ndarray:
        theta, omega = state[:n], state[n:]
        between = theta[:, None] - theta[None, :]
        right = -(c * np.sin(between)) @ omega**2 - 9.81 * np.diag(c) * np.sin(theta)
        return np.r_[omega, np.linalg.solve(c * np.cos(between), right)]

    start = np.r_[np.full(n, np.pi / 2), np.zeros(n)]
    run = scipy.integrate.solve_ivp(rate, (0, end), start, method="DOP853", rtol=1e-12, atol=1e-12)
    return np.asarray(run.y[:n, -1])


@pytest.mark.parametrize("n", [2, 5])
def test_chain_of_pendulums(n: int) -> None:
    model, end = chain(n)(), 1.0
    analysis = gr.analyze(model)
    assert (analysis.index, analysis.degrees_of_freedom, len(analysis.states)) == (3, 2 * n, 4 * n)
    run = gr.simulate(model, [0.0, end])
    theta = angles(n, end)
    assert [float(run[f"x[{k}]"][-1]) for k in range(n)] == pytest.approx(np.cumsum(np.sin(theta)), abs=1e-6)
    assert [float(run[f"y[{k}]"][-1]) for k in range(n)] == pytest.approx(-np.cumsum(np.cos(theta)), abs=1e-6)


def test_bodies_on_a_sphere_come_to_rest() -> None:
    """Four bodies repel each other into a tetrahedron; each multiplier is then -(n - 1)/4."""
    model = fekete(4)()
    assert gr.analyze(model).index == 2
    run = gr.simulate(model, [0.0, 200.0])
    points = np.array([float(run[f"p[{k}]"][-1]) for k in range(12)]).reshape(4, 3)
    cosines = (points @ points.T)[np.triu_indices(4, 1)]
    assert cosines == pytest.approx(np.full(6, -1 / 3), abs=1e-6)
    assert [float(run[f"lam[{k}]"][-1]) for k in range(4)] == pytest.approx([-0.75] * 4, abs=1e-6)
    assert run.attrs["worst_constraint"] < 1e-8


def test_large_models_are_analysed_quickly() -> None:
    """Four hundred equations; the structure grows with their number, not with its square."""
    analysis = gr.analyze(medical_akzo(200)())
    assert (analysis.index, len(analysis.states)) == (0, 400)


def test_reaction_and_diffusion_with_a_jump_at_the_boundary() -> None:
    """Against SciPy's Radau with the jump as the end of a first run."""
    n = 20

    def rate(t: float, state: np.ndarray, inflow: float) -> np.ndarray:
        u, v = state[:n], state[n:]
        z, padded = np.arange(1, n + 1) / n, np.r_[inflow, u, u[-1]]
        drift, diffusion = 2 * (z - 1) ** 3 / 16, (z - 1) ** 4 / 16
        moved = drift * (padded[2:] - padded[:-2]) * n / 2 + diffusion * np.diff(padded, 2) * n**2
        return np.r_[moved - 100 * u * v, -100 * u * v]

    state = np.r_[np.zeros(n), np.ones(n)]
    for span, inflow in (((0.0, 5.0), 2.0), ((5.0, 8.0), 0.0)):
        options = {"method": "Radau", "rtol": 1e-9, "atol": 1e-12, "args": (inflow,)}
        state = scipy.integrate.solve_ivp(rate, span, state, **options).y[:, -1]
    run = gr.simulate(medical_akzo(n)(), [0.0, 5.0, 8.0], rtol=1e-7)
    found = [float(run[f"{name}[{k}]"][-1]) for name in "uv" for k in range(n)]
    assert found == pytest.approx(state, abs=1e-6)
