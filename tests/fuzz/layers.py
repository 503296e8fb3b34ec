"""Algebraic unknowns that are defined implicitly, with their solution known.

A layer has ``count`` unknowns a. ``equations(ops, a, g)`` states them (pairs of sides), ``solve(ops, g)`` gives them,
by closed forms or by bisection of an increasing function. g is a list of known right-hand sides of size about one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

Sides = list[tuple[Any, Any]]


@dataclass(frozen=True)
class Layer:
    kind: str
    count: int
    equations: Callable[[Any, list[Any], list[Any]], Sides]
    solve: Callable[[Any, list[float]], list[float]]
    lift: float = 0.0
    """Added to g, where g has to stay on one side of zero."""
    guess: tuple[float, ...] | None = None
    """Roughly the wanted one of several roots."""
    held: bool = False
    """g is this layer's own held input and nothing else."""
    levels: tuple[float, ...] = ()
    """What the held input takes."""
    solvable: bool = True
    has_relation: bool = False


def increasing_root(function: Callable[[float], float], target: float) -> float:
    """The root of function(a) = target, function increasing without bound, to rounding."""
    low, high = -1.0, 1.0
    while function(low) > target:
        low *= 2.0
    while function(high) < target:
        high *= 2.0
    return float(brentq(lambda a: function(a) - target, low, high, xtol=1e-15, rtol=1e-15))


def _matrix(rng: np.random.Generator, n: int) -> np.ndarray:
    """Dense, well away from singular, two decimals."""
    while True:
        m = np.round(rng.uniform(-2, 2, (n, n)), 2)
        if (m != 0).all() and np.linalg.cond(m) < 20:
            return m


def linear(rng: np.random.Generator) -> Layer:
    n = int(rng.integers(2, 6))
    m = _matrix(rng, n)
    return Layer(
        "linear",
        n,
        lambda ops, a, g: [(sum(m[i, j] * a[j] for j in range(n)), g[i]) for i in range(n)],
        lambda ops, g: list(np.linalg.solve(m, g)),
    )


def cubic(rng: np.random.Generator) -> Layer:
    c = round(float(rng.choice([0.1, 1.0, 10.0])), 2)
    return Layer(
        "cubic",
        1,
        lambda ops, a, g: [(a[0] + c * a[0] ** 3, g[0])],
        lambda ops, g: [increasing_root(lambda v: v + c * v**3, g[0])],
    )


def exponential(rng: np.random.Generator) -> Layer:
    k = float(rng.choice([1.0, 5.0, 40.0]))
    c = float(rng.choice([1e-9, 1e-3, 0.1])) if k == 40.0 else 0.1
    return Layer(
        "exponential",
        1,
        lambda ops, a, g: [(a[0] + c * (ops.exp(k * a[0]) - 1), g[0])],
        lambda ops, g: [increasing_root(lambda v: v + c * math.expm1(min(k * v, 700.0)), g[0])],
    )


def steep(rng: np.random.Generator) -> Layer:
    k = float(rng.choice([1.0, 10.0]))
    return Layer(
        "tanh",
        1,
        lambda ops, a, g: [(a[0] + 2 * ops.tanh(k * a[0]), g[0])],
        lambda ops, g: [increasing_root(lambda v: v + 2 * math.tanh(k * v), g[0])],
    )


def coupled(rng: np.random.Generator) -> Layer:
    n = int(rng.integers(2, 4))
    m = _matrix(rng, n)
    c = 0.5

    def equations(ops: Any, a: list[Any], g: list[Any]) -> Sides:
        return [(sum(m[i, j] * (a[j] + c * a[j] ** 3) for j in range(n)), g[i]) for i in range(n)]

    def solve(ops: Any, g: list[float]) -> list[float]:
        return [increasing_root(lambda v: v + c * v**3, b) for b in np.linalg.solve(m, g)]

    return Layer("coupled cubic", n, equations, solve)


def bend(rng: np.random.Generator) -> Layer:
    """A kink in the unknown; the solution bends and does not jump."""
    name = f"bend{rng.integers(10**6)}"
    which = int(rng.integers(4))
    c = round(float(rng.uniform(-0.5, 0.5)), 2)
    equation = [
        lambda ops, a, g: [(1.5 * a[0] + ops.absolute(name, a[0]), g[0])],
        lambda ops, a, g: [(ops.switch(name, a[0] - c, 2 * a[0] - c, a[0]), g[0])],
        lambda ops, a, g: [(3 * a[0] + ops.minimum(name, a[0], c), g[0])],
        lambda ops, a, g: [(a[0] + a[0] ** 3 + ops.maximum(name, a[0], c), g[0])],
    ][which]

    def solve(ops: Any, g: list[float]) -> list[float]:
        if which == 0:
            return [ops.switch(name, g[0], g[0] / 2.5, g[0] / 0.5)]
        if which == 1:
            return [ops.switch(name, g[0] - c, (g[0] + c) / 2, g[0])]
        if which == 2:
            return [ops.switch(name, g[0] - 4 * c, (g[0] - c) / 3, g[0] / 4)]
        edge = 2 * c + c**3
        low = increasing_root(lambda v: v + v**3 + c, g[0])
        high = increasing_root(lambda v: 2 * v + v**3, g[0])
        return [ops.switch(name, g[0] - edge, high, low)]

    return Layer(("abs", "where, bent", "minimum", "cubic and maximum")[which], 1, equation, solve, has_relation=True)


def coupled_bend(rng: np.random.Generator) -> Layer:
    """Dense block of which one row has a kink: a₁ + |a₁| / 2 is an unknown of a dense linear system."""
    name = f"coupled{rng.integers(10**6)}"
    n = int(rng.integers(2, 4))
    m = _matrix(rng, n)

    def equations(ops: Any, a: list[Any], g: list[Any]) -> Sides:
        b = [a[0] + 0.5 * ops.absolute(name, a[0]), *a[1:]]
        return [(sum(m[i, j] * b[j] for j in range(n)), g[i]) for i in range(n)]

    def solve(ops: Any, g: list[float]) -> list[float]:
        b = np.linalg.solve(m, g)
        return [ops.switch(name, b[0], b[0] / 1.5, b[0] / 0.5), *b[1:]]

    return Layer("coupled abs", n, equations, solve, has_relation=True)


def jump_aside(rng: np.random.Generator) -> Layer:
    """Jumps in the unknown, but g stays on one side of the gap."""
    name = f"aside{rng.integers(10**6)}"
    side = float(rng.choice([-1.0, 1.0]))
    if rng.integers(2):
        return Layer(
            "sign, one side",
            1,
            lambda ops, a, g: [(a[0] + 0.5 * ops.sign(name, a[0]), g[0])],
            lambda ops, g: [g[0] - 0.5 * side],
            lift=side * 4.0,
            has_relation=True,
        )
    return Layer(
        "where with a jump, one side",
        1,
        lambda ops, a, g: [(2 * a[0] + ops.switch(name, a[0], 0.7, 0.0), g[0])],
        lambda ops, g: [(g[0] - (0.7 if side > 0 else 0.0)) / 2],
        lift=side * 4.0,
        has_relation=True,
    )


def jump_over(rng: np.random.Generator) -> Layer:
    """A held input that carries the unknown over the gap of its own equation."""
    name = f"over{rng.integers(10**6)}"
    which = int(rng.integers(3))
    values = np.round(rng.uniform(-2, 2, 6), 2)
    values = np.where(np.abs(values - np.round(values)) < 0.1, values + 0.25, values)
    forward: Callable[[float], float] = (
        lambda v: 2 * v + math.floor(v),
        lambda v: v + 0.5 * math.copysign(1, v),
        lambda v: v + v**3 + (1.0 if v > 0 else -0.5),
    )[which]
    equation = (
        lambda ops, a, g: [(2 * a[0] + ops.floor(name, a[0]), g[0])],
        lambda ops, a, g: [(a[0] + 0.5 * ops.sign(name, a[0]), g[0])],
        lambda ops, a, g: [(a[0] + a[0] ** 3 + ops.switch(name, a[0], 1.0, -0.5), g[0])],
    )[which]
    table = {float(forward(v)): float(v) for v in values}
    return Layer(
        ("floor over", "sign over", "cubic and where over")[which],
        1,
        equation,
        lambda ops, g: [table[g[0]]],
        held=True,
        levels=tuple(table),
        has_relation=True,
    )


def two_roots(rng: np.random.Generator) -> Layer:
    side = float(rng.choice([-1.0, 1.0]))
    if rng.integers(2):
        return Layer(
            "square",
            1,
            lambda ops, a, g: [(a[0] ** 2, g[0])],
            lambda ops, g: [side * math.sqrt(g[0])],
            lift=4.0,
            guess=(2.2 * side,),
        )
    return Layer(
        "battery",
        1,
        lambda ops, a, g: [((12 - a[0]) * a[0], g[0] + 6)],
        lambda ops, g: [6 - side * math.sqrt(36 - g[0] - 6)],
        lift=4.0,
        guess=(1.0 if side > 0 else 11.0,),
    )


def gap(rng: np.random.Generator) -> Layer:
    """g passes continuously through values that no a attains: there is no solution from then on."""
    name = f"gap{rng.integers(10**6)}"
    return Layer(
        "gap",
        1,
        lambda ops, a, g: [(a[0] + 0.8 * ops.sign(name, a[0]), g[0])],
        lambda ops, g: [
            ops.switch(name + "+", g[0] - 0.8, g[0] - 0.8, ops.switch(name + "-", g[0] + 0.8, 0.0, g[0] + 0.8))
        ],
        solvable=False,
        has_relation=True,
    )


SMOOTH = (linear, cubic, exponential, steep, coupled, two_roots)
ALL = (*SMOOTH, bend, bend, coupled_bend, jump_aside, jump_over)
