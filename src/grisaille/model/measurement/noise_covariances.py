"""Noise that outputs share: covariances of their measurements at one instant, as formulas.

    cov(y1, y2) = formula                                        given, or with parameters in it
    cov(y1, y2) = correlation(y1, y2) noise(y1) noise(y2)        unknown, ``"full"``

``noise(y)`` in such a formula is the standard deviation of an output, whatever it is: declared, or an unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from grisaille.errors import ModelError
from grisaille.model.expression import Call, Expression, Name, postorder
from grisaille.model.rewriting import Rewriter

if TYPE_CHECKING:
    from grisaille.model.flat import FlatModel, FlatOutput

CORRELATION = "correlation("
Pair = tuple[str, str]


def is_correlation(name: str) -> bool:
    """Return whether a parameter is an unknown correlation of the noise of two outputs: no other has parentheses."""
    return name.endswith(")") and name.rpartition("(")[0].rpartition(".")[2] + "(" == CORRELATION


def level_name(output: str) -> str:
    """Return the name of the standard deviation of an output's noise."""
    return f"noise({output})"


def full_covariance(name: str, pair: Pair) -> Expression:
    """Return the covariance of two outputs by their correlation, a parameter of this name."""
    a, b = (Call("noise", (Name(output),)) for output in pair)
    return Call("mul", (Call("mul", (Name(name), a)), b))


def with_level_names(formula: Expression) -> Expression:
    """Return a covariance with ``noise(y)`` as a name."""
    return Rewriter(_level)(formula)


def _level(node: Expression) -> Expression | None:
    if isinstance(node, Call) and node.operation == "noise":
        (output,) = node.arguments
        assert isinstance(output, Name)
        return Name(level_name(output.path))
    return None


def shared_covariances(flat: FlatModel, outputs: Collection[str]) -> dict[Pair, Expression]:
    """Return the covariances of pairs of these outputs; ``noise(y)`` is a name in them."""
    return {(a, b): f for (a, b), f in flat.noise_covariance.items() if a in outputs and b in outputs}


def covariance_formulas(
    flat: FlatModel, outputs: Collection[str], free: Collection[str] = ()
) -> dict[Pair, Expression]:
    """Return the same with declared noise in place of ``noise(y)``, but where that is among the names ``free``."""
    known: dict[str, Expression] = {}
    for name, output in flat.outputs.items():
        if output.noise is not None and level_name(name) not in free:
            known[level_name(name)] = output.noise
    insert = Rewriter(lambda node: known.get(node.path) if isinstance(node, Name) else None)
    return {pair: insert(f) for pair, f in shared_covariances(flat, outputs).items()}


def correlations_of(flat: FlatModel, outputs: Collection[str]) -> list[str]:
    """Return the parameters that are unknown correlations of the noise of these outputs."""
    nodes = postorder(list(shared_covariances(flat, outputs).values()))
    names = dict.fromkeys(n.path for n in nodes if isinstance(n, Name))
    return [n for n in names if n in flat.parameters and is_correlation(n)]


def groups_of(pairs: Collection[Pair], outputs: Sequence[str]) -> list[list[str]]:
    """Return the outputs in groups that covariances tie together, in their order; one by itself is a group too."""
    group = {name: name for name in outputs}
    for a, b in pairs:
        old, new = group[b], group[a]
        group.update({n: new for n, g in group.items() if g == old})
    return [[n for n in outputs if group[n] == g] for g in dict.fromkeys(group.values())]


def refuse_other_laws(owner: str, outputs: Mapping[str, FlatOutput], pairs: Collection[Pair]) -> None:
    """Refuse covariances of outputs that have another law than normal noise."""
    for pair in pairs:
        for name in pair:
            law = outputs[name].distribution if name in outputs else None
            if law is not None:
                raise ModelError(
                    f"{owner}.noise_covariance ties '{pair[0]}' and '{pair[1]}' together, and '{name}' is measured by "
                    f"the law {type(law).__name__}: only normal noise has covariances. Name the outputs with noise= "
                    f'alone, such as {{("a", "b"): "full"}}, or give \'{name}\' noise= in place of distribution=.'
                )
