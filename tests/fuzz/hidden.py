"""A random small differential-algebraic problem, made from an ordinary differential equation: its truth is known.

In scaled time θ, with states y, a prescribed chain q, its multiplier λ, algebraic unknowns a and known signals u:

    y' = f(y, q, a, θ, u) + b λ
    q₁' = q₂, …, qₘ' = h(y, q, θ, u) + λ,   q₁ (+ k sin y₁) = s(θ)        index m + 1
    layers of a                                                           (layers.py)

All coefficients have two decimals, so that a printed problem is the problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz import layers
from fuzz.layers import Layer

Term = Callable[..., Any]


def rounded(value: Any) -> Any:
    return np.round(value, 2) + 0.0


@dataclass
class Features:
    """What a problem contains; drawn by its seed, and changed by hand when a failure is made smaller."""

    states: int
    chain: int
    relations: int
    relation_in_force: bool
    layers: int
    kinds: str
    """``smooth``, ``all`` or ``gap``."""
    signal: str
    """``none``, ``zoh`` or ``foh``."""
    coupled_constraint: bool
    mixing: str
    """Of variables: ``none``, ``dense`` (differential and algebraic ones apart) or ``full``."""
    rows: str
    """Of equations: ``none``, ``dense`` (apart) or ``full``."""
    scales: str
    """``unit``, ``mild`` (1e±2), ``wild`` (1e±9)."""
    outputs: int
    method: str
    tables: int = 0
    """Tables of states, some of which are flat but for a narrow bump."""
    twins: bool = False
    """Two more states that reach their own, equal thresholds at one instant and part there."""
    echo: bool = False
    """A second relation whose gap is the first one's times a positive factor: both switch at one instant."""
    nominal: bool = True
    """Whether sizes of 1e±9 are declared."""

    @property
    def jumps_or_bends(self) -> bool:
        """Whether the differential equations do."""
        return bool(self.signal != "none" or self.relations or self.relation_in_force or self.tables or self.twins)

    @staticmethod
    def draw(rng: np.random.Generator) -> Features:
        chain = int(rng.choice([0, 0, 0, 1, 1, 2, 3]))
        states = int(rng.choice([0, 1, 2, 3], p=[0.08, 0.32, 0.3, 0.3]))
        relations = int(rng.choice([0, 1, 2], p=[0.5, 0.3, 0.2])) if states else 0
        count = int(rng.choice([0, 1, 2], p=[0.3, 0.5, 0.2])) if states or chain else 1
        kinds = str(rng.choice(["smooth", "all", "gap"], p=[0.45, 0.52, 0.03]))
        signal = str(rng.choice(["none", "zoh", "foh"], p=[0.5, 0.35, 0.15]))
        mixing = str(rng.choice(["none", "dense", "full"], p=[0.4, 0.45, 0.15]))
        if mixing == "full" and (kinds != "smooth" or signal != "none" or relations):
            mixing = "dense"
        drawn = Features(
            states, chain, relations, bool(chain and rng.random() < 0.25) and mixing != "full", count, kinds, signal,
            chain == 1 and states > 0 and bool(rng.random() < 0.5), mixing,
            str(rng.choice(["none", "dense", "full"], p=[0.4, 0.35, 0.25])),
            str(rng.choice(["unit", "mild", "wild"], p=[0.3, 0.3, 0.4])), int(rng.choice([6, 41, 201])),
            str(rng.choice(["auto", "implicit", "explicit"], p=[0.6, 0.3, 0.1])),
        )  # fmt: skip
        tables = int(rng.choice([0, 1, 2], p=[0.6, 0.3, 0.1]))
        twins, echo, nominal = bool(rng.random() < 0.25), bool(rng.random() < 0.5), bool(rng.random() < 0.5)
        if not states or mixing == "full":
            tables, twins = 0, False
        return replace(
            drawn, states=states + 2 * twins, tables=tables, twins=twins, echo=echo and relations > 0, nominal=nominal
        )


class Hidden:
    """The problem in its own coordinates; ``ops`` is ``Numbers`` or ``Formulas``."""

    def __init__(self, seed: int, features: Features) -> None:
        self.features = F = features
        self._seed = seed
        rng = self.stream("states")
        n = F.states
        self.y0 = rounded(rng.uniform(-1, 1, n))
        skew = rng.uniform(-1.5, 1.5, (n, n))
        self.A = rounded(np.triu(skew, 1) - np.triu(skew, 1).T - np.diag(rng.uniform(0.05, 1.0, n)))
        self.drive = rounded(np.stack([rng.uniform(-1, 1, n), rng.uniform(0.5, 3, n), rng.uniform(0, 6, n)]))
        self.B = rounded(rng.uniform(-1, 1, n))
        self.saturation = rounded(rng.uniform(-0.5, 0.5, n))
        self.ordinary = n - 2 * F.twins
        self.relations = [self._relation(k, self.ordinary) for k in range(F.relations)]
        self.relations += [self._table(k, self.ordinary) for k in range(F.tables)]
        if F.echo:
            self.relations.append(self._echo(self.relations[0], self.ordinary))
        if F.twins:
            self._set_twins()
        rng = self.stream("chain")
        m = F.chain
        self.s = rounded([rng.uniform(0.5, 1.5), rng.uniform(0.5, 1.5), rng.uniform(0, 6), rng.uniform(-1, 1)])
        self.h = rounded(rng.uniform(-1, 1, n + m))
        self.cube = round(float(rng.choice([0.0, 0.3])), 2)
        self.b = rounded(rng.uniform(-0.4, 0.4, n)) if m else np.zeros(n)
        if F.twins:
            self.b[-2:] = 0.0
        self.k = round(float(rng.uniform(0.2, 0.8)), 2) if F.coupled_constraint and m == 1 and n else 0.0
        self.force = rounded(rng.uniform(0.3, 1.0))
        self.layers = [self._layer(k) for k in range(F.layers)]
        self.na = sum(layer.count for layer in self.layers)
        rng = self.stream("coupling")
        self.G = [rounded(rng.uniform(-1, 1, (layer.count, n + m + 3))) for layer in self.layers]
        self.feedback = rounded(rng.uniform(-0.4, 0.4, (n, self.na)))

    def stream(self, name: str) -> np.random.Generator:
        """Random numbers of one part, whatever the others draw."""
        return np.random.default_rng([self._seed, *name.encode()])

    def _relation(self, k: int, n: int) -> Term:
        rng = self.stream(f"relation {k}")
        kind = str(rng.choice(["sign", "absolute", "where", "maximum", "floor"]))
        size, level, slope = (
            float(rounded(v)) for v in (rng.uniform(-0.8, 0.8), rng.uniform(-0.6, 0.6), rng.uniform(-1, 1))
        )
        i, j, row = (int(v) for v in rng.integers(n, size=3))
        name = f"{kind}{k}"

        def term(ops: Any, y: list[Any], theta: Any) -> Any:
            x = y[i] + 0.5 * y[j] - level
            if kind == "sign":
                return size * ops.sign(name, x)
            if kind == "absolute":
                return size * ops.absolute(name, x)
            if kind == "where":
                return ops.switch(name, x, size + slope * y[j], -0.2 * y[i])
            if kind == "maximum":
                return size * ops.maximum(name, y[i], slope * y[j] + level)
            return 0.3 * size * ops.floor(name, 2 * x)

        term.row, term.kind, term.name = row, kind, name  # type: ignore[attr-defined]
        term.gap = lambda y: y[i] + 0.5 * y[j] - level  # type: ignore[attr-defined]
        return term

    def _table(self, k: int, n: int) -> Term:
        """A linear table of a state: a staircase of ramps, or zero but for a bump that is narrow."""
        rng = self.stream(f"table {k}")
        i, row = (int(v) for v in rng.integers(n, size=2))
        if rng.random() < 0.6:
            width = float(rng.choice([0.01, 0.05, 0.3]))
            at = float(rounded(self.y0[i] + rng.uniform(0.1, 0.6) * rng.choice([-1, 1])))
            xs, ys = (at - 2.0, at, at + width, at + 2 * width, at + 3.0), (0.0, 0.0, 0.4 / width**0.5, 0.0, 0.0)
        else:
            xs = tuple(float(v) for v in np.unique(rounded(rng.uniform(-1.5, 1.5, int(rng.integers(3, 9))))))
            ys = tuple(float(v) for v in rounded(rng.uniform(-0.8, 0.8, len(xs))))
        name = f"table{k}"

        def term(ops: Any, y: list[Any], theta: Any) -> Any:
            return ops.table(name, y[i], xs, ys)

        term.row, term.kind, term.name = row, "table", name  # type: ignore[attr-defined]
        return term

    def _echo(self, first: Term, n: int) -> Term:
        """Switches where another relation does, by a gap that is larger by a factor between one and three."""
        rng = self.stream("echo")
        size, row = float(rounded(rng.uniform(-0.6, 0.6))), int(rng.integers(n))
        bends = first.kind in ("absolute", "maximum", "floor")  # type: ignore[attr-defined]
        name = f"{first.name}~echo"  # type: ignore[attr-defined]

        def term(ops: Any, y: list[Any], theta: Any) -> Any:
            gap = first.gap(y) * (2 + ops.sin(theta))  # type: ignore[attr-defined]
            return size * ops.absolute(name, gap) if bends else ops.switch(name, gap, size, -0.1)

        term.row, term.kind, term.name = row, "echo", name  # type: ignore[attr-defined]
        return term

    def _set_twins(self) -> None:
        """p' = c (1 + sin(wθ) / 2) + (jump, once p has passed the level), for two jumps."""
        rng = self.stream("twins")
        self.twin = [float(rounded(v)) for v in (rng.uniform(0.4, 1), rng.uniform(0.5, 3), rng.uniform(0.3, 2.5))]
        self.jumps = [float(rounded(v)) * self.twin[0] for v in rng.uniform(-0.3, 2.0, 2)]
        self.y0[-2:] = 0.0
        self.B[-2:] = 0.0

    def _twin_rates(self, ops: Any, p: list[Any], theta: Any) -> list[Any]:
        speed, w, level = self.twin
        common = speed * (1 + 0.5 * ops.sin(w * theta))
        return [common + ops.switch(f"twin~{k}", p[k] - level, self.jumps[k], 0.0) for k in range(2)]

    def _layer(self, k: int) -> Layer:
        rng = self.stream(f"layer {k}")
        kinds = self.features.kinds
        if kinds == "gap" and k == 0:
            return layers.gap(rng)
        choices = layers.ALL if kinds == "all" else layers.SMOOTH
        return choices[int(rng.integers(len(choices)))](rng)

    # what a problem is, in either reading

    def path(self, ops: Any, theta: Any, order: int) -> Any:
        """The derivative of s of this order."""
        c, w, phase, level = (float(v) for v in self.s)
        angle = w * theta + phase
        wave = (ops.sin, ops.cos)[order % 2](angle) * (1, 1, -1, -1)[order % 4]
        return c * w**order * wave + (level if order == 0 else 0.0)

    def rates(self, ops: Any, y: list[Any], q: list[Any], a: list[Any], theta: Any, u: Any) -> list[Any]:
        """f: y' without the part of the multiplier."""
        n = self.ordinary
        result = []
        for i in range(n):
            size, w, phase = (float(v) for v in self.drive[:, i])
            value = size * ops.sin(w * theta + phase)
            value = value + sum(float(self.A[i, j]) * y[j] for j in range(n) if self.A[i, j])
            value = value + float(self.saturation[i]) * ops.tanh(y[(i + 1) % n])
            value = value + sum(float(self.feedback[i, k]) * a[k] for k in range(self.na) if self.feedback[i, k])
            if q:
                value = value + 0.2 * q[0]
            if self.features.signal != "none":
                value = value + float(self.B[i]) * u
            for term in self.relations:
                if term.row == i:  # type: ignore[attr-defined]
                    value = value + term(ops, y, theta)
            if self.features.twins and i == 0:
                value = value + 0.1 * (y[-1] - y[-2])
            result.append(value)
        return result + (self._twin_rates(ops, y[-2:], theta) if self.features.twins else [])

    def force_on_chain(self, ops: Any, y: list[Any], q: list[Any], u: Any) -> Any:
        """h"""
        value = sum(float(c) * v for c, v in zip(self.h, [*y, *q], strict=True) if c)
        if self.features.relation_in_force:
            value = value + float(self.force) * ops.sign("force", q[-1] + (0.5 * y[0] if y else 0.2))
        if self.features.signal != "none":
            value = value + 0.5 * u
        return value

    def right_sides(self, ops: Any, k: int, y: list[Any], q: list[Any], theta: Any, u: Any, held: Any) -> list[Any]:
        """g of layer k."""
        layer, G = self.layers[k], self.G[k]
        if layer.held:
            return [held]
        n = len(y) + len(q)
        result = []
        for row in G:
            value = float(row[n]) * ops.sin(0.7 * theta) + float(row[n + 1]) * 0.5 + layer.lift
            bound = 1.0 if not layer.lift else 0.8
            value = value + sum(
                bound * float(c) * (v if not layer.lift else ops.tanh(v))
                for c, v in zip(row, [*y, *q], strict=False)
                if c
            )
            if self.features.signal == "zoh" or (self.features.signal == "foh" and not layer.lift):
                value = value + 0.5 * float(row[n + 2]) * u
            result.append(value)
        return result


def breaks_of(hidden: Hidden, end: float) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Instants of the known signals, the values of u, and those of each layer's own held input.

    Nothing jumps at the last instant, so that a held signal has one value there.
    """
    rng = hidden.stream("signal")
    inner = np.sort(rounded(rng.uniform(0.05 * end, 0.95 * end, 4)))
    at = np.unique(np.concatenate([[0.0], inner, [end]]))
    u = rounded(rng.uniform(-1, 1, at.size)) * (3.0 if rng.random() < 0.3 else 1.0)
    held = []
    for k, layer in enumerate(hidden.layers):
        pick = hidden.stream(f"held {k}").integers(max(len(layer.levels), 1), size=at.size)
        held.append(np.array([layer.levels[i] for i in pick]) if layer.held else np.zeros(at.size))
    for values in (u, *held):
        values[-1] = values[-2]
    return at, rounded(u), held


def is_sound(value: float) -> bool:
    return math.isfinite(value) and abs(value) < 1e6
