"""What changes at events only: ``when``, ``pre``, ``edge``, ``change``, ``sample``, ``reinit``, ``initial()``."""

from __future__ import annotations

from typing import Any, NoReturn

from grisaille.modelica import tree
from grisaille.modelica.evaluation import LAZY, Evaluator, Local
from grisaille.modelica.refusals import Refused

WORDS = ("pre", "edge", "change", "sample", "initial", "reinit", "delay", "spatialDistribution")


def _refuse(_evaluator: Evaluator, node: tree.Calling, _local: Local) -> NoReturn:
    raise Refused(node.at, f"'{node.name}' is not supported")


def is_eventful(node: tree.Node) -> bool:
    """Whether a function of events is called below."""
    return any(isinstance(n, tree.Calling) and n.name in WORDS for n in tree.walk(node))


def refuse_when(node: tree.When) -> Any:
    """Until they are lowered."""
    raise Refused(node.at, "'when' is not supported")


for _word in WORDS:
    LAZY[_word] = _refuse
