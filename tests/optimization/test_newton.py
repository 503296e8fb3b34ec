"""The bounded damped Newton method: its steps, its two kinds of damping, and unknowns that nothing moves with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import lsq_linear, rosen

from grisaille.bound_experiment import Unknown
from grisaille.estimation import Evaluation
from grisaille.numerics import HessianQuadratic, SquaresQuadratic, bounded_step
from grisaille.optimization import (
    Scaled,
    Search,
    SearchJournal,
    SearchOutcome,
    damped_newton,
    nelder_mead,
    trust_region,
)

Formula = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Residuals(Scaled):
    """½ |r(θ)|² by a formula of r and its Jacobian."""

    def __init__(self, formula: Formula, guess: list[float], lower: float = -np.inf, upper: float = np.inf) -> None:
        self.formula, self.asked = formula, 0
        self.unknowns = tuple(
            Unknown(f"p{k}", "parameter", f"p{k}", None, v, lower, upper) for k, v in enumerate(guess)
        )

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> Evaluation:
        self.asked += 1
        r, J = self.formula(theta)
        return Evaluation(theta, r, J if sensitive else J[:0], r, ())

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        found = self.evaluate(theta)
        return found.objective, found.gradient


METHODS: dict[str, Callable[[Search], SearchOutcome]] = {
    "gauss-newton": lambda search: damped_newton.minimize(search, damped_newton.BacktrackingDamping(), tolerance=1e-12),
    "levenberg-marquardt": lambda search: damped_newton.minimize(
        search, damped_newton.MarquardtDamping(), tolerance=1e-12
    ),
    "trust-region": lambda search: trust_region.minimize(search, 1e-12),
    "nelder-mead": lambda search: nelder_mead.minimize(search, tolerance=1e-12),
}


@pytest.mark.parametrize("seed", range(6))
def test_a_step_minimises_the_model_inside_its_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    J, r = rng.standard_normal((12, 4)) * [1.0, 1e6, 1e-6, 1.0], rng.standard_normal(12)
    size = np.linalg.norm(J, axis=0)
    whole = np.linalg.lstsq(J, -r, rcond=None)[0]
    assert bounded_step(SquaresQuadratic(J, r, size), -np.full(4, np.inf), np.full(4, np.inf), 0.0) == pytest.approx(
        whole
    )
    low, high = -rng.random(4) * np.abs(whole), rng.random(4) * np.abs(whole)
    best = lsq_linear(J * np.abs(whole), -r, (low / np.abs(whole), high / np.abs(whole)), method="bvls").x
    for model in (SquaresQuadratic(J, r, size), HessianQuadratic(J.T @ r, J.T @ J)):
        step = bounded_step(model, low, high, 1e-13)
        assert ((step >= low) & (step <= high)).all()
        lost = np.sum((J @ step + r) ** 2) - np.sum((J @ (best * np.abs(whole)) + r) ** 2)
        assert lost < 0.2 * (r @ r)  # which bounds hold is guessed once, and again with the next step


def test_damping_turns_a_step_towards_the_gradient() -> None:
    H, g = np.array([[4.0, 1.0], [1.0, 1.0]]), np.array([1.0, -2.0])
    for damping in (0.0, 0.3, 50.0):
        expected = -np.linalg.solve(H + damping * np.diag(np.diag(H)), g)
        free = np.full(2, np.inf)
        assert bounded_step(HessianQuadratic(g, H), -free, free, damping) == pytest.approx(expected)


def rosenbrock(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = theta
    return np.array([10 * (y - x**2), 1 - x]), np.array([[-20 * x, 10.0], [-1.0, 0.0]])


@pytest.mark.parametrize("name", METHODS)
def test_rosenbrock(name: str) -> None:
    search = Search(Residuals(rosenbrock, [-1.2, 1.0]), most=2000)
    outcome = METHODS[name](search)
    assert 2 * outcome.evaluation.objective == pytest.approx(rosen(outcome.evaluation.theta), abs=1e-12)
    assert outcome.evaluation.theta == pytest.approx([1.0, 1.0], abs=1e-6)
    assert search.evaluations == search.criterion.asked


@pytest.mark.parametrize("name", [m for m in METHODS if m != "nelder-mead"])
def test_bounds_hold(name: str) -> None:
    search = Search(Residuals(rosenbrock, [-1.2, 0.2], -2.0, 0.25), most=2000)
    outcome = METHODS[name](search)
    # x ≤ 0.25 decides: y = x²
    assert outcome.evaluation.theta == pytest.approx([0.25, 0.0625], abs=1e-6)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("most", [1, 4, 9])
def test_a_limit_is_kept(name: str, most: int) -> None:
    search = Search(Residuals(rosenbrock, [-1.2, 1.0]), most=most)
    outcome = METHODS[name](search)
    assert search.evaluations <= most + (name == "nelder-mead")  # whose answer has no derivatives yet
    assert not outcome.stopped_well and outcome.reason == "the limit of evaluations was reached"


X = np.linspace(1.0, 6.0, 25)


def saturating(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a (1 − exp(−k x)) against a constant: k only has to be large, and then no longer matters."""
    a, k = theta
    fade = np.exp(-k * X)
    data = 2.0 + 0.01 * np.cos(17 * (X - 1))
    return (data - a * (1 - fade)) / 0.01, -np.column_stack([1 - fade, a * X * fade]) / 0.01


@pytest.mark.parametrize(("name", "most"), [("gauss-newton", 15), ("levenberg-marquardt", 30),
                                            ("trust-region", 25), ("nelder-mead", 400)])  # fmt: skip
def test_an_unknown_that_dies_on_the_way_is_held(name: str, most: int) -> None:
    search = Search(Residuals(saturating, [1.0, 0.5]), most=2000)
    found = METHODS[name](search).evaluation.theta
    assert search.evaluations <= most
    assert found[0] == pytest.approx(2.0 + 0.01 * np.cos(17 * (X - 1)).mean(), abs=1e-6)
    assert 8 < found[1] < 1e3


def awakening(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """min(a x, top): at the guess all is below the top, at the end it is not."""
    a, top = theta
    below = a * X < top
    data = np.minimum(2.0 * X, 7.0) + 1e-3 * np.sin(17 * X)
    J = np.column_stack([np.where(below, X, 0.0), np.where(below, 0.0, 1.0)])
    return (data - np.minimum(a * X, top)) / 1e-3, -J / 1e-3


@pytest.mark.parametrize("name", METHODS)
def test_an_unknown_that_comes_alive_is_let_go(name: str) -> None:
    search = Search(Residuals(awakening, [0.5, 4.0]), most=2000)
    J = search.evaluate(np.array([0.5, 4.0])).jacobian
    assert not J[:, 1].any()
    assert METHODS[name](search).evaluation.theta == pytest.approx([2.0, 7.0], abs=2e-3)


def test_a_search_reports_better_points_and_remembers_the_best() -> None:
    seen: list[tuple[int, float]] = []
    journal = SearchJournal(lambda evaluations, objective: seen.append((evaluations, objective)))
    outcome = METHODS["gauss-newton"](Search(Residuals(rosenbrock, [-1.2, 1.0]), journal))
    objectives = [objective for _, objective in seen]
    assert objectives == sorted(objectives, reverse=True) and [row["objective"] for row in journal.trace] == objectives
    assert journal.reached is not None and np.array_equal(journal.reached, outcome.evaluation.theta)
    assert SearchJournal.of(journal) is journal
