"""Equations of the first instant: they join the start problem, with derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import GrisailleError, ModelError

TIMES = np.array([0.0, 1.0, 2.0])


class Tank(gr.Model):
    """Begins at rest for its inflow; another state is tied to it."""

    a = gr.Parameter(2.0)
    x = gr.Variable()
    z = gr.Variable(start=1.0)
    v = gr.Variable()
    equations = [gr.der(x) == -a * x + z + 1, z**3 + z == x + 3, gr.der(v) == x - v]
    initial = [gr.der(x) == 0, v + x == 5]


def test_they_hold_at_the_start() -> None:
    start = gr.analyze(Tank()).start
    assert -2.0 * start["x"] + start["z"] + 1 == pytest.approx(0.0, abs=1e-9)
    assert start["v"] + start["x"] == pytest.approx(5.0)


def test_derivatives_go_through_them() -> None:
    slopes = gr.simulate(Tank(), TIMES, sensitivities=["a"], rtol=1e-9)
    higher, lower = (gr.simulate(Tank(a=2 + h), TIMES, rtol=1e-10) for h in (1e-5, -1e-5))
    for name in ("x", "v"):
        differences = (higher[name].values - lower[name].values) / 2e-5
        np.testing.assert_allclose(slopes[f"d({name})"].values[:, 0], differences, rtol=1e-5)


def test_of_parents_and_of_parts_they_add_up() -> None:
    class Wide(Tank):
        w = gr.Variable()

        def equations(self):  # type: ignore[no-untyped-def]
            yield from super().equations()
            yield gr.der(self.w) == -self.w

        initial = [w == 2 * Tank.x]

    class Two(gr.Model):
        left = Wide()
        right = Tank(a=3.0)

    start = gr.analyze(Two()).start
    assert start["left.w"] == pytest.approx(2 * start["left.x"])
    assert start["right.v"] + start["right.x"] == pytest.approx(5.0)
    assert start["left.x"] != pytest.approx(start["right.x"])


def test_they_are_part_of_the_model() -> None:
    class Plain(gr.Model):
        a = gr.Parameter(2.0)
        x = gr.Variable()
        z = gr.Variable(start=1.0)
        v = gr.Variable()
        equations = [gr.der(x) == -a * x + z + 1, z**3 + z == x + 3, gr.der(v) == x - v]

    assert Plain().fingerprint != Tank().fingerprint
    assert "v + x == 5  (at the start)" in str(Tank())
    assert "at the start" in Tank()._repr_html_()
    assert "x" in gr.simulate(Tank(), TIMES)
    assert not [n for n in gr.simulate(Tank(), TIMES) if "start" in str(n)]


def test_a_high_index_model_takes_them() -> None:
    class Pendulum(gr.Model):
        x, y = gr.Variable(start=0.6), gr.Variable(start=-0.8)
        u, v = gr.Variable(), gr.Variable()
        pull = gr.Variable()
        equations = [
            gr.der(x) == u, gr.der(y) == v, gr.der(u) == -pull * x, gr.der(v) == -pull * y - 9.81, x**2 + y**2 == 1,
        ]  # fmt: skip
        initial = [u * u + v * v == 4, x == 2 * y + 2.2]

    start = gr.analyze(Pendulum()).start
    assert start["u"] ** 2 + start["v"] ** 2 == pytest.approx(4.0)
    assert start["x"] - 2 * start["y"] == pytest.approx(2.2)
    assert start["x"] ** 2 + start["y"] ** 2 == pytest.approx(1.0)


def test_a_steady_state_takes_their_place() -> None:
    result = gr.simulate(Tank(), TIMES, start="steady")
    np.testing.assert_allclose(result["v"], result["x"], atol=1e-8)


def test_a_contradiction_is_named() -> None:
    class Wrong(Tank):
        initial = [Tank.v == 1, Tank.x == 7]

    with pytest.raises(GrisailleError, match="at the start"):
        gr.simulate(Wrong(), TIMES)


def test_mistakes_in_the_list() -> None:
    with pytest.raises(ModelError, match=r"initial is 3 \(int\)"):

        class Number(gr.Model):
            x = gr.Variable()
            equations = [gr.der(x) == 1]
            initial = 3

    with pytest.raises(ModelError, match="formula, not an equation"):

        class Formula(gr.Model):
            x = gr.Variable()
            equations = [gr.der(x) == 1]
            initial = [x + 1]
