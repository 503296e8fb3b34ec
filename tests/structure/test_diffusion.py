"""White noise in the reduced system: drift and factor, what is refused, which reading is asked for."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import ModelError, StructureError
from grisaille.structure import structure_of
from grisaille.structure.stochastic import Diffusion, correlation_mask, find_diffusion

W = gr.spectra.white
LOW = gr.spectra.lowpass


def model(name: str, equations: Any, variables: int = 1, spectrum: Any = None, **members: Any) -> gr.Model:
    """A model with variables a, b, … and disturbances v, w that ``equations(a, b, …, v, w)`` relates."""
    body: dict[str, Any] = {n: gr.Variable(start=1.0) for n in "abcd"[:variables]}
    body |= {n: gr.Disturbance(spectrum or W()) for n in "vw"}
    body |= members
    ordered = [body[n] for n in ["abcd"[k] for k in range(variables)] + ["v", "w"]]
    body["equations"] = equations(*ordered)
    return type(name, (gr.Model,), body)()


def diffusion(*arguments: Any, **members: Any) -> Diffusion:
    return find_diffusion(structure_of(model("Case", *arguments, **members)))


def numbers(d: Diffusion, formula: ca.SX, x: Any, root: Any = None) -> np.ndarray:
    function = ca.Function("f", d.symbols, [ca.densify(formula)])
    D = np.eye(d.nw) if root is None else root
    return np.array(function(0.0, x, np.full(d.system.nu, 7.0), np.zeros(d.system.np), D))


def test_drift_and_factor_of_an_explicit_equation():
    d = diffusion(lambda a, b, v, w: [der(a) == -2 * a + a * b * v + 3 * w, 2 * der(b) == a + b * v], 2)
    assert d.names == ("v", "w") and d.readings == ("ito", "ito") and d.driven == (0, 1)
    np.testing.assert_allclose(numbers(d, d.drift, [2.0, 5.0]), [[-4.0], [1.0]])
    np.testing.assert_allclose(numbers(d, d.gain, [2.0, 5.0]), [[10.0, 3.0], [2.5, 0.0]])
    root = np.array([[2.0, 0.0], [9.0, 4.0]])  # 9 is not in the mask: v and w are independent
    np.testing.assert_allclose(numbers(d, d.noise, [2.0, 5.0], root), [[20.0, 12.0], [5.0, 0.0]])


def test_coloured_disturbances_stay_signals():
    d = diffusion(lambda a, v, w: [der(a) == -a + v * w], v=gr.Disturbance(LOW(2.0)))
    assert d.names == ("w",) and d.is_additive
    np.testing.assert_allclose(numbers(d, d.gain, [1.0]), [[7.0]])


@pytest.mark.parametrize(
    ("equations", "variables", "properties"),
    [
        (lambda a, v, w: [der(a) == -a + v + 2 * w], 1, "additive decoupled commutative"),
        (lambda a, b, v, w: [der(a) == b, der(b) == a * v + w], 2, "decoupled commutative"),
        (lambda a, b, v, w: [der(a) == a * v, der(b) == gr.sqrt(b) * w], 2, "commutative"),
        (lambda a, b, v, w: [der(a) == v, der(b) == w], 2, "additive decoupled commutative"),
        (lambda a, b, v, w: [der(a) == a * v + a * w, der(b) == 2 * b * v], 2, "commutative"),
        (lambda a, b, v, w: [der(a) == gr.exp(a) * v + (1 + gr.exp(a)) * w, der(b) == -b], 2, ""),
        (lambda a, b, v, w: [der(a) == v, der(b) == a * w], 2, ""),
    ],
)
def test_properties(equations, variables, properties):
    d = diffusion(equations, variables)
    found = [n for n in ("additive", "decoupled", "commutative") if getattr(d, f"is_{n}")]
    assert " ".join(found) == properties


def test_a_bracket_that_cancels_only_in_numbers_is_seen():
    d = diffusion(lambda a, b, v, w: [der(a) == gr.sin(a) * gr.cos(a) * v + gr.sin(2 * a) * w, der(b) == -b], 2)
    assert d.is_commutative and not d.is_decoupled


class TestRefused:
    @pytest.mark.parametrize(
        ("equations", "words"),
        [
            (lambda a, v, w: [der(a) == -a + w**2 + v], r"White noise w enters 'der\(a\) == -a \+ w\*\*2 \+ v'"),
            (lambda a, v, w: [der(a) == gr.sin(v)], r"White noise v enters .*sin\(v\).* nonlinearly"),
            (lambda a, v, w: [der(a) == v * w], r"enters 'der\(a\) == v\*w' nonlinearly"),
            (lambda a, v, w: [der(a) == gr.sign(v)], r"White noise v enters 'der\(a\) == sign\(v\)' nonlinearly"),
            (lambda a, v, w: [der(a) == gr.floor(w) - a], r"White noise w enters .*floor\(w\).* nonlinearly"),
            (lambda a, v, w: [der(a) == gr.where(w > a, 1.0, 0.0)], r"White noise w enters .*where.* nonlinearly"),
        ],
    )
    def test_nonlinear_noise_with_equation_and_remedy(self, equations, words):
        with pytest.raises(StructureError, match=words) as error:
            diffusion(equations)
        assert "gr.spectra.lowpass(bandwidth=…)" in str(error.value)

    def test_nonlinear_through_an_algebraic_variable(self):
        with pytest.raises(StructureError, match=r"b, which contains the white noise w, enters 'der\(a\) == b\*\*2'"):
            diffusion(lambda a, b, v, w: [der(a) == b**2, b == 2 * w - a], 2)

    def test_a_state_that_is_white_noise(self):
        with pytest.raises(StructureError, match=r"reaches a state. Variable a has infinite variance: w .* directly"):
            diffusion(lambda a, b, v, w: [a == w + b, der(a) + der(b) == -b], 2)

    def test_a_constraint_with_white_noise(self):
        with pytest.raises(StructureError, match="infinite variance"):
            diffusion(lambda a, b, v, w: [der(a) == b, a**3 + a == w], 2)

    def test_an_output_that_is_white_noise(self):
        with pytest.raises(StructureError, match=r"Output y has infinite variance: w .*presampling_filter"):

            class Beside(gr.Model):
                z1, z2 = gr.Variable(), gr.Variable()
                v, w = gr.Disturbance(W()), gr.Disturbance(W())
                y = gr.Output(z1 + z2)
                equations = [der(z1) == -2 * z1 + v, z2 == w]

            find_diffusion(structure_of(Beside()))

    def test_an_implicit_block(self):
        with pytest.raises(StructureError, match=r"solved for \{b\} by iteration"):
            diffusion(lambda a, b, v, w: [der(a) == b, b + gr.exp(b) == a + w], 2)

    def test_no_white_noise(self):
        with pytest.raises(ModelError, match="no white disturbance"):
            diffusion(lambda a, v, w: [der(a) == -a + v + w], spectrum=LOW(1.0))


def test_variables_of_infinite_variance_are_listed_not_refused():
    class TwoBodies(gr.Model):
        v1, v2, f = gr.Variable(), gr.Variable(), gr.Variable()
        w1, w2 = gr.Disturbance(W()), gr.Disturbance(W())
        y = gr.Output(3 * v1 - v2)
        equations = [der(v1) == f + w1, der(v2) == -f + w2, v1 == v2]

    d = find_diffusion(structure_of(TwoBodies()))
    assert d.infinite == ("f", "w1", "w2") and d.is_additive
    np.testing.assert_allclose(numbers(d, d.gain, np.zeros(d.system.nx))[0], [0.5, 0.5])


class Pendulum(gr.Model):
    m, g, L = gr.Parameter(0.3), gr.Parameter(9.81), gr.Parameter(2.0)
    x, y = gr.Variable(start=0.0), gr.Variable(start=-L)
    vx, vy = gr.Variable(start=0.0), gr.Variable(start=0.0)
    tension = gr.Variable()
    w = gr.Disturbance(W())
    phi = gr.Output(gr.atan2(x, -y))
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x + w,
        m * der(vy) == tension * y - m * g,
        x**2 + y**2 == L**2,
    ]


def test_the_pendulum_under_a_white_force_needs_no_reading():
    d = find_diffusion(structure_of(Pendulum()))
    assert d.is_decoupled and not d.is_additive and set(d.infinite) == {"tension", "w"}


def circle(**reading: Any) -> gr.Model:
    return model(
        "Circle",
        lambda a, b, c, v, w: [der(a) == c * a + v, der(b) == c * b + w, a**2 + b**2 == 1],
        3,
        W(**reading),
    )


class TestReading:
    def test_explicit_equations_are_read_as_ito(self):
        d = diffusion(lambda a, v, w: [der(a) == 0.3 * a + a * w + v])
        assert d.readings == ("ito", "ito") and not ca.depends_on(d.drift, d.root)

    def test_the_correction_of_stratonovich(self):
        d = diffusion(lambda a, b, v, w: [der(a) == a**2 * v, der(b) == a * w], 2, W(interpretation="stratonovich"))
        drift = numbers(d, d.drift, [1.5, 1.0], np.diag([0.7, 2.0]))
        np.testing.assert_allclose(drift, [[1.5**3 * 0.49], [0.0]])  # ½ ∂(a²)/∂a a² Q; a and b have separate noises

    def test_correlated_noises_correct_each_other(self):
        r = gr.Disturbance(W(interpretation="stratonovich"), size=2, correlation=[[1, 0.5], [0.5, 1]])

        class Pair(gr.Model):
            a, b = gr.Variable(start=1.0), gr.Variable(start=1.0)
            n = r
            equations = [der(a) == n[0], der(b) == a * n[1]]

        d = find_diffusion(structure_of(Pair()))
        root = np.linalg.cholesky([[1.0, 0.5], [0.5, 1.0]])
        np.testing.assert_allclose(numbers(d, d.drift, [3.0, 1.0], root), [[0.0], [0.25]])
        assert correlation_mask(structure_of(Pair()).model, d.names).tolist() == [[True, False], [True, True]]

    def test_one_noise_of_each_reading(self):
        mixed = {"v": gr.Disturbance(W(interpretation="stratonovich")), "w": gr.Disturbance(W(interpretation="ito"))}
        d = diffusion(lambda a, v, w: [der(a) == a * v + a * w], **mixed)
        np.testing.assert_allclose(numbers(d, d.drift, [2.0]), [[1.0]])

    def test_a_reduction_that_used_the_chain_rule_asks(self):
        with pytest.raises(StructureError, match=r"must state how its equations are read") as error:
            find_diffusion(structure_of(circle()))
        for words in ("a**2 + b**2 == 1", "depends on a, b", 'interpretation="stratonovich"', 'interpretation="ito"'):
            assert words in str(error.value)

    def test_a_formula_in_der_asks(self):
        with pytest.raises(StructureError, match=r"'der\(a\*\*2\) == -a \+ w' was differentiated"):
            diffusion(lambda a, v, w: [der(a**2) == -a + w])
        stated = diffusion(lambda a, v, w: [der(a**2) == -a + w], spectrum=W(interpretation="ito"))
        np.testing.assert_allclose(numbers(stated, stated.drift, [2.0]), [[-0.5]])

    def test_stated_stratonovich_stays_on_the_constraint(self):
        d = find_diffusion(structure_of(circle(interpretation="stratonovich")))
        angle = 0.7
        x = [np.cos(angle), np.sin(angle)]
        # Brownian motion on the circle: dx = P dW − ½ x dt
        np.testing.assert_allclose(numbers(d, d.drift, x).ravel(), -0.5 * np.array(x))
        np.testing.assert_allclose(numbers(d, d.gain, x), np.eye(2) - np.outer(x, x), atol=1e-14)

    def test_ito_that_leaves_the_constraint_is_refused(self):
        with pytest.raises(StructureError, match=r"Read as Itô, the noise v leaves the constraint 'a\*\*2 \+ b\*\*2"):
            find_diffusion(structure_of(circle(interpretation="ito")))

    def test_differentiating_linear_equations_asks_nothing(self):
        d = diffusion(lambda a, b, c, v, w: [der(a) == c + a * v, der(b) == -c + w, a == 2 * b], 3)
        assert d.readings == ("ito", "ito") and not d.is_decoupled

    def test_an_unknown_reading(self):
        with pytest.raises(ModelError, match="'ito' or 'stratonovich', got 'strat'"):
            W(interpretation="strat")
        assert str(W(interpretation="ito")) == "white(interpretation='ito')"
