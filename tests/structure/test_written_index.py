"""The differential index after equations were replaced, against the Kronecker index of the matrix pencil."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
import grisaille.components.electrical as el
from grisaille import der


def kronecker_index(E: np.ndarray, A: np.ndarray) -> int:
    """Of E x' = A x: the first ν at which the ranks of powers of (λE − A)⁻¹E stop falling."""
    M = np.linalg.solve(0.7371 * E - A, E)
    power, before = np.eye(len(E)), len(E)
    for index in range(len(E) + 1):
        power = power @ M
        rank = np.linalg.matrix_rank(power, tol=1e-7)
        if rank == before:
            return index
        before = rank
    return len(E)


def linear_model(E: np.ndarray, A: np.ndarray) -> gr.Model:
    class Linear(gr.Model):
        x = gr.Variable(0.0, size=len(E))

        def equations(self):
            yield E @ der(self.x) == A @ self.x + np.arange(1.0, len(E) + 1) * gr.sin(2 * gr.time)

    return Linear()


def pencil(lengths: tuple[int, ...], states: int) -> tuple[np.ndarray, np.ndarray]:
    """Nilpotent chains of these lengths beside a part with this many states, not mixed."""
    n = sum(lengths) + states
    N, place = np.zeros((n, n)), 0
    for length in lengths:
        N[place : place + length, place : place + length] = np.diag(np.ones(length - 1), 1)
        place += length
    A = np.eye(n)
    N[place:, place:] = np.eye(states)
    A[place:, place:] = -np.diag(np.arange(1.0, states + 1))
    return N, A


@pytest.mark.parametrize(
    ("lengths", "states"),
    [((1,), 0), ((2,), 0), ((3,), 0), ((4,), 0), ((5,), 0), ((2,), 2), ((3,), 1), ((2, 3), 0), ((1, 3), 1), ((4,), 2)],
)
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_index_of_mixed_chains(lengths: tuple[int, ...], states: int, seed: int | None) -> None:
    N, J = pencil(lengths, states)
    n = len(N)
    random = np.random.default_rng(seed)
    P, Q = (np.eye(n),) * 2 if seed is None else (random.integers(-2, 3, (n, n)) + 4.0 * np.eye(n) for _ in range(2))
    E, A = P @ N @ Q, P @ J @ Q
    assert kronecker_index(E, A) == max(lengths)
    assert gr.analyze(linear_model(E, A)).index == max(lengths)


def test_a_replacement_that_only_lowers_does_not_count() -> None:
    """Two equations with the same derivative: their difference is algebraic, as in an index-1 model."""
    E, A = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[-1.0, 0.0], [0.0, -3.0]])
    analysis = gr.analyze(linear_model(E, A))
    assert analysis.structure.repairs == 1
    assert analysis.index == kronecker_index(E, A) == 1


def test_a_replacement_that_hides_a_constraint() -> None:
    """The difference x₁ = x₂ of two equations is the only constraint; their sum contains x₁' + x₂'."""
    E = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, -1.0, 0.0]])
    A = np.array([[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    assert gr.analyze(linear_model(E, A)).index == kronecker_index(E, A) == 2


def test_a_capacitor_between_free_nodes() -> None:
    class Floating(gr.Model):
        """Two nodes, a capacitor between them, a resistor from each to ground: one state, index 1."""

        a, b, u = gr.Variable(), gr.Variable(), gr.Input()
        equations = [2.0 * (der(a) - der(b)) == u - a, -2.0 * (der(a) - der(b)) == -3 * b]

    assert gr.analyze(Floating()).index == 1


def test_a_loop_of_capacitors_from_the_library() -> None:
    """Three capacitors in a loop with a source of a current into one node: the loop's charge is free, index 2."""

    class Loop(gr.Model):
        c1, c2, c3 = el.Capacitor(C=1.0), el.Capacitor(C=2.0), el.Capacitor(C=3.0)
        r, g = el.Resistor(R=1.0), el.Ground()
        equations = [
            gr.connect(c1.p, c2.p, r.p), gr.connect(c2.n, c3.p), gr.connect(c1.n, c3.n, r.n, g.p),
        ]  # fmt: skip

    assert gr.analyze(Loop()).index == 2


def test_nonlinear_combinations() -> None:
    """The rows are multiplied by functions of the unknowns: z₃ = −u, z₂ = −u', z₁ = −u'' has index 3."""

    class Mixed(gr.Model):
        z = gr.Variable(0.1, size=3)

        def equations(self):
            z = self.z
            chain = [der(z[1]) - z[0], der(z[2]) - z[1], z[2] + gr.sin(gr.time)]
            yield chain[0] + (1 + z[2] ** 2) * chain[1] == 0
            yield chain[0] + (1 + z[2] ** 2) * chain[1] + (2 + z[2]) * chain[2] == 0
            yield chain[1] - chain[2] == 0

    assert gr.analyze(Mixed()).index == 3


def test_relations_of_equal_variables_are_not_taken_apart() -> None:
    def semi_linear(x: object, above: object, below: object) -> object:
        return gr.where(x >= 0, above * x, below * x)

    class Port(gr.Model):
        m, H = gr.Variable(1.0), gr.Variable(3.0)
        flow, back, h, port, out, inside, source = (gr.Variable() for _ in range(7))
        equations = [
            gr.der(m) == flow,
            gr.der(H) == inside,
            flow == gr.cos(m),
            flow + back == 0,
            H == m * h,
            inside == semi_linear(flow, port, h),
            out == semi_linear(back, port, source),
            inside + out == 0,
            source == 2.0,
        ]

    class Driven(gr.Model):
        H = gr.Variable(3.0)
        h, port, out, inside, source = (gr.Variable() for _ in range(5))
        flow = gr.cos(gr.time)
        equations = [
            gr.der(H) == inside,
            H == h,
            inside == semi_linear(flow, port, h),
            out == semi_linear(-flow, port, source),
            inside + out == 0,
            source == 2.0,
        ]

    assert gr.analyze(Port()).index == 1
    assert gr.analyze(Driven()).index == 1
