"""Files and frames in, ``Experiment`` out: what was done to the plant and what was measured.

Receives tables, arrays and calendars as users have them; hands on immutable, checked experiments in which every signal
is numbers over numbers of one time unit. Nothing is repaired or dropped: what cannot be used is refused with its row,
column and file line.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
