"""Prints docs/accuracy.md's tables: correct digits of the reference problems, the long pendulum, sensitivities.

Published ends are read from the folder ``dae_testset`` in ``GRISAILLE_REFERENCE_DATA``. The long pendulum is compared
with a solution in the angle (DOP853 at rtol 1e-13), sensitivities with Richardson-extrapolated differences of runs at
rtol 1e-12.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
from reference_problems import RTOL, Case, load_cases
from scipy.integrate import solve_ivp

import grisaille as gr
from grisaille.demo import LENGTH, Pendulum

SPAN = 5000.0
RELATIVE_STEP = {"vdpol": 1e-5, "orego": 1e-4}
"""Relative steps of differences where a step of 1e-3 would move a jump by more than its width."""


def digits_table(cases: list[Case]) -> None:
    print(
        "| problem | to t = | index | states | implicit unknowns | constraints | `atol` | solver | steps | digits |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | --- | --- | ---: | ---: |"
    )
    for case in cases:
        problem = case.problem
        run = gr.simulate(case.model, [0.0, problem.end], rtol=RTOL, atol=problem.atol)
        system = case.prepared.structure.system
        digits = case.digits({c: float(run[c][-1]) for c in problem.components})
        cells = (
            case.title, f"{problem.end:g}", run.attrs["index"], system.nx, system.nz, system.nc,
            _atol_text(problem.atol), run.attrs["solver"], run.attrs["steps"], f"{digits:.1f}",
        )  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |")


def _atol_text(atol: float | dict[str, float]) -> str:
    return ", ".join(f"{n}: {v:.0e}" for n, v in atol.items()) if isinstance(atol, dict) else f"{atol:.0e}"


def push(t: float | np.ndarray) -> float | np.ndarray:
    return 0.6 * np.sin(1.1 * t) + 0.3 * np.sin(0.37 * t)


def long_pendulum() -> None:
    """5 000 s at rtol 1e-8 under a lasting force, against the angle form."""
    times = np.linspace(0.0, SPAN, 50_001)
    run = gr.simulate(Pendulum(), times, inputs={"u": push}, rtol=1e-8)
    length = np.abs(np.hypot(run.x, run.y) - LENGTH).max()
    angle = np.abs(run.phi.values - _angle_form(times)).max()
    print(f"| length, largest deviation [m] | {float(length):.1e} |")
    print(f"| angle, largest difference [rad] | {float(angle):.1e} |")
    print(f"| steps | {run.attrs['steps']} |")


def _angle_form(times: np.ndarray) -> np.ndarray:
    m, g, L, k = 0.3, 9.81, LENGTH, 0.05

    def rates(t: float, s: np.ndarray) -> list[float]:
        c, sn = np.cos(s[0]), np.sin(s[0])
        vx, vy = L * s[1] * c, L * s[1] * sn
        along = (push(t) - k * abs(vx) * vx) * c - (k * abs(vy) * vy + m * g) * sn
        return [s[1], along / (m * L)]

    return solve_ivp(rates, (0.0, times[-1]), [0.0, 0.0], "DOP853", times, rtol=1e-13, atol=1e-13).y[0]


def sensitivity_table(cases: list[Case]) -> None:
    print("| problem | differentiated by | largest disagreement, relative |\n| --- | --- | ---: |")
    for case in cases:
        name = case.problem.differentiate_by[0]
        print(f"| {case.title} | `{name}` | {disagreement(case, name):.0e} |")


def disagreement(case: Case, name: str) -> float:
    """Largest error of any variable's sensitivity over its size, relative to the largest such sensitivity."""
    problem, model = case.problem, case.model
    grid = np.r_[0.0, np.logspace(-3, 11, 12)] if problem.name == "rober" else np.linspace(0.0, problem.end, 13)
    # species of the pollution problem go down to 1e-15, differences of them further
    tighter = 1e-8 if problem.name == "pollution" else 1e-4
    atol = problem.atol
    atol = {n: tighter * v for n, v in atol.items()} if isinstance(atol, dict) else tighter * atol
    run = gr.simulate(model, grid, rtol=1e-11, atol=atol, sensitivities=[name])
    value = model.parameters[name].value
    step = RELATIVE_STEP.get(problem.name, 1e-3) * abs(value)

    def difference(h: float) -> dict[str, np.ndarray]:
        ends = [gr.simulate(model, grid, parameters={name: value + s * h}, rtol=1e-12, atol=atol) for s in (-1, 1)]
        return {c: (ends[1][c].values - ends[0][c].values) / (2 * h) for c in problem.components}

    wide, narrow = difference(2 * step), difference(step)
    errors, sizes = [], []
    for c in problem.components:
        expected, scale = (4 * narrow[c] - wide[c]) / 3, float(np.abs(run[c]).max())
        errors.append(np.abs(run[f"d({c})"].values[:, 0] - expected).max() / scale)
        sizes.append(np.abs(expected).max() / scale)
    return float(max(errors) / max(sizes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    if not os.environ.get("GRISAILLE_REFERENCE_DATA"):
        raise SystemExit("Set GRISAILLE_REFERENCE_DATA to the folder that holds dae_testset/reference_*.csv.")
    cases = load_cases()
    digits_table(cases)
    print()
    print(f"| pendulum over {SPAN:g} s at rtol 1e-8 | |\n| --- | ---: |")
    long_pendulum()
    print()
    sensitivity_table(cases)


if __name__ == "__main__":
    main()
