"""Alias elimination: merged variables come back under their names; repetitions and contradictions are named."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import StructureError
from grisaille.model import flatten
from grisaille.structure import reduce_model


class Merged(gr.Model):
    a, b, c, d = gr.Variable(1.0), gr.Variable(), gr.Variable(), gr.Variable()
    equations = [der(a) == -a, b == -a, c == b, d == 4]


def test_names_survive_merging() -> None:
    structure = reduce_model(flatten(Merged()))
    assert structure.equations.aliases == {"b": "-a", "c": "-a", "d": "4"}
    run = gr.simulate(Merged(), [0.0, 1.0], rtol=1e-10)
    assert float(run.c[-1]) == pytest.approx(-np.exp(-1), rel=1e-9)
    assert np.array_equal(run.d, [4.0, 4.0])


def test_equal_and_opposite_means_zero() -> None:
    class Zero(gr.Model):
        a, b, x = gr.Variable(), gr.Variable(), gr.Variable(1.0)
        equations = [a == b, a == -b, der(x) == a - x]

    assert reduce_model(flatten(Zero())).equations.aliases == {"a": "0", "b": "0"}


def test_repeated_equation_leaves_something_open() -> None:
    class Twice(gr.Model):
        a, b, c = gr.Variable(), gr.Variable(), gr.Variable(1.0)
        equations = [a == b, b == a, der(c) == -c]

    with pytest.raises(StructureError, match="only repeats what other equations say") as caught:
        gr.analyze(Twice())
    assert "Underdetermined" in str(caught.value)


def test_contradiction_is_named() -> None:
    class Both(gr.Model):
        a, b = gr.Variable(), gr.Variable(1.0)
        equations = [a == 1, a == 2]

    with pytest.raises(StructureError, match="contradicts what other equations already say about a"):
        gr.analyze(Both())


def test_index_is_that_of_the_equations_as_written() -> None:
    """Two inductors in series: merged they are one state, as written they are an index-2 system."""

    class Series(gr.Model):
        i1, i2, v1, v2 = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(), gr.Variable()
        equations = [2 * der(i1) == v1, 3 * der(i2) == v2, i1 == i2, v1 + v2 == 1]

    analysis = gr.analyze(Series())
    assert analysis.index == 2
    assert analysis.degrees_of_freedom == 1
