"""Two criteria compared by their slopes at the optimum of the first."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.estimation import ApproximationCheck, CriterionMinimum, CriterionTerm, compare_slopes as compare_parts

THETA = np.array([1.0, 2.0])
HESSIAN = np.array([[40.0, 12.0], [12.0, 9.0]])
FREE = np.ones(2, dtype=bool)
NAMES = ("a", "scale(w)")


def optimum(**changes):
    inverse = np.linalg.inv(HESSIAN)
    usual = {
        "theta": THETA, "bounds": (np.array([-np.inf, 0.0]), np.array([np.inf, 9.0])), "gradient": np.zeros(2),
        "covariance": inverse, "inverse": inverse, "free": FREE, "is_curved": FREE,
    }  # fmt: skip
    return CriterionMinimum(**{**usual, **changes})


def compare_slopes(at, value, first, other):
    """With one part that all unknowns move."""
    return compare_parts(at, [CriterionTerm((0, 1), value)], first, other)


def squares(centre):
    """Minus a log-likelihood with the same curvature and another maximum."""
    return lambda theta: 0.5 * float((theta - centre) @ HESSIAN @ (theta - centre))


@pytest.mark.parametrize("move", [np.zeros(2), np.array([0.05, -0.1]), np.array([-0.4, 1.0])])
def test_the_distance_is_that_of_the_two_maxima(move):
    found = compare_slopes(optimum(), squares(THETA + move), "this", "that")
    assert found.distance == pytest.approx(np.sqrt(move @ HESSIAN @ move), abs=1e-9)
    errors = np.sqrt(np.diag(np.linalg.inv(HESSIAN)))
    assert np.allclose(np.array(found.moves) * errors, move)


def test_parts_are_asked_for_their_own_unknowns():
    """Experiments with unknowns of their own do not make the check quadratic."""
    asked = []

    def value(theta):
        asked.append(theta[1] != THETA[1])
        return 0.5 * (theta[0] - 1.0) ** 2

    compare_parts(optimum(), [CriterionTerm((0,), value), CriterionTerm((1,), lambda theta: 0.0)], "this", "that")
    assert len(asked) == 3 and not any(asked)


def test_a_sandwich_measures_moves_by_its_own_errors():
    move = np.array([0.1, 0.1])
    wider = optimum(covariance=4 * np.linalg.inv(HESSIAN), is_curved=~FREE)
    found = compare_slopes(wider, squares(THETA + move), "this", "that")
    assert found.curvatures == (1.0, 1.0)
    assert found.distance == pytest.approx(0.5 * np.sqrt(move @ HESSIAN @ move), abs=1e-9)


def test_unknowns_that_a_bound_decides_are_left_out():
    far = THETA + np.array([0.0, 5.0])
    found = compare_slopes(optimum(free=np.array([True, False])), squares(far), "this", "that")
    assert found.moves[1] == 0.0


def test_steps_stay_inside_the_bounds():
    seen = []

    def value(theta):
        seen.append(theta[1])
        return squares(THETA)(theta)

    near = optimum(theta=np.array([1.0, 1e-4]))
    compare_slopes(near, value, "this", "that")
    assert min(seen) >= 0.0


def test_what_only_one_of_them_sees():
    def blind(theta):
        return 0.5 * HESSIAN[0, 0] * (theta[0] - 1.0) ** 2

    found = compare_slopes(optimum(), blind, "the first", "the second")
    assert found.distance < 1e-9 and found.curvatures[1] == pytest.approx(0.0, abs=1e-6)
    assert "the first determines scale(w), and the second does not" in found.doubts(NAMES)[0]
    nothing = np.full((2, 2), np.inf)
    found = compare_slopes(optimum(covariance=nothing, inverse=nothing), squares(THETA + 0.3), "the first", "that")
    assert "that sees a, scale(w), which the first does not" in found.described(NAMES)


def test_a_criterion_without_values_is_an_obstacle():
    found = compare_slopes(optimum(), lambda theta: np.nan, "this", "that")
    assert np.isnan(found.distance) and not found.is_noted
    said = "approximation: it was not checked how far this approximates: that breaks down at the estimates."
    assert found.notes(NAMES) == (said,)


@pytest.mark.parametrize(
    ("distance", "curvature", "noted", "doubted"),
    [(0.29, 0.9, 0, 0), (0.31, 1.0, 1, 0), (1.01, 1.0, 0, 1), (0.0, 1.3, 1, 0), (0.0, 0.4, 0, 1), (0.0, 2.1, 0, 1)],
)
def test_notes_and_marks_begin_at_their_sizes(distance, curvature, noted, doubted):
    found = ApproximationCheck("this", "that", distance, (distance, 0.0), (1.0, curvature))
    assert (len(found.notes(NAMES)), len(found.doubts(NAMES))) == (noted, doubted)


def test_what_would_change_is_said_with_its_size():
    found = ApproximationCheck("this", "that", 2.0, (-1.9, 0.1), (1.0, 0.25))
    assert found.described(NAMES) == (
        "that would move a by about −1.9 standard errors from where this ends and has a standard error of scale(w) "
        "that is 2 times as large"
    )
