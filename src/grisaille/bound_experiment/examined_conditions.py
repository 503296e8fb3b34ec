"""Inputs of a record at a few instants, at which a nonlinear model is examined before it is fitted.

A model need not have values where its inputs are zero, F**1.5 / (F + a * F**0.5); what counts is where the data are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grisaille.experiment.piecewise_polynomials import make_table
from grisaille.structure.descriptor.operating_point import PointConditions
from grisaille.structure.reduction import Structure

EXAMINED_INSTANTS = 3


def conditions_of(
    structure: Structure,
    times: np.ndarray,
    inputs: Mapping[str, tuple[np.ndarray, np.ndarray]],
    hold: Mapping[str, str] | str | None,
    starts: Mapping[str, float],
) -> list[PointConditions]:
    """Return the record's start state under its inputs at several instants; derivatives of inputs are zero."""
    signals = [s for s in structure.system.signals if s.kind == "input" and s.order == 0]
    defaults = {n: i.default for n, i in structure.model.inputs.items()}
    table = make_table(signals, inputs, hold, times, defaults)
    chosen = np.unique(np.linspace(0, len(times) - 1, EXAMINED_INSTANTS).astype(int)) if signals else [0]
    found = []
    for k in chosen:
        t = float(times[k])
        given = dict(zip([s.name for s in signals], table.at(t).tolist(), strict=True))
        found.append(PointConditions("the record's start" if k == 0 else f"inputs of t = {t:g}", t, given, starts))
    return found
