"""Equations written as sums of others, in any units, are the same model: x' = l − x, q' = x + l, q = sin t, index 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

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

    got = gr.simulate(Mixed(), times, compiled=False)
    assert gr.analyze(Mixed()).index == 2
    assert np.abs(got["q"].values - np.sin(times)).max() < 1e-12
    assert np.abs(got["x"].values - truth()).max() < 1e-5
