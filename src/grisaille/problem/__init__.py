"""Problem folders: ``model.py``, ``data/*.csv`` and ``problem.toml`` in, a problem that can be fitted and studied out.

A folder is what colleagues exchange: the equations, the measurements, and one readable file that says what is unknown
and how it is estimated. Everything that is wrong in it is found at once and told with file and line. Loading a folder
executes its ``model.py``; loading a saved fit never executes anything.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
