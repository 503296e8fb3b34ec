"""Two joined bodies: verdicts as printed, the descriptor route equal to the reduction by hand."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille_reproductions import gerdin_bodies, gerdin_example, gerdin_standard_form, registry


@pytest.fixture(scope="module")
def found():
    (entry,) = registry.find("gerdin/example")
    return entry.run("small")


def test_projected_vectors_are_those_of_the_source() -> None:
    np.testing.assert_allclose(gerdin_example.projected(0), [[0, 0], [0, 0], [0.5, -0.5]], atol=1e-12)
    np.testing.assert_allclose(gerdin_example.projected(1), np.zeros((3, 2)), atol=1e-12)


def test_verdicts_are_those_of_the_source(found) -> None:
    published = [row for row in found.rows if row.published is not None]
    assert len(published) == 9
    for row in published:
        assert row.ours == row.published, row.quantity


def test_routes_agree(found) -> None:
    assert found.ours("routes: log-likelihood at one point, relative") < 1e-10
    assert found.ours("routes: largest of the maxima, relative") < 1e-10
    assert found.ours("routes: numerical standard form of section 8, relative") < 1e-10
    assert found.ours("routes: estimates, relative") < 1e-8
    assert found.ours("routes: standard errors, relative") < 1e-8
    assert found.ours("smoothed force, largest difference of the routes [N]") < 1e-8


def test_states(found) -> None:
    assert found.ours("true force inside its smoothed 95 % band [%]") > 80
    assert found["states of f under white forces"].ours == "refused"


def test_numerical_standard_form_away_from_the_optimum() -> None:
    """Unequal masses, and every unknown moved: an independent filter on the separated pencil."""
    data, _ = gerdin_bodies.record(60)
    at = {
        "m_1": 1.3,
        "m_2": 0.8,
        "d": 0.4,
        "scale(w_1)": 0.6,
        "scale(w_2)": 0.2,
        "noise(y_v)": 0.03,
        "noise(y_f)": 0.12,
    }
    theirs = gerdin_standard_form.log_likelihood(at, data, 0.01)
    for model in (gerdin_bodies.MeasuredForce(), gerdin_bodies.OneBodyWithForce()):
        method = gr.KalmanML(initial_covariance={"v_1": 0.01})
        ours = gr.evaluate(model, data, method, at, estimate=gerdin_example.UNKNOWNS).log_likelihood
        assert ours == pytest.approx(theirs, rel=1e-10)
