"""The hidden problem as a user's model: other variables, other equations, other units.

Variables X = D S w with a dense S and sizes D; equations are dense combinations P of the hidden ones, each times a
size of its own; time runs τ times as fast. ``true_values`` maps the reference to the same variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import grisaille as gr
from fuzz.algebra import Formulas
from fuzz.hidden import Hidden, breaks_of
from fuzz.truth import Truth


@dataclass
class Disguise:
    model: Any
    inputs: dict[str, Any]
    hold: dict[str, str]
    tau: float
    mix: np.ndarray
    sizes: np.ndarray
    names: list[str]
    starts: list[float | None]
    nominals: list[float] | None

    def true_values(self, truth: Truth) -> np.ndarray:
        """(times, variables)"""
        hidden = np.hstack([truth.y, truth.q, truth.multiplier, truth.a])
        return hidden @ self.mix.T * self.sizes


def _integers(rng: np.random.Generator, n: int) -> np.ndarray:
    """A dense matrix of small integers whose inverse has integers as well (determinant ±1)."""
    if n == 0:
        return np.zeros((0, 0))
    while True:
        kept = rng.random((n, n)) < 3.0 / n
        entries = kept * rng.integers(-2, 3, (n, n)) if n < 4 else kept * rng.integers(-1, 2, (n, n))
        m = (np.tril(entries, -1) + np.eye(n)) @ (np.triu(entries, 1) + np.eye(n))
        if np.linalg.cond(m) < 300:
            return m[rng.permutation(n)]


def _blocks(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    m = np.zeros((len(a) + len(b),) * 2)
    m[: len(a), : len(a)], m[len(a) :, len(a) :] = a, b
    return m


def _mixing(how: str, rng: np.random.Generator, nd: int, na: int) -> np.ndarray:
    if how == "none":
        return np.eye(nd + na)
    if how == "dense":
        return _blocks(_integers(rng, nd), _integers(rng, na))
    return _integers(rng, nd + na)


def _sizes(how: str, rng: np.random.Generator, n: int) -> np.ndarray:
    reach = {"unit": 0.0, "mild": 2.0, "wild": 9.0}[how]
    return np.array([float(f"{v:.1e}") for v in 10.0 ** rng.uniform(-reach, reach, n)])


def disguise(hidden: Hidden, end: float, first: np.ndarray) -> Disguise:
    """``first``: the hidden variables at the start, in the order y, q, λ, a."""
    F = hidden.features
    n, m, na = F.states, F.chain, hidden.na + (1 if F.chain else 0)
    nd, total = n + m, n + m + na
    rng = hidden.stream("disguise")
    S, P = _mixing(F.mixing, rng, nd, na), _mixing(F.rows, rng, nd, na)
    back = np.round(np.linalg.inv(S)) if F.mixing != "none" else S
    assert np.array_equal(back @ S, np.eye(total))
    sizes, weights = _sizes(F.scales, rng, total), _sizes(F.scales, rng, total)
    tau = float(_sizes(F.scales, rng, 1)[0])
    order = rng.permutation(total)
    at, u_values, held_values = breaks_of(hidden, end)
    held_names = [f"k{k}" for k, layer in enumerate(hidden.layers) if layer.held]

    def equations(self: Any) -> Any:
        ops = Formulas()
        X = list(self.X)
        w = [_combine(back[i] / sizes, X) for i in range(total)]
        dw = [_combine(tau * back[i] / sizes, [gr.der(v) for v in X]) for i in range(nd)]
        y, q, a = w[:n], w[n : n + m], w[total - hidden.na :]
        theta = gr.time / tau if tau != 1 else gr.time
        u = self.u if F.signal != "none" else 0.0
        sides: list[tuple[Any, Any]] = []
        multiplier = w[nd] if m else 0.0
        for i, rate in enumerate(hidden.rates(ops, y, q, a, theta, u)):
            sides.append((dw[i], rate + float(hidden.b[i]) * multiplier if m and hidden.b[i] else rate))
        for k in range(m):
            sides.append((dw[n + k], q[k + 1] if k + 1 < m else hidden.force_on_chain(ops, y, q, u) + multiplier))
        if m:
            path, c = hidden.path(ops, theta, 0), hidden.cube
            position = q[0] + hidden.k * ops.sin(y[0]) if hidden.k else q[0]
            sides.append((0.0, position + c * position**3 - path - c * path**3 if c else position - path))
        first_a = 0
        for k, layer in enumerate(hidden.layers):
            held = getattr(self, f"k{k}") if layer.held else 0.0
            g = hidden.right_sides(ops, k, y, q, theta, u, held)
            for left, right in layer.equations(ops, a[first_a : first_a + layer.count], g):
                sides.append((0.0, right - left))
            first_a += layer.count
        for row in order:
            left = _combine(P[row], [s[0] for s in sides])
            right = _combine(P[row], [s[1] for s in sides])
            yield weights[row] * left == weights[row] * right if weights[row] != 1 else left == right

    starts = _declared(hidden, nd, S, sizes, first)
    nominals = [float(v) for v in sizes] if F.scales == "wild" and F.nominal else None
    members: dict[str, Any] = {
        "__doc__": "A disguised problem.",
        "X": gr.Variable(
            size=total,
            start=starts,
            nominal=nominals,
        ),
        "equations": equations,
    }
    if F.signal != "none":
        members["u"] = gr.Input()
    for name in held_names:
        members[name] = gr.Input()
    model = type("Fuzz", (gr.Model,), members)()
    inputs: dict[str, Any] = {}
    hold: dict[str, str] = {}
    if F.signal != "none":
        inputs["u"], hold["u"] = (at * tau, u_values), F.signal
    for k, layer in enumerate(hidden.layers):
        if layer.held:
            inputs[f"k{k}"], hold[f"k{k}"] = (at * tau, held_values[k]), "zoh"
    return Disguise(model, inputs, hold, tau, S, sizes, [f"X[{i}]" for i in range(total)], starts, nominals)


def _combine(coefficients: Any, formulas: list[Any]) -> Any:
    value: Any = 0.0
    for c, formula in zip(coefficients, formulas, strict=True):
        if c == 0 or (isinstance(formula, float) and formula == 0):
            continue
        term = formula if c == 1 else float(c) * formula
        value = term if isinstance(value, float) and value == 0.0 else value + term
    return value


def _declared(hidden: Hidden, nd: int, S: np.ndarray, sizes: np.ndarray, first: np.ndarray) -> list[float | None]:
    """Starts of differential variables, as they are; of algebraic ones a rough guess where there are two roots."""
    rough = first.copy()
    if hidden.features.mixing != "full":
        rough[nd:] *= 1 + 0.1 * hidden.stream("guess").uniform(-1, 1, len(first) - nd)
    starts: list[float | None] = [float(v) for v in S @ rough * sizes]
    if hidden.features.mixing != "full" and not any(layer.guess for layer in hidden.layers):
        starts[nd:] = [None] * (len(starts) - nd)
    return starts
