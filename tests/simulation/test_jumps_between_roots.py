"""Where equations jump, algebraic unknowns go on at the root that continues theirs, whatever jumps and how far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der


def motor(kind: str) -> gr.Model:
    """Of the two currents 1 and 11 at which a source of 12 V gives 11 W, the first.

    The speed x' is this current and a load, which jumps by −8 after half a second. The equation is solved for x', which
    at the jump lies nearer to the other root.
    """

    class Motor(gr.Model):
        s, x = gr.Variable(0.0), gr.Variable(0.0)
        n = gr.Discrete(0)
        u = gr.Input(default=0.0)

        def equations(self) -> Any:
            load = {
                "state": gr.where(self.s > 0.5, -8.0, 0.0),
                "time": gr.where(gr.time > 0.5, -8.0, 0.0),
                "discrete": -8.0 * self.n,
                "input": self.u,
            }[kind]
            current = der(self.x) - load
            yield der(self.s) == 1.0
            yield current * (12 - current) == 11.0
            yield gr.when(self.s > 0.5, self.n == 1)

    return Motor()


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("state", "explicit"), ("state", "implicit"), ("state", "frozen"), ("time", "explicit"), ("time", "implicit"),
        ("discrete", "explicit"), ("input", "implicit"),
    ],
)  # fmt: skip
def test_the_current_does_not_jump(kind: str, method: str) -> None:
    given = {"inputs": {"u": ([0.0, 0.5, 1.0], [0.0, -8.0, -8.0])}, "hold": {"u": "zoh"}} if kind == "input" else {}
    run = gr.simulate(motor(kind), [0.0, 0.5, 1.0], method=method, **given)
    np.testing.assert_allclose(run["x"], [0.0, 0.5, -3.0], rtol=0, atol=1e-6)
    assert run.attrs["solution_jumps"] == 0


def test_derivatives_follow_too() -> None:
    class Relay(gr.Model):
        level = gr.Parameter(0.5)
        s, x = gr.Variable(0.0), gr.Variable(0.0)

        def equations(self) -> Any:
            current = der(self.x) - gr.where(self.s > self.level, -8.0, 0.0)
            yield der(self.s) == 1.0
            yield current * (12 - current) == 11.0

    run = gr.simulate(Relay(), [0.0, 1.0], sensitivities=["level"])
    np.testing.assert_allclose(run["x"][-1], -3.0, atol=1e-6)
    np.testing.assert_allclose(run["d(x)"].sel(parameter="level")[-1], 8.0, atol=1e-6)
