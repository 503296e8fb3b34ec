"""Files and frames in, ``Experiment`` out: what was done to the plant and what was measured.

Receives tables, arrays and calendars as users have them; hands on immutable, checked experiments in which every signal
is numbers over numbers of one time unit. Nothing is repaired or dropped: what cannot be used is refused with its row,
column and file line.
"""

from typing import TYPE_CHECKING

from grisaille.exports import exported

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

__all__ = ["Experiment"]

__getattr__ = exported(__name__, {"Experiment": "grisaille.experiment.experiment"})
