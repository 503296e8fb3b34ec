"""Vectors: NumPy's operations on arrays of symbols."""

from __future__ import annotations

import math

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import ModelError
from grisaille.model import Condition, Equation, SymbolArray, array, flatten


class Body(gr.Model):
    """A rigid body's translation and rotation."""

    m = gr.Parameter(2.0, "kg")
    J = gr.Parameter(np.diag([1.0, 2.0, 3.0]), size=(3, 3))
    F = gr.Input("N", size=3)
    r = gr.Variable(start=[0.0, 1.0, 2.0], unit="m", size=3)
    v = gr.Variable(start=0.0, size=3)
    omega = gr.Variable(start=0.1, size=3)
    L = J @ omega
    height = gr.Output(r[2])
    place = gr.Output(r)
    equations = [der(r) == v, m * der(v) == F, der(L) == -np.cross(omega, L)]


def test_vector_model_flattens_element_by_element():
    flat = flatten(Body())
    texts = [e.text for e in flat.equations]
    assert texts[:4] == ["der(r[0]) == v[0]", "der(r[1]) == v[1]", "der(r[2]) == v[2]", "m*der(v[0]) == F[0]"]
    assert texts[6] == "der(L[0]) == -(omega[1]*L[2] - omega[2]*L[1])"
    assert list(flat.inputs) == ["F[0]", "F[1]", "F[2]"]
    assert [flat.variables[f"r[{i}]"].start.value for i in range(3)] == [0.0, 1.0, 2.0]
    assert flat.parameters["J[1,1]"].value.value == 2.0
    assert str(flat.outputs["place[2]"].definition) == "r[2]"
    assert str(flat.quantities["L[0]"]) == "J[0,0]*omega[0] + J[0,1]*omega[1] + J[0,2]*omega[2]"
    assert len(flat.equations) == len(flat.variables) == 9


def test_instances_give_arrays_back():
    body = Body(F=[1.0, 0.0, body_force := 2.0], start={"r": [3.0, 4.0, 5.0], "v[1]": 7.0})
    assert isinstance(body.r, SymbolArray) and body.J.shape == (3, 3)
    assert body.start["r[2]"] == 5.0 and body.start["v[1]"] == 7.0
    assert str(flatten(body).quantities["F[2]"]) == str(int(body_force))
    assert Body(J=np.eye(3)).parameters["J[2,2]"].value == 1.0


def test_operations_keep_the_class():
    r = gr.Variable(size=3)
    A = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    for result in (
        r + 1, 2 * r, r**2, A @ r, r[1:], np.sin(r), np.cross(r, [1, 0, 0]), np.concatenate([r, r]), np.stack([r, r]),
        r.reshape(3, 1), np.outer(r, r), np.maximum(r, 0), gr.sin(r), gr.where(r > 0, r, 0), np.where(r > 0, r, 0),
        np.array([1.0, 2.0, 3.0]) * r, r / np.array([1.0, 2.0, 3.0]), der(r), np.clip(r, 0, 1),
        np.einsum("i,j->ij", r, r), array([r[0], 1.0]), r.T,
    ):  # fmt: skip
        assert isinstance(result, SymbolArray), result
    assert isinstance((r == 0)[0], Equation) and (r == 0).shape == (3,)
    assert isinstance((np.zeros(3) == r)[0], Equation)
    assert isinstance((r < 1)[0], Condition)


def test_products_leave_out_zeros_and_ones():
    class Linear(gr.Model):
        x = gr.Variable(size=3)
        equations = [der(x) == np.array([[0, 1, 0], [0, 0, 1], [-2.0, 0, 0]]) @ x]

    assert [e.text for e in flatten(Linear()).equations] == [
        "der(x[0]) == x[1]",
        "der(x[1]) == x[2]",
        "der(x[2]) == -2*x[0]",
    ]


def test_reductions_and_scalars():
    class Sums(gr.Model):
        r, s = gr.Variable(size=3), gr.Variable()
        total = np.sum(r)
        length = np.linalg.norm(r)
        product = r @ r
        spread = s * np.array([1.0, 2.0])
        equations = [s == np.dot(r, [1.0, 2.0, 0.0]), r == 0]

    flat = flatten(Sums())
    assert str(flat.quantities["total"]) == "r[0] + r[1] + r[2]"
    assert str(flat.quantities["length"]) == "sqrt(r[0]**2 + r[1]**2 + r[2]**2)"
    assert str(flat.quantities["product"]) == "r[0]*r[0] + r[1]*r[1] + r[2]*r[2]"
    assert str(flat.quantities["spread[1]"]) == "s*2"
    assert flat.equations[0].text == "s == r[0] + r[1]*2"


def test_more_of_numpy():
    r = gr.Variable(size=3)
    type("Plant", (gr.Model,), {"r": r})
    for result, text in [
        (np.eye(3).dot(r)[1:], "[0*r[0] + 1*r[1] + 0*r[2], 0*r[0] + 0*r[1] + 1*r[2]]"),
        (np.cumsum(r), "[r[0], r[0] + r[1], r[0] + r[1] + r[2]]"),
        (np.mean(r), "(r[0] + r[1] + r[2])/3"),
        (np.vdot(r, [0, 1, 2]), "r[0]*0 + r[1]*1 + r[2]*2"),
        (np.diff(r), "[r[1] - r[0], r[2] - r[1]]"),
        (np.max(r), "maximum(maximum(r[0], r[1]), r[2])"),
        (np.sum(np.stack([r, 2 * r]), axis=0)[0], "r[0] + 2*r[0]"),
    ]:
        assert str(result) == text


def test_slices_and_elements_can_be_named():
    class Slices(gr.Model):
        r = gr.Variable(size=3)
        plane = r[:2]
        last = r[2]
        equations = [der(r) == 0]

    flat = flatten(Slices())
    assert str(flat.quantities["plane[1]"]) == "r[1]" and str(flat.quantities["last"]) == "r[2]"


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda r: r == np.zeros(4), r"shapes \(3,\) and \(4,\) do not fit"),
        (lambda r: r + np.zeros(2), r"shapes \(3,\) and \(2,\) do not fit"),
        (lambda r: np.eye(4) @ r, r"\(4, 4\) and \(3,\) do not fit together in a matrix product"),
        (lambda r: r != 0, "!= has no meaning"),
        (lambda r: bool(r), "no truth value"),
        (lambda r: np.array([r[0], r[1]]) == np.zeros(2), r"gr.array\(\[…\]\)"),
        (lambda r: np.spacing(r), "np.spacing is not known on formulas"),
        (lambda r: gr.Variable(start=[1.0, 2.0], size=3), r"start has shape \(2,\); give one value for all"),
        (lambda r: gr.Variable(size=-1), "size must be a whole number"),
        (lambda r: Body(J=np.eye(2)), r"Body.J has shape \(3, 3\), but the value given has shape \(2, 2\)"),
        (lambda r: Body(start={"r": [1.0, 2.0]}), r"r has shape \(3,\)"),
    ],
)
def test_refusals(action, words):
    with pytest.raises(ModelError, match=words):
        action(gr.Variable(size=3))


def test_correlated_disturbances():
    class Gust(gr.Model):
        rho = gr.Parameter(0.3)
        w = gr.Disturbance(gr.spectra.white(), scale=[1.0, 2.0], size=2, correlation=[[1, rho], [rho, 1]])
        x = gr.Variable(size=2)
        equations = [der(x) == w]

    flat = flatten(Gust())
    ((other, value),) = flat.disturbances["w[0]"].correlation
    assert other == "w[1]" and str(value) == "rho"
    assert flat.disturbances["w[1]"].scale.value == 2.0
    with pytest.raises(ModelError, match="correlation must be a 2 × 2 matrix"):
        type("Bad", (gr.Model,), {"w": gr.Disturbance(gr.spectra.white(), size=2, correlation=np.eye(3))})
    with pytest.raises(ModelError, match="not symmetric"):
        type("Bad", (gr.Model,), {"w": gr.Disturbance(gr.spectra.white(), size=2, correlation=[[1, 0.2], [0.1, 1]])})


def test_plain_arrays_become_symbols_when_named():
    class Plain(gr.Model):
        x, y = gr.Variable(), gr.Variable()
        place = np.array([x, y])
        bent = np.sin(np.array([x, y]))
        mixed = array([x, 1.0])
        equations = [der(place) == -place, place[0] == bent[1] + mixed[1]]

    flat = flatten(Plain())
    assert [e.text for e in flat.equations] == ["der(x) == -x", "der(y) == -y", "x == bent[1] + 1"]
    assert str(flat.quantities["bent[1]"]) == "sin(y)" and str(flat.quantities["mixed[1]"]) == "1"


def test_sums_and_products_of_python_read_well():
    x, y = gr.Variable(), gr.Variable()
    type("Plant", (gr.Model,), {"x": x, "y": y})
    assert str(sum([x, y])) == "x + y" and str(math.prod([x, y])) == "x*y"


def test_arrays_do_not_change_in_place():
    r = gr.Variable(size=2)
    with pytest.raises(ModelError, match="do not change in place"):
        r += 1
    with pytest.raises(ValueError, match="read-only"):
        r[0] = 3.0
    with pytest.raises(ModelError, match=r"write the equations A @ x == b"):
        np.linalg.solve(np.outer(r, r), r)
