"""How far beyond a switch a run keeps its piece: ten times its tolerance (``structure/held.py``)."""

from __future__ import annotations

from dataclasses import replace

from grisaille.experiment.interpolation import SignalTable
from grisaille.structure.held import LEEWAY
from grisaille.structure.system import System


def with_leeway(table: SignalTable, system: System, rtol: float) -> SignalTable:
    """The table with the leeway that belongs to a tolerance; as it is where no relation is held."""
    place = next((k for k, s in enumerate(system.signals) if s.name == LEEWAY), None)
    if place is None:
        return table
    coef = table.coef.copy()
    coef[:, place, 0] = 10.0 * rtol
    return replace(table, coef=coef)
