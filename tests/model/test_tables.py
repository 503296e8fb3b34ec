"""Tables whose values are parameters: interpolation against SciPy, derivatives against differences, refusals."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PchipInterpolator

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.model import Name
from grisaille.model.lowering import lower

x, y = Name("x"), Name("y")
SCALES = [(1.0, 1.0), (1e9, 1e-9), (1e-9, 1e9)]
KNOTS = np.array([-1.0, 0.0, 1.5, 2.0, 4.0, 7.0])
VALUES = np.array([2.0, 1.0, 0.5, 3.0, 3.5, -1.0])
PLACES = np.array([-3.0, -1.0, -0.4, 0.0, 0.3, 1.5, 1.7, 2.0, 3.1, 4.0, 5.5, 7.0, 9.3])


def compiled(knots, n, **options):
    """(x, values) → y, and its derivatives by both."""
    names = [Name(f"v[{k}]") for k in range(n)]
    at, values = ca.SX.sym("x"), ca.SX.sym("v", n)
    symbols = {"x": at, **{f"v[{k}]": values[k] for k in range(n)}}
    (formula,) = lower([gr.table(x, knots, names, **options)], symbols.__getitem__)
    slopes = [ca.densify(ca.jacobian(formula, by)) for by in (at, values)]
    return ca.Function("table", [at, values], [formula, *slopes])


def reference(kind, outside, knots, values, at):
    ends = {"linear": None, "monotone": PchipInterpolator, "cubic": CubicSpline}[kind]
    if outside == "repeat":
        period = knots[-1] - knots[0]
        values, at = np.append(values, values[0]), knots[0] + (at - knots[0]) % period
        if kind == "cubic":
            return CubicSpline(knots, values, bc_type="periodic")(at)
        if kind == "monotone":  # far from its ends a curve of several periods is the periodic one
            knots = np.concatenate([knots + k * period for k in (-1, 0, 1)])
            knots, values = np.delete(knots, [6, 12]), np.concatenate([values[:-1], values[:-1], values])
    inside = np.clip(at, knots[0], knots[-1])
    if ends is None:
        value = np.interp(inside, knots, values)
        slopes = np.diff(values)[[0, -1]] / np.diff(knots)[[0, -1]]
    else:
        curve = ends(knots, values)
        value, slopes = curve(inside), curve([knots[0], knots[-1]], 1)
    if outside != "extend":
        return value
    return value + slopes[0] * np.minimum(at - knots[0], 0) + slopes[1] * np.maximum(at - knots[-1], 0)


@pytest.mark.parametrize(("long", "high"), SCALES)
@pytest.mark.parametrize("outside", ["hold", "extend", "repeat"])
@pytest.mark.parametrize("kind", ["linear", "monotone", "cubic"])
def test_values_and_derivatives(kind, outside, long, high):
    n = len(KNOTS) - (outside == "repeat")
    function, values = compiled(long * KNOTS, n, kind=kind, outside=outside), high * VALUES[:n]
    numbers = gr.table(x, long * KNOTS, values, kind=kind, outside=outside)
    plain = ca.SX.sym("x")
    of_numbers = ca.Function("numbers", [plain], lower([numbers], lambda _: plain))
    for at in long * PLACES:
        expected = reference(kind, outside, long * KNOTS, values, at)
        value, _, by_values = (np.array(o.full()).ravel() for o in function(at, values))
        assert value[0] == pytest.approx(expected, rel=1e-12, abs=1e-13 * high)
        assert float(of_numbers(at)) == pytest.approx(expected, rel=1e-12, abs=1e-13 * high)
        steps = 1e-6 * high * np.hstack([np.eye(n), -np.eye(n)])
        above, below = np.split(np.array(function(at, values[:, None] + steps)[0].full()).ravel(), 2)
        assert by_values == pytest.approx((above - below) / (2e-6 * high), abs=2e-8)
    for at in long * (PLACES + 1e-3):  # beside knots
        step = 1e-5 * long
        difference = float(function(at + step, values)[0] - function(at - step, values)[0]) / (2 * step)
        assert float(function(at, values)[1]) == pytest.approx(difference, rel=1e-6, abs=1e-8 * high / long)


def test_a_linear_table_keeps_small_values_beside_large_ones():
    function = compiled([0.0, 1.0, 2.0, 3.0], 4)
    values = [1e12, 1e-12, 2e-12, 1e12]
    assert float(function(1.5, values)[0]) == pytest.approx(1.5e-12, rel=1e-14)
    assert [float(function(k, values)[0]) for k in range(4)] == values


@pytest.mark.parametrize("n", [2, 3, 6])
def test_slopes_of_a_monotone_table_at_equal_values_are_finite(n):
    """From a constant guess the derivative is the one of values that rise and fall in turns."""
    function = compiled(np.arange(float(n)), n, kind="monotone", outside="extend")
    for at in np.linspace(-0.4, n, 17):
        value, by_x, by_values = (np.array(o.full()).ravel() for o in function(at, np.full(n, 3.0)))
        assert value[0] == pytest.approx(3.0) and by_x[0] == 0
        assert np.isfinite(by_values).all() and by_values.sum() == pytest.approx(1.0)


def test_a_monotone_table_rises_where_its_values_do():
    rng = np.random.default_rng(5)
    knots, values = np.cumsum(rng.uniform(0.1, 3, 9)), np.cumsum(rng.exponential(size=9) ** 3)
    function = compiled(knots, 9, kind="monotone")
    heights = np.array(function(np.linspace(knots[0], knots[-1], 500)[None, :], values)[0].full()).ravel()
    assert (np.diff(heights) > -1e-12).all()


def test_tables_of_two_arguments():
    xs, ys = [0.0, 1.0, 3.0], [-1.0, 0.0, 2.0, 5.0]
    names = np.array([[Name(f"v[{i},{j}]") for j in range(4)] for i in range(3)], dtype=object)
    at, to, values = ca.SX.sym("x"), ca.SX.sym("y"), ca.SX.sym("v", 12)
    symbols = {"x": at, "y": to, **{f"v[{i},{j}]": values[4 * i + j] for i in range(3) for j in range(4)}}
    (formula,) = lower([gr.table2(x, y, xs, ys, names)], symbols.__getitem__)
    function = ca.Function("table2", [at, to, values], [formula, ca.densify(ca.jacobian(formula, values))])
    heights = np.arange(12.0) ** 1.5
    plain = ca.Function("numbers", [at, to], lower([gr.table2(x, y, xs, ys, heights.reshape(3, 4))], symbols.get))
    rng = np.random.default_rng(0)
    for a, b in zip(rng.uniform(-1, 4, 20), rng.uniform(-2, 6, 20), strict=True):
        value, slopes = function(a, b, heights)
        assert float(value) == pytest.approx(float(plain(a, b)), rel=1e-13)
        first, second = (np.array([np.interp(q, g, e) for e in np.eye(len(g))]) for q, g in ((a, xs), (b, ys)))
        assert np.array(slopes.full()).ravel() == pytest.approx(np.outer(first, second).ravel(), abs=1e-14)


def test_a_surface_repeats_itself_along_one_argument():
    at, to = ca.SX.sym("x"), ca.SX.sym("y")
    node = gr.table2(x, y, [0, 1, 2, 4], [0, 1], [[1, 5], [2, 6], [3, 7]], outside=("repeat", "hold"))
    function = ca.Function("f", [at, to], lower([node], {"x": at, "y": to}.__getitem__))
    assert float(function(-1.0, 9.0)) == pytest.approx(float(function(3.0, 1.0))) == pytest.approx(6.0)


p = Name("p")


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: gr.table(x, [0, p], [0, 1]), r"knots and must be numbers.*shift and stretch the argument"),
        (lambda: gr.table(x, [0, 0, 1], [p, p, p]), r"entry 1 \(0\) is not above entry 0 \(0\)"),
        (lambda: gr.table(x, [0, 2, 1], [p, p, p]), "increasing: entry 2"),
        (lambda: gr.table(x, [0, np.nan], [p, p]), "xs must be finite; entry 1"),
        (lambda: gr.table(x, [0, 1], [p, np.nan]), "ys, entry 1: NaN cannot stand"),
        (lambda: gr.table(x, [0, 1], [p, "a"]), "ys, entry 1: The text 'a'"),
        (lambda: gr.table(x, [0, 1], p), r"ys has shape \(\)"),
        (lambda: gr.table(x, [0, 1], [p, p, p]), "xs has 2 entries"),
        (lambda: gr.table(x, [0, 1, 2], [p, p, y], outside="repeat"), "ends where it begins, but its ys end with y"),
        (lambda: gr.table(x, [0, 1], [1, 1], outside="repeat"), "at least three knots"),
        (lambda: gr.table(x, [0, 1, 2], [p, p, p], kind="cubic"), "at least 4 points"),
        (lambda: gr.table2(x, y, [0, 1], [0, 1], [[p, p], [p]]), "must be numbers or formulas"),
        (lambda: gr.table2(x, y, [0, 1], [0, p], [[p, p], [p, p]]), "ys are its knots"),
        (lambda: gr.table2(x, y, [0, 1], [0, 1], [[1, 2], [3, 4]], outside=("hold",)), "outside must be one of"),
    ],
)
def test_wrong_tables(action, words):
    with pytest.raises(ModelError, match=words):
        action()


R, S = [Name(f"cell.R[{k}]") for k in range(3)], [[Name(f"M[{i},{j}]") for j in range(2)] for i in range(2)]


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (gr.table(x, [0, 1, 2], R), "table(x, 3 points, cell.R)"),
        (gr.table(x, [0, 1], [R[0], 2 * p], kind="monotone"), "table(x, 2 points, [cell.R[0], 2*p], monotone)"),
        (gr.table(x, [0, 1, 2], R[:2], outside="repeat"), "table(x, 3 points, cell.R, repeat)"),
        (gr.table2(x, y, [0, 1], [0, 1], S), "table2(x, y, grid, M)"),
    ],
)
def test_tables_as_text(node, text):
    assert str(node) == text


class Cell(gr.Model):
    R0 = gr.Parameter([0.05, 0.03, 0.04], size=3)
    soc = gr.Variable(1.0)
    i = gr.Input()
    equations = [gr.der(soc) == -i]
    v = gr.Output(gr.table(soc, [0, 0.5, 1], [3.0, 3.6, 4.1], kind="monotone") - gr.table(soc, [0, 0.3, 1], R0) * i)


def test_a_model_shows_its_tables():
    shown = str(Cell())
    assert "v = table(soc, 3 points, monotone) - table(soc, 3 points, R0)*i" in shown
    assert "R0           at soc = 0, 0.3, 1  (linear, hold outside)" in shown
    assert "3, 3.6, 4.1  at soc = 0, 0.5, 1  (monotone, hold outside)" in shown
    page = Cell()._repr_html_()
    assert "0, 0.3, 1" in page and "<mi>table</mi>" in page
    assert "<msub><mi>R</mi><mn>0</mn></msub><mrow><mo form" in page
