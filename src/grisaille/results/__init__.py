"""Everything in, answers out: fits, comparisons and studies with all that can be asked of them.

Receives what estimation, assessment, studies and reports give; holds ``Fit`` and its like, each method written out, and
the functions that hand them to users. Nothing before this room knows these classes: it works on what they derive from
(``Fitted``, ``Study``, ``ComparedFits``).
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
