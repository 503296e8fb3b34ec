"""The nine reference problems: significant correct digits, and sensitivities against extrapolated differences."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from zoo.ivp_test_set import PROBLEMS, Problem, RobertsonDAE

import grisaille as gr

NAMES = [p.name for p in PROBLEMS]
RTOL = 1e-7


def reference_end(problem: Problem, folder: Path) -> dict[str, float]:
    with (folder / "dae_testset" / f"reference_{problem.name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    if problem.name == "pendulum":
        return {c: float(rows[-1][c]) for c in problem.components}
    return {c: float(row["value"]) for c, row in zip(problem.components, rows, strict=True)}


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_index_is_found(problem: Problem) -> None:
    assert gr.analyze(problem.model()).index == problem.index


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_significant_correct_digits(problem: Problem, reference_data: Path) -> None:
    run = gr.simulate(problem.model(), [0.0, problem.end], rtol=RTOL, atol=problem.atol)
    exact = reference_end(problem, reference_data)
    worst = max(abs(float(run[c][-1]) - v) / abs(v) for c, v in exact.items())
    assert -np.log10(worst) >= 5.0


def test_pendulum_with_its_closed_form_on_the_way(reference_data: Path) -> None:
    problem = PROBLEMS[-1]
    run = gr.simulate(problem.model(), [0.0, *problem.checkpoints], rtol=1e-9, atol=1e-12)
    with (reference_data / "dae_testset" / "reference_pendulum.csv").open() as file:
        for k, row in enumerate(csv.DictReader(file)):
            for c in problem.components:
                assert float(run[c][k + 1]) == pytest.approx(float(row[c]), abs=3e-7)


def test_conservation_law_instead_of_an_equation(reference_data: Path) -> None:
    model = RobertsonDAE()
    assert gr.analyze(model).index == 1
    run = gr.simulate(model, [0.0, 1e11], rtol=RTOL, atol=PROBLEMS[0].atol)
    for name, value in reference_end(PROBLEMS[0], reference_data).items():
        assert float(run[name][-1]) == pytest.approx(value, rel=1e-5)


RELATIVE_STEP = {"vdpol": 1e-5, "orego": 1e-4}
"""Where the solution jumps, a step of 1e-3 in the parameter would move the jump by more than its width."""


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_sensitivities_against_extrapolated_differences(problem: Problem) -> None:
    model = problem.model()
    grid = np.r_[0.0, np.logspace(-3, 11, 12)] if problem.name == "rober" else np.linspace(0.0, problem.end, 13)
    # species of the pollution problem go down to 1e-15, differences of them further
    tighter = 1e-8 if problem.name == "pollution" else 1e-4
    atol = problem.atol
    atol = {n: tighter * v for n, v in atol.items()} if isinstance(atol, dict) else tighter * atol
    name = problem.differentiate_by[0]
    run = gr.simulate(model, grid, rtol=1e-11, atol=atol, sensitivities=[name])
    value = model.parameters[name].value
    step = RELATIVE_STEP.get(problem.name, 1e-3) * abs(value)

    def difference(h: float) -> dict[str, np.ndarray]:
        ends = [gr.simulate(model, grid, parameters={name: value + s * h}, rtol=1e-12, atol=atol) for s in (-1, 1)]
        return {c: (ends[1][c].values - ends[0][c].values) / (2 * h) for c in problem.components}

    wide, narrow = difference(2 * step), difference(step)
    errors, sizes = [], []
    for c in problem.components:
        expected = (4 * narrow[c] - wide[c]) / 3
        scale = float(np.abs(run[c]).max())
        errors.append(np.abs(run[f"d({c})"].values[:, 0] - expected).max() / scale)
        sizes.append(np.abs(expected).max() / scale)
    assert max(errors) < 1e-5 * max(sizes)


FROZEN = [
    ("caraxis", 3e-3, "frozen-explicit"),
    ("pendulum", 1e-2, "frozen-explicit"),
    ("transistor", 2e-4, "frozen-implicit"),
    ("chemakzo", 0.5, "frozen-implicit"),
    ("hires", 0.5, "frozen-implicit"),
]


@pytest.mark.parametrize(("name", "step", "method"), FROZEN, ids=[f[0] for f in FROZEN])
def test_frozen_sensitivities_belong_to_the_discrete_trajectory(name: str, step: float, method: str) -> None:
    problem = next(p for p in PROBLEMS if p.name == name)
    model = problem.model()
    grid = np.linspace(0.0, problem.end / 4, 6)
    by = problem.differentiate_by[0]
    options = {"method": method, "step": step}
    run = gr.simulate(model, grid, sensitivities=[by], **options)
    value = model.parameters[by].value

    def difference(h: float) -> dict[str, np.ndarray]:
        ends = [gr.simulate(model, grid, parameters={by: value + s * h}, **options) for s in (-1, 1)]
        return {c: (ends[1][c].values - ends[0][c].values) / (2 * h) for c in problem.components}

    # the discretisation is the same at every parameter, so differences extrapolate down to rounding
    wide, narrow = difference(2e-3 * value), difference(1e-3 * value)
    for c in problem.components:
        expected = (4 * narrow[c] - wide[c]) / 3
        size = np.abs(expected).max() + np.abs(run[c].values).max() / abs(value)
        assert np.abs(run[f"d({c})"].values[:, 0] - expected).max() < 1e-7 * size
