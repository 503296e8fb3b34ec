"""Affine everywhere, or in pieces; jumps told from bends."""

from __future__ import annotations

import casadi as ca
import pytest

from grisaille.model.lowering import lower_table
from grisaille.structure import certain_jumps_of, is_affine, jumps_of, relations_of, separate_jumps, separate_relations

x, y, p = ca.SX.sym("x"), ca.SX.sym("y"), ca.SX.sym("p")
SMOOTH = {"affine": 2 * x + y, "parameter": ca.if_else(p > 1, 2 * x, x), "of another": x + ca.sign(y)}
BENDING = {
    "where": ca.if_else(x > 1, 2 * x - 1, x),
    "at a parameter": ca.if_else(x > p, p * x, p * p),
    "x sign(x)": x * ca.sign(x),
    "square root": ca.if_else(x > 1e5, ca.sqrt(ca.fmax(x - 1e5, 0)), 0),
    "scaled": ca.if_else(x > 3e8, 1e-9 * (x - 3e8), 0),
}
JUMPING = {
    "where": x + ca.if_else(x > 1, 0.5, 0),
    "sign": p * ca.sign(x),
    "floor": 2 * x + ca.floor(x),
    "ceil": ca.ceil(3 * x),
    "beyond 300": ca.if_else(x > 300, x, y),
    "tiny": 1e-9 * ca.if_else(x >= 1e-9, 1, 0),
    "both": ca.if_else(ca.logic_and(x > 0, y > 0), 1, 0),
    "nonlinear switch": ca.if_else(x * x * x + x > 5, 1, 2),
    "nested": ca.if_else(ca.sign(x) > 0, 1, 0),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_affine_formulas_have_no_relations(name: str) -> None:
    assert is_affine(SMOOTH[name], x)
    assert relations_of(SMOOTH[name], x) == [] == jumps_of(SMOOTH[name], x)


@pytest.mark.parametrize("name", BENDING)
def test_bends_are_neither_affine_nor_jumps(name: str) -> None:
    assert not is_affine(BENDING[name], x)
    assert jumps_of(BENDING[name], x) == []
    assert separate_jumps([BENDING[name]], x)[1] == []


@pytest.mark.parametrize("name", JUMPING)
def test_jumps_are_found_and_taken_apart(name: str) -> None:
    formula = JUMPING[name]
    assert not is_affine(formula, x)
    assert len(jumps_of(formula, x)) == 1
    (smooth,), pieces = separate_jumps([formula], x)
    back = smooth
    for piece in reversed(pieces):
        back = ca.substitute(back, piece.symbol, piece.relation.value)
    both = ca.Function("both", [x, y, p], [formula, back])
    for at in (-3.7, -0.4, 0.0, 0.9, 1.0, 1.6, 301.0):
        one, other = both(at, 0.3, 1.2)
        assert float(one) == float(other)


def test_a_jump_on_a_part_of_a_switch_is_not_certain() -> None:
    formula = ca.if_else(x > 0, x + ca.fmax(y, 0), 0)
    assert len(jumps_of(formula, ca.vertcat(x, y))) == 1
    assert certain_jumps_of(formula, ca.vertcat(x, y)) == []
    assert len(certain_jumps_of(ca.if_else(x > 0, y, 0), x)) == 1


def test_pieces_share_a_symbol_where_the_relation_is_the_same() -> None:
    formulas, pieces = separate_relations([ca.if_else(x > 1, y, 0), 3 * ca.if_else(x > 1, 1, p)], x)
    assert len(formulas) == 2 and len(pieces) == 1
    assert pieces[0].relation.kind == "lt"


def test_vectors_keep_their_shape() -> None:
    matrix = ca.vertcat(ca.horzcat(x, ca.sign(x)), ca.horzcat(1, y))
    (smooth,), pieces = separate_relations([matrix], x)
    assert smooth.shape == (2, 2) and len(pieces) == 1
    assert not is_affine(matrix, x) and is_affine(matrix, y)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("beside", [1e-6, 1.0, 1e6])
def test_jumps_and_bends_in_any_unit(size, beside):
    """A jump beside terms that are far larger is one; what joins at the switch is none, however small it is."""
    h, q, k = ca.SX.sym("h"), ca.SX.sym("q"), ca.SX.sym("k")
    rest = beside * q - k * h
    jumping = [
        rest - ca.if_else(h > size, 0.5 * size / beside, 0.0),
        rest + ca.sign(h - size) * size,
        rest + ca.if_else(h > size, h - 0.5 * size, 0.0),
        (1e21 * rest**3 + ca.if_else(h > size, size, 0.0)) / (1 + k**2),
        2 * (1e30 * rest**3 + ca.floor(h / size)),
    ]
    bending = [
        rest + ca.if_else(h > size, 2 * h - size, h),
        rest + ca.if_else(h > size, ca.sqrt(ca.fmax(h - size, 0.0)), 0.0),
        rest + ca.if_else(h > size, 3 * h**2 * size - 3 * h * size**2 + size**3, h**3),
    ]
    assert all(jumps_of(f, h) for f in jumping)
    assert not any(jumps_of(f, h) for f in bending)


def test_jumps_that_are_felt_in_few_places_only():
    """Where a table, a hat, a bell or a range of the same symbol is not zero; a hat itself only bends."""
    s, y = ca.SX.sym("s"), ca.SX.sym("y")
    short = ca.sin(50 * s) > 0.999
    hat = ca.fmax(0, 1 - 2 * ca.fabs(s - 3.5))
    table = lower_table(("linear", "hold", [0.0, 3.0, 3.5, 4.0, 10.0], [0.0, 0.0, 1.0, 0.0, 0.0]), s)
    far = ca.fmax(0, 1 - 2 * ca.fabs(s**2 - 12.25))
    for felt in (hat, table, far, ca.fmax(0, 1 - 2 * ca.fabs(y - 3.5)), ca.exp(-(((s - 3.5) / 0.02) ** 2))):
        (jump,) = jumps_of(ca.if_else(short, felt, 0), ca.vertcat(s, y))
        assert str(jump.value) == "(0.999<sin((50*s)))"
    assert not jumps_of(ca.if_else(s > 4.0, hat, 0), s)
    assert not jumps_of(table * far, s)
