"""Where a likelihood has no maximum, nothing is said about what is determined, and edges of tables are named."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem
from grisaille.estimators.kalman_ml import off_a_maximum


def problem(kind: str, over: str):
    class Cell(gr.Model):
        k, q, u = gr.Parameter(0.1, bounds=(0.01, 1.0)), gr.Variable(1.0), gr.Input()
        y = gr.Output(gr.table(q if over == "q" else u, [0.0, 0.3, 0.7, 1.0], [0.0, 1.0, 1.5, 3.0], kind), noise=0.1)
        equations = [der(q) == -k * u * q]

    t = np.arange(6.0)
    return build_problem(Cell(), gr.Experiment(t, {"u": t / 6}, {"y": 3 - 0.1 * t}), ["k"], gr.KalmanML())


@pytest.mark.parametrize(("kind", "over", "named"), [("linear", "q", 1), ("cubic", "q", 0), ("linear", "u", 0)])
def test_an_edge_is_named_where_a_filter_meets_one(kind: str, over: str, named: int) -> None:
    notes = off_a_maximum(
        problem(kind, over), ["not determined: the criterion does not change along k; fix it.", "bound: k"]
    )
    assert notes[0] == "bound: k" and len(notes) == 1 + named
    assert all("a table over q meet in knots" in n and "kind='cubic'" in n for n in notes[1:])
