"""Delays of what changes at events only, against what they were a dead time ago."""

from __future__ import annotations

import numpy as np
import pytest
from modelica.texts import model

import grisaille as gr
from grisaille.errors import SimulationError

COUNTED = """
  parameter Real dead = 0.25;
  Integer n(start = 0, fixed = true); Boolean odd; Real half; Real late;
equation
  when sample(0.05, PERIOD) then n = pre(n) + 1; end when;
  odd = mod(n, 2) > 0.5;
  half = 0.5 * n;
  late = delay(half, dead);
"""
TRUTH = "Real truth = delay(if odd then 1.0 else 0.0, 0.31, 1.0);"


def test_values_come_after_their_time() -> None:
    """Up to four of them wait at once; what was before the start is what was there."""
    plant = gr.read_modelica(model(TRUTH + COUNTED.replace("PERIOD", "0.1")))
    times = np.linspace(0.0, 1.49, 52)

    def counted(at: np.ndarray) -> np.ndarray:
        return np.maximum(np.floor((at - 0.05) / 0.1 + 1e-9) + 1, 0.0)

    run = gr.simulate(plant, times)
    assert run["n"].values == pytest.approx(counted(times))
    assert run["late"].values == pytest.approx(0.5 * counted(times - 0.25))
    assert run["truth"].values == pytest.approx(counted(times - 0.31) % 2)


def test_more_changes_than_can_wait_are_told() -> None:
    plant = gr.read_modelica(model(COUNTED.replace("PERIOD", "0.02")))
    with pytest.raises(SimulationError, match="more than 8 changes of a discrete variable would wait in a delay"):
        gr.simulate(plant, np.array([0.0, 1.0]))


SEARCHED = """
function 'place'
  input Real table[:, 2]; input Real x; input Integer last; output Integer next;
algorithm
  next := last;
  while next < size(table, 1) and x >= table[next, 1] loop
    next := next + 1;
  end while;
end 'place';
"""


def test_an_index_counts_through_an_array_from_where_only_a_run_knows() -> None:
    body = """
      Integer k(start = 1, fixed = true); Integer j; Real x = 0.9 * time;
    equation
      when sample(0.5, 1.0) then k = 'place'({{1.0, 5.0}, {2.0, 6.0}, {2.5, 7.0}, {4.0, 8.0}}, x, pre(k)); end when;
      j = k;
    """
    run = gr.simulate(gr.read_modelica(model(body, SEARCHED)), np.array([0.6, 1.6, 2.6, 3.6, 9.6]) - 0.6)
    assert run["j"].values.tolist() == [1.0, 1.0, 2.0, 3.0, 4.0]
