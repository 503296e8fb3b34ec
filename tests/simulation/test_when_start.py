"""What fires at the start of a run, and clauses of one instant that need each other, in Python models."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der


class Starts(gr.Model):
    """Conditions that stand at their threshold, on both sides."""

    x = gr.Variable(0.0)
    a, p = gr.Parameter(1.0), gr.Parameter(0.0)
    rises, holds, falls, late, asks, answers = (gr.Discrete(0) for _ in range(6))
    equations = [
        der(x) == a,
        gr.when(rises > 0.5, asks == gr.pre(asks) + 1),
        gr.when(x > p, rises == gr.pre(rises) + 1),
        gr.when(x >= p, holds == gr.pre(holds) + 1),
        gr.when(x <= p, falls == gr.pre(falls) + 1),
        gr.when(gr.time > 0, late == gr.pre(late) + 1),
        gr.when((x > 0.5) & (answers < 0.5), answers == gr.pre(answers) + rises),
    ]


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen"])
def test_what_becomes_true_just_after_the_start_fires(method: str) -> None:
    run = gr.simulate(Starts(), [0.0, 0.25, 1.0], method=method)
    counts = [run[n].values[1] for n in ("rises", "holds", "falls", "late", "asks")]
    np.testing.assert_array_equal(counts, [1, 0, 0, 1, 1])
    np.testing.assert_array_equal(run.answers, [0, 0, 1])


def test_an_instant_that_another_start_would_move_away_has_no_derivative() -> None:
    run = gr.simulate(Starts(), [0.0, 0.25, 1.0], sensitivities=["a"])
    np.testing.assert_allclose(run["d(x)"].values.ravel(), [0.0, 0.25, 1.0], atol=1e-12)
    for name in ("p", "start(x)"):
        with pytest.raises(gr.SimulationError, match=r"fires at t = 0, .* stands at its switch at the start"):
            gr.simulate(Starts(), [0.0, 0.25, 1.0], sensitivities=[name])


class Circle(gr.Model):
    """Each needs what the other sets: both see what held before."""

    x = gr.Variable(0.0)
    a, b = gr.Discrete(0), gr.Discrete(0)
    equations = [
        der(x) == 1,
        gr.when((x > 0.5) & (b < 0.5), a == gr.pre(a) + 1),
        gr.when((x >= 0.5) & (a < 0.5), b == gr.pre(b) + 1),
    ]


def test_clauses_in_a_circle_see_what_held_before() -> None:
    run = gr.simulate(Circle(), [0.0, 0.4, 0.6])
    np.testing.assert_array_equal([run.a, run.b], [[0, 0, 1], [0, 0, 1]])
