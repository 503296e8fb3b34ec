"""What jumps is not differentiated: by ``der`` and by index reduction, with states and with inputs."""

from __future__ import annotations

import pytest

import grisaille as gr
from grisaille import der


class DerOfJump(gr.Model):
    x, y = gr.Variable(1.0), gr.Variable()
    equations = [der(x) == 0.3 - x, y == der(gr.where(x > 0.5, 1.0, 2.0))]


class Reduced(gr.Model):
    x, y, q = gr.Variable(1.0), gr.Variable(), gr.Variable()
    equations = [der(x) == 0.3 - x, q == gr.sign(x - 0.5) + x, y == der(q)]


class OfInput(gr.Model):
    x, y, q, u = gr.Variable(0.0), gr.Variable(), gr.Variable(), gr.Input()
    equations = [der(x) == y, q == gr.where(u > 0.5, 1.0, 2.0), y == der(q)]


class JumpingConstraint(gr.Model):
    x, v, f, u = gr.Variable(1.0), gr.Variable(), gr.Variable(), gr.Input()
    equations = [der(x) == v, der(v) == f, x == gr.floor(u)]


@pytest.mark.parametrize("model", [DerOfJump, Reduced, OfInput, JumpingConstraint])
def test_jumps_are_refused_with_a_remedy(model: type[gr.Model]) -> None:
    with pytest.raises(gr.StructureError, match=r"makes it jump: the derivative would be an impulse\. Replace"):
        gr.analyze(model())


class Bend(gr.Model):
    x, y = gr.Variable(1.0), gr.Variable()
    equations = [der(x) == 0.3 - x, y == der(abs(x - 0.5))]


class BendByWhere(gr.Model):
    x, y = gr.Variable(1.0), gr.Variable()
    equations = [der(x) == 0.3 - x, y == der(gr.where(x > 0.5, 2 * x - 0.5, x))]


class JumpInAForce(gr.Model):
    x, y = gr.Variable(0.6), gr.Variable(-0.8)
    vx, vy, tension = gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    equations = [
        der(x) == vx,
        der(y) == vy,
        der(vx) == tension * x - gr.sign(vx),
        der(vy) == tension * y - 1,
        x**2 + y**2 == 1,
    ]


@pytest.mark.parametrize("model", [Bend, BendByWhere, JumpInAForce])
def test_bends_and_jumps_that_are_not_differentiated_stay(model: type[gr.Model]) -> None:
    assert gr.analyze(model()).index in (1, 3)
