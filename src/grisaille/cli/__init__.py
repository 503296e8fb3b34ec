"""The command line: one file per command, each a thin layer over what Python has.

A command parses, calls, prints, and gives an exit status: 0 when all is well, 1 when it finished but the result is not
what was hoped for (a fit that did not converge, a folder with mistakes), 2 for a mistake in what was asked, 3 for a
fault of our own, 130 when it was interrupted. Heavy imports happen inside commands, so that ``grisaille --help`` is
quick.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
