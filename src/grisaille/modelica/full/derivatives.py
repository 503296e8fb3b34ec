"""Derivatives of formulas, ``der(a - b)``, which rumoca 0.10 refuses: calls of a function while a text is flattened."""

from __future__ import annotations

from grisaille.modelica.refusals import Refused
from grisaille.modelica.tokens import Tokens

NAME = "grisaille_der"
"""The function that stands for ``der`` of a formula while a text is flattened."""
DEFINITION = f"\nfunction {NAME} input Real u; output Real y; algorithm y := u; end {NAME};\n"


def with_named_derivatives(text: str) -> str:
    """Return the text with derivatives of formulas as calls; lines stay where they are."""
    named = with_calls(text)
    return named if named == text else named + DEFINITION


def with_calls(text: str) -> str:
    """Return the text with derivatives of formulas as calls of a function that it does not define."""
    try:
        tokens = Tokens(text)
    except Refused:
        return text
    places = [
        tokens.at[k] for k, kind in enumerate(tokens.kinds)
        if kind == "der" and tokens.kinds[k + 1] == "(" and not _is_of_variable(tokens, k + 2)
    ]  # fmt: skip
    for at in reversed(places):
        text = text[:at] + NAME + text[at + len("der") :]
    return text


def _is_of_variable(tokens: Tokens, k: int) -> bool:
    """Return whether ``a.b[2].c)`` follows."""
    depth = 0
    while True:
        kind = tokens.kinds[k]
        if not depth and kind == ")":
            return True
        depth += (kind == "[") - (kind == "]")
        if (not depth and kind not in ("name", ".", "]")) or k + 2 >= len(tokens.kinds):
            return False
        k += 1
