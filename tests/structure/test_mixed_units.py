"""Equations written as sums of others, in any units, are the same model: x' = l − x, q' = x + l, q = sin t, index 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import grisaille as gr
from grisaille import der
from grisaille.structure.singular import SampledJacobian, singularity

times = np.linspace(0.0, 3.0, 4)


def truth() -> np.ndarray:
    """x' = cos t − 2 x from x(0) = 0.5."""
    return 0.4 * np.cos(times) + 0.2 * np.sin(times) + 0.1 * np.exp(-2 * times)


@pytest.mark.parametrize(
    "weights", [(1.0, 1.0, 1.0), (1.2e7, 3.6e7, 3.9e-7), (1e-9, 3e9, 1.0), (1.0, 7e-12, 1e5), (3e8, 2e-9, 4e-9)]
)
def test_weights_of_mixed_equations_do_not_matter(weights: tuple[float, ...]) -> None:
    class Mixed(gr.Model):
        x, q, force = gr.Variable(start=0.5), gr.Variable(start=0.0), gr.Variable()

        def equations(self) -> Any:
            x, q, force = self.x, self.q, self.force
            rows = [-x + force - der(x), x + force - der(q), q - gr.sin(gr.time)]
            yield weights[0] * (2 * rows[0] + 2 * rows[1] + 3 * rows[2]) == 0
            yield weights[1] * (2 * rows[0] + rows[1] + 3 * rows[2]) == 0
            yield weights[2] * (rows[0] + rows[2]) == 0

    got = gr.simulate(Mixed(), times)
    assert gr.analyze(Mixed()).index == 2
    assert np.abs(got["q"].values - np.sin(times)).max() < 1e-12
    assert np.abs(got["x"].values - truth()).max() < 1e-5


LAYERS: dict[str, Any] = {
    "saturation": lambda o, a: a + 2 * o.tanh(10 * a),
    "exponential": lambda o, a: a + 0.1 * (o.exp(5 * a) - 1),
    "steep exponential": lambda o, a: a + 1e-3 * (o.exp(40 * a) - 1),
    "cubic": lambda o, a: a + 10 * a**3,
}
"""g(a), with the functions of a module."""


@pytest.mark.parametrize("unit", [1.0, 0.03, 1e-8])
@pytest.mark.parametrize("layer", LAYERS)
def test_an_implicit_equation_added_to_a_prescribed_path(layer: str, unit: float) -> None:
    """q₁' = q₂, q₂' = q₃, q₃' = force with q₁ + 0.3 q₁³ prescribed, index 4, and x' = force / 5 − x + a(x) beside it.

    The slope of the equation of a is no part of the hidden constraints, though it stands in every equation they follow
    from.
    """
    g = LAYERS[layer]

    class Mixed(gr.Model):
        q, force, x = gr.Variable(size=3, start=[0.0, 1.0, 0.0]), gr.Variable(), gr.Variable(start=0.4)
        a = gr.Variable(nominal=unit if unit < 1e-3 else None)

        def equations(self) -> Any:
            q, a, s = self.q, self.a / unit, gr.sin(gr.time)
            C = q[0] + 0.3 * q[0] ** 3 - s - 0.3 * s**3
            L = g(gr, a) - self.x - 0.1 * q[1]
            moved = self.force / 5 - self.x + a - der(self.x)
            yield C + 2 * L == 0
            yield 3 * C + 5 * L == 0
            yield moved + q[1] - der(q[0]) == 0
            yield 2 * moved + q[1] - der(q[0]) + q[2] - der(q[1]) == 0
            yield self.force - der(q[2]) + moved == 0
            yield moved - (q[2] - der(q[1])) == 0

    def root(right: float) -> float:
        return float(brentq(lambda a: g(np, a) - right, -9, 9, xtol=1e-14))

    exact = solve_ivp(
        lambda t, x: [-np.cos(t) / 5 - x[0] + root(x[0] + 0.1 * np.cos(t))],
        (0, 3), [0.4], rtol=1e-10, atol=1e-12, t_eval=times,
    )  # fmt: skip
    got = gr.simulate(Mixed(), times, rtol=1e-8)
    assert gr.analyze(Mixed()).index == 4 and gr.analyze(Mixed()).degrees_of_freedom == 1
    assert np.abs(got["q[2]"].values + np.sin(times)).max() < 1e-7
    assert np.abs(got["x"].values - exact.y[0]).max() < 1e-6


def test_a_wrong_combination_is_noticed_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should derivatives be taken to cancel that do not, the equation as written says so."""
    found = SampledJacobian.null_vector

    def wrong(self: SampledJacobian, *arguments: Any) -> Any:
        return tuple(f * (1.0 + 0.01 * k) for k, f in enumerate(found(self, *arguments)))

    monkeypatch.setattr(SampledJacobian, "null_vector", wrong)
    monkeypatch.setattr(singularity, "_require_cancelling", lambda *_: None)

    class Mixed(gr.Model):
        x, q, force = gr.Variable(start=0.5), gr.Variable(start=0.0), gr.Variable()
        equations = [
            -x + force - der(x) + 2 * (x + force - der(q)) == 1e-3 * gr.cos(gr.time),
            -x + force - der(x) + q == gr.sin(gr.time),
            2 * (x + force - der(q)) + q == gr.sin(gr.time) + 1e-3 * gr.cos(gr.time),
        ]

    with pytest.raises(gr.StructureError, match="does not hold at the start as it is written"):
        gr.simulate(Mixed(), times)


@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0), (1 / 3, 0.7, 1 / 7), (7.9e-6, 4e-5, 3e8), (0.1, 3e9, 7e-9)])
def test_what_is_left_of_terms_that_cancel_is_not_divided_by(sizes: tuple[float, ...]) -> None:
    """b = a + c is defined by the first equation, and b' − a' is c' alone: x = sin t, c' = cos t, a' = −a + c."""
    k, m, n = (1 / v for v in sizes)

    class Sums(gr.Model):
        a = gr.Variable(start=0.3 * sizes[0], nominal=sizes[0])
        b = gr.Variable(nominal=sizes[1])
        c = gr.Variable(start=0.0, nominal=sizes[2])
        equations = [
            53 * m * b - 53 * (k * a + n * c) == 0,
            1.7 * (53 * m * der(b) - 53 * k * der(a)) == 1.7 * 53 * gr.cos(gr.time),
            53 * (m * der(b) - n * der(c)) == 53 * (-k * a + n * c),
        ]

    got = gr.simulate(Sums(), times, rtol=1e-9)
    exact = 0.5 * (np.sin(times) - np.cos(times)) + 0.8 * np.exp(-times)
    assert np.abs(got["a"].values * k - exact).max() < 1e-7
    assert np.abs(got["c"].values * n - np.sin(times)).max() < 1e-7
    assert got.attrs["steps"] < 200


def test_unknowns_that_parameters_bring_to_size_one() -> None:
    class Scaled(gr.Model):
        xn, yn, f = gr.Parameter(1e5), gr.Parameter(1e-3), gr.Parameter(1e4)
        x, y = gr.Variable(start=-5e4, nominal=1e5), gr.Variable(start=5e-4, nominal=1e-3)
        equations = [x / xn * gr.exp(-x / xn * y / yn) == -1, f * (y / yn * gr.exp(-x / xn + y / yn) - 1) == 0]

    result = gr.simulate(Scaled(), [0.0, 1.0])
    u, v = (float(result[name].values[0]) / size for name, size in (("x", 1e5), ("y", 1e-3)))
    assert u * np.exp(-u * v) == pytest.approx(-1.0, rel=1e-6) and v * np.exp(v - u) == pytest.approx(1.0, rel=1e-6)
