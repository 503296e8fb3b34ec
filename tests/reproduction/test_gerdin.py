"""Two joined bodies: verdicts as printed, the descriptor route equal to the reduction by hand."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.reproduction import gerdin_example, registry


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
    assert found.ours("routes: estimates, relative") < 1e-8
    assert found.ours("routes: standard errors, relative") < 1e-8
    assert found.ours("smoothed force, largest difference of the routes [N]") < 1e-8


def test_states(found) -> None:
    assert found.ours("true force inside its smoothed 95 % band [%]") > 80
    assert found["states of f under white forces"].ours == "refused"
