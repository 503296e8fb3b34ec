"""Likelihoods with gradients, and complete fits, by Kalman filters of several programs.

A fed-batch reactor by the extended filter, a wall and a building of twenty states with 10 000 samples by the exact one:
ours, plain NumPy and SciPy, JAX (``lax.scan``, jitted, float64, time to compile given apart) and, for linear models,
statsmodels. Every program computes the same log-likelihood, which is checked; ours also gives the expected information.
Fits go from the same guess: ours by scoring, statsmodels by its own L-BFGS, the others by SciPy's L-BFGS-B with their
gradients. Seconds are of CPU time, the least of several rounds; everything is imported and compiled before.

    python benchmarks/kalman.py [--only fed-batch wall building] [--fits] [--skip numpy jax statsmodels]

ctsmTMB and CTSM-R need R, which is not looked for here.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import kalman_peers as peers
import numpy as np
from kalman_problems import LinearProblem, NonlinearProblem, building, fed_batch, wall
from scipy.optimize import minimize
from timing import best_of

import grisaille as gr
from grisaille import fit
from grisaille.estimators.fitting import build_problem

CLOCKS = (time.process_time,)


def main() -> None:
    options = _options()
    makers = {"fed-batch": fed_batch, "wall": wall, "building": lambda: building(options.samples)}
    for name in options.only or makers:
        problem: LinearProblem | NonlinearProblem = makers[name]()
        print(f"\n{problem.name}, {len(problem.unknowns)} unknowns")
        ours = _ours(problem)
        programs: dict[str, peers.Evaluate] = {"grisaille": ours, **_peers(problem, set(options.skip))}
        _gradients(problem, programs)
        if options.fits:
            _fits(problem, programs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000, help="of the building")
    parser.add_argument("--only", nargs="*", choices=["fed-batch", "wall", "building"], help="problems to solve")
    parser.add_argument("--fits", action="store_true", help="complete fits too")
    parser.add_argument("--skip", nargs="*", default=[], help="programs to leave out")
    return parser.parse_args()


def _method(problem: LinearProblem | NonlinearProblem) -> gr.KalmanML:
    if isinstance(problem, NonlinearProblem):
        return gr.KalmanML(initial_covariance=problem.P0, propagation="moments", substeps=problem.substeps)
    return gr.KalmanML(initial_covariance=problem.P0)


def _ours(problem: LinearProblem | NonlinearProblem) -> peers.Evaluate:
    posed: Any = build_problem(
        problem.model, problem.data, list(problem.unknowns), _method(problem), bounds={},
        guess=dict(zip(problem.unknowns, problem.guess, strict=True)),
    )  # fmt: skip

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        found = posed.evaluate(theta)
        return found.log_likelihood, -found.slope

    return evaluate


def _peers(problem: LinearProblem | NonlinearProblem, skipped: set[str]) -> dict[str, peers.Evaluate]:
    linear = isinstance(problem, LinearProblem)
    makers: dict[str, Callable[[], peers.Evaluate]] = {
        "numpy": lambda: peers.numpy_linear(problem) if linear else peers.numpy_extended(problem),
        "jax": lambda: peers.jax_linear(problem) if linear else peers.jax_extended(problem),
    }  # fmt: skip
    if linear:
        makers["statsmodels"] = lambda: peers.statsmodels_linear(problem)
    found = {}
    for name, make in makers.items():
        if name in skipped:
            continue
        if importlib.util.find_spec(name) is None:
            print(f"  {name}: not installed")
            continue
        found[name] = make()
    return found


def _gradients(problem: LinearProblem | NonlinearProblem, programs: dict[str, peers.Evaluate]) -> None:
    reference = None
    for name, evaluate in programs.items():
        begin = time.perf_counter()
        value, slope = evaluate(problem.guess)
        first = time.perf_counter() - begin
        seconds, _ = best_of(lambda evaluate=evaluate: evaluate(problem.guess), 1.0, 3 if first < 5 else 1, CLOCKS)
        reference = reference or (seconds, value, slope)
        off = float(np.abs(slope - reference[2]).max() / np.abs(reference[2]).max())
        print(
            f"  {name:<12} likelihood and gradient {1e3 * seconds:10.2f} ms, ratio {seconds / reference[0]:8.1f}, "
            f"first call {first:6.2f} s, log L {value:.8f}, gradient differs by {off:.1e}"
        )


def _fits(problem: LinearProblem | NonlinearProblem, programs: dict[str, peers.Evaluate]) -> None:
    guess = dict(zip(problem.unknowns, problem.guess, strict=True))

    def ours() -> float:
        found = fit(problem.model, problem.data, list(problem.unknowns), _method(problem), guess=guess)
        return float(found.log_likelihood)

    reference = None
    for name, evaluate in programs.items():
        solve: Callable[[], float] = {
            "grisaille": ours,
            "statsmodels": lambda: peers.statsmodels_fit(problem)[0],  # type: ignore[arg-type]
        }.get(name, lambda evaluate=evaluate: _minimised(evaluate, problem.guess))
        seconds, value = _least_time(solve)
        reference = reference or seconds
        print(f"  {name:<12} fit {seconds:10.3f} s, ratio {seconds / reference:8.1f}, log L {value:.6f}")


def _least_time(solve: Callable[[], float]) -> tuple[float, float]:
    """Seconds and answer; three rounds where they are short."""
    times: list[float] = []
    while not times or (len(times) < 3 and times[0] < 1.0):
        begin = time.process_time()
        value = solve()
        times.append(time.process_time() - begin)
    return min(times), value


def _minimised(evaluate: peers.Evaluate, guess: np.ndarray) -> float:
    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            value, slope = evaluate(theta)
        except np.linalg.LinAlgError:
            value, slope = np.nan, np.zeros_like(theta)
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return 1e10, np.zeros_like(theta)
        return -value, -slope

    bounds = [(g - 5.0, g + 5.0) for g in guess]  # all unknowns are logarithms
    return -float(minimize(objective, guess, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}).fun)


if __name__ == "__main__":
    main()
