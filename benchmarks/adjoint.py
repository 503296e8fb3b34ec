"""Gradients by 200 unknowns: the adjoint of frozen steps beside one simulation and beside forward sensitivities.

    python benchmarks/adjoint.py

A ladder of 100 cells, resistance and capacity of each unknown, driven at one end by a held input and measured at every
tenth cell. The criterion is half a sum of squares. CPU time, best of rounds; the two gradients are compared first.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import grisaille as gr
from grisaille import der

CELLS = 100
TIMES = np.linspace(0.0, 20.0, 201)


class Ladder(gr.Model):
    """Voltages v along a chain of resistors, each node with a capacity and a leak that saturates."""

    R = gr.Parameter(1.0, size=CELLS)
    C = gr.Parameter(0.1, size=CELLS)
    u = gr.Input(default=0.0)
    v = gr.Variable(0.0, size=CELLS)
    equations = [C[0] * der(v[0]) == (u - v[0]) / R[0] - (v[0] - v[1]) / R[1] - 0.02 * gr.tanh(v[0])]
    for k in range(1, CELLS - 1):
        equations += [
            C[k] * der(v[k]) == (v[k - 1] - v[k]) / R[k] - (v[k] - v[k + 1]) / R[k + 1] - 0.02 * gr.tanh(v[k])
        ]
    equations += [C[-1] * der(v[-1]) == (v[-2] - v[-1]) / R[-1] - 0.02 * gr.tanh(v[-1])]


def best(run: Callable[[], object], rounds: int = 5) -> float:
    """CPU seconds."""
    found = []
    for _ in range(rounds):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


def main() -> None:
    """A line for each method."""
    model, inputs = Ladder(), {"u": np.sign(np.sin(TIMES))}
    names = [*(f"R[{k}]" for k in range(CELLS)), *(f"C[{k}]" for k in range(CELLS))]
    seen = [f"v[{k}]" for k in range(9, CELLS, 10)]
    random = np.random.default_rng(0)
    for method in ("frozen-explicit", "frozen-implicit"):
        plain = gr.Simulator(model, TIMES, inputs, method=method, step=0.02)
        data = {n: v + 0.01 * random.standard_normal(len(v)) for n, v in plain.values().items() if n in seen}
        errors = lambda v, data=data: {n: v[n] - data[n] for n in data}  # noqa: E731
        adjoint = plain.gradient(errors, by=names)
        forward = gr.Simulator(model, TIMES, inputs, method=method, step=0.02, sensitivities=names)
        found = forward.values()
        exact = sum((found[n] - data[n]) @ found[f"d({n})"] for n in data)
        apart = np.abs(np.array(list(adjoint.values())) - exact).max() / np.abs(exact).max()
        one = best(plain.values)
        back = best(lambda plain=plain, errors=errors: plain.gradient(errors, by=names))
        ahead = best(forward.values, 1)
        print(
            f"{method}: simulation {1e3 * one:.0f} ms; 200 derivatives by the adjoint {back / one:.1f} times that, "
            f"forwards {ahead / one:.0f} times; apart {apart:.0e}"
        )


if __name__ == "__main__":
    main()
