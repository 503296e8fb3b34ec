"""Formulas as MathML: the user's own formula, in the notation of a textbook.

Nothing is simplified or reordered. Quotients become fractions, powers are raised, ``der(x)`` is a dot, ``k_p0`` has a
subscript, ``phi`` is φ. Browsers render MathML themselves. Parentheses are as few as precedence allows, as in
``text.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from grisaille.markup import Html, joined, tag
from grisaille.model.expression import Call, Constant, Expression, postorder
from grisaille.model.measurement.noise_covariances import is_correlation
from grisaille.model.notation.text import common_vector, number
from grisaille.model.table_functions import table_arguments

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _FRACTION, _POWER, _ATOM = range(9)
LONG = 10
"""Characters of the longest number that is shown as it is."""
SHORT = 3
"""Letters of the longest name that is a symbol: its derivative has a dot, that of a word is a quotient."""
_LONGEST = 60_000
"""Shared sub-formulas are written out at each use; beyond this length they are abbreviated."""

GREEK = dict(
    zip(
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi "
        "chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega".split(),
        "αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΣΦΨΩ",
        strict=True,
    )
)
_NAMED = {
    "log": "ln", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arsinh", "acosh": "arcosh",
    "atanh": "artanh", "minimum": "min", "maximum": "max", "sign": "sgn",
}  # fmt: skip
_RELATIONS = {"lt": "<", "le": "≤", "gt": ">", "ge": "≥"}
_FENCES = {"abs": ("|", "|"), "floor": ("⌊", "⌋"), "ceil": ("⌈", "⌉")}
_DOTS = re.compile(r"\.(?![^\[]*\])")
"""Between the parts of a name, not inside of indices."""
_THIN = Html('<mspace width="0.1em"></mspace>')
_SPACE = Html('<mo lspace="0" rspace="0">&#x2062;</mo><mspace width="0.17em"></mspace>')


class _Markup(NamedTuple):
    markup: Html
    level: int
    signed: bool = False
    """Whether it begins with a minus sign."""
    numeric: bool = False
    """Whether it begins with a digit."""


def formula(root: Expression) -> Html:
    """Return a formula inside the text."""
    return tag("math", row(root))


def equation(left: Expression, right: Expression) -> Html:
    """Return ``left = right`` on a line of its own."""
    return tag("math", row(left), tag("mo", "="), row(right), display="block")


def assignment(target: Expression, value: Expression) -> Html:
    """Return ``target ← value`` on a line of its own: what an event does."""
    return tag("math", row(target), tag("mo", "←"), row(value), display="block")


def symbol(name: str) -> Html:
    """Return a full name such as ``"legs[0].m"``, ``"start(x)"`` or ``"k_p0@A"`` inside the text."""
    wrapped = re.fullmatch(r"(start|scale|noise)\((.*)\)(@.*)?", name)
    if wrapped:
        what, inner, where = wrapped.groups()
        return joined((tag("math", tag("mi", what), _fenced(identifier(inner))), _experiment(where)))
    inner, at, where = name.partition("@")
    return joined((tag("math", identifier(inner)), _experiment(at + where)))


def _experiment(where: str | None) -> Html | None:
    """Beside the formula, as text: names of experiments may be sentences, and formulas do not break."""
    return tag("span", where, class_="at") if where else None


def row(root: Expression) -> Html:
    """Return the MathML of one formula, without the enclosing element."""
    done: dict[int, _Markup] = {}
    for node in postorder((root,)):
        part = _one(node, done)
        done[id(node)] = part if len(part.markup) <= _LONGEST else _Markup(tag("mtext", "(…)"), _ATOM)
    return done[id(root)].markup


def identifier(name: str) -> Html:
    """Return a dotted name: components in front of the symbol, indices as subscripts."""
    if is_correlation(name):
        what, _, inside = name[:-1].partition("(")
        return tag("mrow", identifier(what), _fenced(joined(map(identifier, inside.split(", ")), tag("mo", ","))))
    pieces = []
    for k, part in enumerate(_DOTS.split(name)):
        pieces += [tag("mo", ".", lspace="0", rspace="0")] if k else []
        pieces.append(_subscripted(part))
    return pieces[0] if len(pieces) == 1 else tag("mrow", *pieces)


def _subscripted(part: str, accent: Callable[[Html], Html] = lambda base: base) -> Html:
    base, below = _split(part)
    letter = accent(_letter(base))
    return tag("msub", letter, _letter(below)) if below else letter


def _split(part: str) -> tuple[str, str]:
    """Return ``k_p0[2]`` is k with p0,2 below; digits at the end of a single letter go below too; several words are
    words.
    """
    name, _, index = part.partition("[")
    base, _, below = name.strip("_").partition("_")
    if "_" in below and len(base) > SHORT and base not in GREEK:
        base, below = name.strip("_").replace("_", "\u00a0"), ""
    short = re.fullmatch(r"([A-Za-z]|" + "|".join(GREEK) + r")(\d+)", base)
    if short:
        base, below = short[1], f"{short[2]},{below}" if below else short[2]
    index = index.rstrip("]")
    return base or name, ",".join(piece for piece in (below, index) if piece)


def _letter(word: str) -> Html:
    if re.fullmatch(r"[\d,.]+", word):
        return tag("mn", word)
    return tag("mi", GREEK.get(word, word), style="font-style: italic" if len(GREEK.get(word, word)) > 1 else None)


def _one(node: Expression, done: dict[int, _Markup]) -> _Markup:
    if isinstance(node, Constant):
        return _constant(node.value)
    if not isinstance(node, Call):
        path = node.leaf_text()
        return _Markup(tag("mi", "t") if path == "time" else identifier(path), _ATOM)
    parts = [done[id(a)] for a in node.arguments]
    if node.operation in _OPERATIONS:
        return _OPERATIONS[node.operation](*parts)
    if node.operation == "der":
        return _derivative(node, parts[0])
    if node.operation == "delay":
        return _delayed(node, *parts[:2])
    if node.operation in ("table", "table2"):
        return _table(node, parts)
    if node.operation in _RELATIONS:
        return _infix(parts[0], _RELATIONS[node.operation], parts[1], _COMPARE)
    if node.operation in _FENCES:
        before, after = _FENCES[node.operation]
        return _Markup(_fenced(parts[0].markup, before, after), _ATOM)
    return _Markup(_function(tag("mi", _NAMED.get(node.operation, node.operation)), *parts), _ATOM)


def _constant(value: float) -> _Markup:
    digits, _, exponent = _digits(abs(value)).partition("e")
    markup = tag("mn", digits)
    if exponent:
        power = int(exponent)
        tail = tag("mn", abs(power)) if power >= 0 else tag("mrow", tag("mo", "−"), tag("mn", -power))
        ten = tag("msup", tag("mn", 10), tail)
        markup = ten if digits == "1" else tag("mrow", markup, tag("mo", "·"), ten)
    if value < 0:
        return _Markup(tag("mrow", tag("mo", "−"), markup), _SUM, signed=True)
    return _Markup(markup, _PRODUCT if exponent else _ATOM, numeric=True)


def _digits(value: float) -> str:
    """As written; numbers with more digits than anyone writes were computed, and are rounded."""
    written = number(value)
    return written if len(written) <= LONG else f"{value:.7g}"


def _fenced(inner: Html, before: str = "(", after: str = ")") -> Html:
    """Between parentheses, which grow only around what is taller than a line."""
    grows = "true" if "<mfrac" in inner or "<mtable" in inner else "false"
    opening, closing = (
        tag("mo", sign, form=form, stretchy=grows) for sign, form in ((before, "prefix"), (after, "postfix"))
    )
    return tag("mrow", opening, inner, closing)


def _wrapped(part: _Markup, least: int, sign: bool = True) -> Html:
    """With parentheses where the operator around it binds tighter, or where a sign would follow an operator."""
    return part.markup if part.level >= least and (sign or not part.signed) else _fenced(part.markup)


def _infix(left: _Markup, sign: str, right: _Markup, level: int, strict: bool = False) -> _Markup:
    second = _wrapped(right, level + strict, sign=False)
    return _Markup(tag("mrow", _wrapped(left, level), tag("mo", sign), second), level, left.signed, left.numeric)


def _product(left: _Markup, right: _Markup) -> _Markup:
    second = _wrapped(right, _PRODUCT, sign=False)
    between = tag("mo", "·") if right.numeric else _SPACE
    return _Markup(tag("mrow", _wrapped(left, _PRODUCT), between, second), _PRODUCT, left.signed, left.numeric)


def _negation(part: _Markup) -> _Markup:
    inner = _wrapped(part, _PRODUCT, sign=False)
    return _Markup(tag("mrow", tag("mo", "−", form="prefix"), inner), _PRODUCT, signed=True)


def _power(base: _Markup, exponent: _Markup) -> _Markup:
    return _Markup(tag("msup", _wrapped(base, _ATOM, sign=False), exponent.markup), _POWER, numeric=base.numeric)


def _logical(sign: str, level: int) -> Callable[[_Markup, _Markup], _Markup]:
    return lambda a, b: _Markup(tag("mrow", _wrapped(a, _COMPARE), tag("mo", sign), _wrapped(b, _COMPARE)), level)


def _cases(condition: _Markup, yes: _Markup, no: _Markup) -> _Markup:
    rows = [
        tag("mtr", tag("mtd", yes.markup), tag("mtd", tag("mtext", "if\u2002"), condition.markup)),
        tag("mtr", tag("mtd", no.markup), tag("mtd", tag("mtext", "otherwise"))),
    ]
    return _Markup(tag("mrow", tag("mo", "{", form="prefix"), tag("mtable", *rows, class_="cases")), _SUM)


def _function(name: Html, *arguments: _Markup) -> Html:
    return tag("mrow", name, _fenced(joined((a.markup for a in arguments), tag("mo", ","))))


def _table(node: Call, parts: list[_Markup]) -> _Markup:
    """Return a vector of values names the curve, ``R(soc)``; others stand behind a semicolon."""
    looked_up, values = table_arguments(node)
    before, after = parts[: len(looked_up)], parts[len(looked_up) :]
    names = ["" if isinstance(v, Call | Constant) else v.leaf_text() for v in values]
    vector = common_vector(names) if names and all(names) else ""
    if vector or not values:
        return _Markup(_function(identifier(vector) if vector else tag("mi", "table"), *before), _ATOM)
    inside = [joined((p.markup for p in some), tag("mo", ",")) for some in (before, after)]
    return _Markup(tag("mrow", tag("mi", "table"), _fenced(joined(inside, tag("mo", ";")))), _ATOM)


def _delayed(node: Call, part: _Markup, tau: _Markup) -> _Markup:
    """Return ``u(t − τ)``; a formula stands in brackets with the instant below, what held before is left out."""
    earlier = tag("mrow", tag("mi", "t"), tag("mo", "−"), _wrapped(tau, _PRODUCT, sign=False))
    if isinstance(node.arguments[0], Call):
        return _Markup(tag("msub", _fenced(part.markup, "[", "]"), earlier), _ATOM)
    return _Markup(tag("mrow", part.markup, _fenced(earlier)), _ATOM)


def _derivative(node: Call, part: _Markup) -> _Markup:
    order, inside = int(node.data or 1), node.arguments[0]
    if order <= 2 and not isinstance(inside, Call):
        *_, last = _DOTS.split(inside.leaf_text())
        if last == inside.leaf_text() and len(GREEK.get(_split(last)[0], _split(last)[0])) <= SHORT:
            dots = "˙" if order == 1 else "¨"
            return _Markup(_subscripted(last, lambda base: tag("mover", base, tag("mo", dots), accent="true")), _ATOM)
    d, t = tag("mi", "d", mathvariant="normal"), tag("mi", "t")
    above = d if order == 1 else tag("msup", d, tag("mn", order))
    below = tag("mrow", d, t if order == 1 else tag("msup", t, tag("mn", order)))
    if isinstance(inside, Call):
        return _Markup(tag("mrow", tag("mfrac", above, below), _fenced(part.markup)), _PRODUCT)
    return _Markup(tag("mfrac", tag("mrow", above, _THIN, part.markup), below), _FRACTION)


_OPERATIONS: dict[str, Callable[..., _Markup]] = {
    "add": lambda a, b: _infix(a, "+", b, _SUM),
    "sub": lambda a, b: _infix(a, "−", b, _SUM, strict=True),
    "mul": _product,
    "div": lambda a, b: _Markup(tag("mfrac", a.markup, b.markup), _FRACTION),
    "pow": _power,
    "neg": _negation,
    "and": _logical("∧", _AND),
    "or": _logical("∨", _OR),
    "not": lambda a: _Markup(tag("mrow", tag("mo", "¬"), _wrapped(a, _ATOM)), _NOT),
    "where": _cases,
    "pre": lambda a: _Markup(tag("msup", _wrapped(a, _ATOM), tag("mo", "−")), _POWER),
    "sqrt": lambda a: _Markup(tag("msqrt", a.markup), _ATOM),
    "log10": lambda a: _Markup(_function(tag("msub", tag("mi", "log"), tag("mn", 10)), a), _ATOM),
    "smooth_abs": lambda a, w: _Markup(tag("msub", _fenced(a.markup, "|", "|"), w.markup), _ATOM),
    "smooth_sign": lambda a, w: _Markup(_function(tag("msub", tag("mi", "sgn"), w.markup), a), _ATOM),
}
