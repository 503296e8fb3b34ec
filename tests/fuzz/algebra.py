"""Formulas that are written once and read twice: as numbers by the reference, as a model by the package under test.

A relation is named. Read as numbers it follows a *mode* that stays as it is until the reference changes it, so that the
reference integrates smooth pieces; the distance to the end of the present piece is kept in ``margins``.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any

import grisaille as gr


class Numbers:
    """Plain arithmetic with modes: the reference's reading."""

    sin, cos, tanh, exp = math.sin, math.cos, math.tanh, math.exp

    def __init__(self) -> None:
        self.modes: dict[str, int] = {}
        self.margins: dict[str, float] = {}
        self.steps: dict[str, float] = {}
        """Arguments of ``floor``."""
        self.looked_up: dict[str, tuple[float, tuple[float, ...]]] = {}
        """Arguments and knots of tables."""

    def switch(self, name: str, gap: float, above: float, below: float) -> float:
        """``above`` while gap > 0, ``below`` otherwise."""
        mode = self.modes.setdefault(name, int(gap > 0))
        self.margins[name] = gap if mode else -gap
        return above if mode else below

    def sign(self, name: str, x: float) -> float:
        return self.switch(name, x, 1.0, -1.0)

    def absolute(self, name: str, x: float) -> float:
        return self.switch(name, x, x, -x)

    def maximum(self, name: str, x: float, y: float) -> float:
        return self.switch(name, x - y, x, y)

    def minimum(self, name: str, x: float, y: float) -> float:
        return self.switch(name, x - y, y, x)

    def floor(self, name: str, x: float) -> float:
        mode = self.modes.setdefault(name, math.floor(x))
        self.margins[name], self.steps[name] = min(x - mode, mode + 1 - x), x
        return float(mode)

    def table(self, name: str, x: float, xs: tuple[float, ...], ys: tuple[float, ...]) -> float:
        """Linear between the knots, constant outside; a mode is the interval between two knots."""
        mode = self.modes.setdefault(name, bisect_right(xs, x))
        low, high = (-math.inf, *xs)[mode], (*xs, math.inf)[mode]
        self.margins[name], self.looked_up[name] = min(x - low, high - x), (x, xs)
        if mode in (0, len(xs)):
            return ys[0] if mode == 0 else ys[-1]
        return ys[mode - 1] + (ys[mode] - ys[mode - 1]) * (x - low) / (high - low)

    def turn(self, name: str) -> None:
        """To the mode on the other side of the boundary at which the reference stands."""
        mode = self.modes[name]
        if name in self.looked_up:
            x, xs = self.looked_up[name]
            nearest = min(range(len(xs)), key=lambda k: abs(xs[k] - x))
            self.modes[name] = nearest + 1 if mode <= nearest else nearest
        elif name in self.steps:
            boundary = round(self.steps[name])
            self.modes[name] = boundary if boundary > mode else boundary - 1
        else:
            self.modes[name] = 1 - mode


class Formulas:
    """The modelling language: what the package under test is given."""

    sin, cos, tanh, exp = staticmethod(gr.sin), staticmethod(gr.cos), staticmethod(gr.tanh), staticmethod(gr.exp)

    @staticmethod
    def switch(name: str, gap: Any, above: Any, below: Any) -> Any:
        return gr.where(gap > 0, above, below)

    @staticmethod
    def sign(name: str, x: Any) -> Any:
        return gr.sign(x)

    @staticmethod
    def absolute(name: str, x: Any) -> Any:
        return abs(x)

    @staticmethod
    def maximum(name: str, x: Any, y: Any) -> Any:
        return gr.maximum(x, y)

    @staticmethod
    def minimum(name: str, x: Any, y: Any) -> Any:
        return gr.minimum(x, y)

    @staticmethod
    def floor(name: str, x: Any) -> Any:
        return gr.floor(x)

    @staticmethod
    def table(name: str, x: Any, xs: tuple[float, ...], ys: tuple[float, ...]) -> Any:
        return gr.table(x, xs, ys)
