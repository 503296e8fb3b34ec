"""Unknowns that never change do not stand in the way of index reduction."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, time, where


class Follower(gr.Model):
    """x is led by a course whose slope is decided by unknowns that are formulas of parameters."""

    a, b = gr.Parameter(-2.0), gr.Parameter(0.5)
    size, slope, x, v, f = (gr.Variable() for _ in range(5))
    equations = [
        size == abs(a), slope == where((size <= 1e-9) | (b <= 0), 0, size * b),
        x == slope * time**2, v == der(x), der(v) == f,
    ]  # fmt: skip


def test_a_relation_of_constants_is_no_switch() -> None:
    got = gr.simulate(Follower(), [0.0, 1.0, 2.0])
    assert got["f"].values == pytest.approx([2.0, 2.0, 2.0])
    assert got["size"].values == pytest.approx([2.0, 2.0, 2.0])
    other = gr.simulate(Follower(), [0.0, 1.0, 2.0], parameters={"a": 4.0, "b": 1.0})
    assert other["x"].values == pytest.approx([0.0, 4.0, 16.0])
    none = gr.simulate(Follower(), [0.0, 1.0, 2.0], parameters={"a": 0.0})
    assert np.abs(none["x"].values).max() == 0.0


def test_a_relation_of_what_moves_still_is_one() -> None:
    class Jumping(gr.Model):
        size, x, v, y = gr.Variable(), gr.Variable(), gr.Variable(), gr.Variable(0.0)
        equations = [der(y) == 1, size == abs(y), x == where(size <= 0.5, 0, size), v == der(x)]

    with pytest.raises(gr.StructureError, match="makes it jump"):
        gr.simulate(Jumping(), [0.0, 1.0])
