"""Large models for benchmarks: a ladder, a rod, a grid, and Medical Akzo Nobel of the Test Set for IVP Solvers.

Medical Akzo Nobel (Mazzia, Magherini: Test Set for Initial Value Problem Solvers, release 2.4, University of Bari,
2008, chapter "Medical Akzo Nobel problem"; it comes from Akzo Nobel Research and was formulated by R. van der Hout): an
antibody enters tissue that a tumour has infected; two partial differential equations on a half line, mapped to [0, 1]
and discretised by the method of lines with 200 points,

    u' = α u_ζ + β u_ζζ − k u v,   v' = −k u v,   α = 2 (ζ − 1)³/c²,   β = (ζ − 1)⁴/c²,   k = 100,   c = 4,

u = φ(t) at ζ = 0, which is 2 until t = 5 and 0 from then on, u_ζ = 0 at ζ = 1; u = 0, v = 1 at the start; t from 0 to
20.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import grisaille as gr
from grisaille import der

AKZO_END = 20.0
AKZO_REFERENCE = {
    "u[39]": 0.2339942217046434e-03, "u[66]": 0.3576835958481664e-03, "u[85]": 0.3085949832350532e-03,
    "u[99]": 0.1173741304462833e-03,
}  # fmt: skip
"""Published values at the end, y(79), y(133), y(171), y(199)."""


def medical_akzo(points: int = 200) -> gr.Model:
    """y(2j − 1) of the publication is ``u[j − 1]``, y(2j) is ``v[j − 1]``."""

    class MedicalAkzoNobel(gr.Model):
        k = gr.Parameter(100.0)
        c = gr.Parameter(4.0)
        u = gr.Variable(start=0.0, size=points)
        v = gr.Variable(start=1.0, size=points)

        def equations(self) -> list[object]:
            u, v, step = self.u, self.v, 1.0 / points
            inflow = gr.where(gr.time <= 5.0, 2.0, 0.0)
            found = []
            for j in range(points):
                zeta = (j + 1) * step
                alpha, beta = 2 * (zeta - 1) ** 3 / self.c**2, (zeta - 1) ** 4 / self.c**2
                before = u[j - 1] if j else inflow
                after = u[j + 1] if j + 1 < points else u[j]
                reaction = self.k * u[j] * v[j]
                slope, bend = (after - before) / (2 * step), (before - 2 * u[j] + after) / step**2
                found += [der(u[j]) == alpha * slope + beta * bend - reaction, der(v[j]) == -reaction]
            return found

    return MedicalAkzoNobel()


def ladder(n: int) -> gr.Model:
    """Resistors in a row with a capacitor to ground after each; the currents are unknowns as well."""

    class Ladder(gr.Model):
        R = gr.Parameter(1.0, "ohm")
        C = gr.Parameter(1.0 / n**2, "F")
        v = gr.Variable(start=0.0, unit="V", size=n)
        i = gr.Variable(unit="A", size=n)
        source = gr.Input("V", default=1.0)

        def equations(self) -> list[object]:
            v, i = self.v, self.i
            found = [self.R * i[k] == (v[k - 1] if k else self.source) - v[k] for k in range(n)]
            return found + [self.C * der(v[k]) == i[k] - (i[k + 1] if k + 1 < n else 0.0) for k in range(n)]

    return Ladder()


def rod(n: int) -> gr.Model:
    """Heat in a rod that is warm at one end, insulated at the other, and loses heat along its length."""

    class Rod(gr.Model):
        a = gr.Parameter(1.0, "m2/s")
        loss = gr.Parameter(0.1)
        T = gr.Variable(start=0.0, unit="K", size=n)
        left = gr.Input("K", default=1.0)

        def equations(self) -> list[object]:
            T = self.T
            ends = [self.left, *(T[k] for k in range(n)), T[n - 1]]
            return [
                der(T[k]) == self.a * n**2 * (ends[k] - 2 * T[k] + ends[k + 2]) - self.loss * T[k] ** 3
                for k in range(n)
            ]

    return Rod()


def grid(n: int) -> gr.Model:
    """Heat in a square plate of about n cells, warm at one edge and insulated at the others."""
    m = round(math.sqrt(n))

    class Grid(gr.Model):
        a = gr.Parameter(1.0, "m2/s")
        loss = gr.Parameter(0.1)
        T = gr.Variable(start=0.0, unit="K", size=m * m)
        left = gr.Input("K", default=1.0)

        def equations(self) -> list[object]:
            T, left = self.T, self.left
            return [
                der(T[k]) == self.a * m**2 * _flow(T, left, k // m, k % m, m) - self.loss * T[k] ** 3
                for k in range(m * m)
            ]

    return Grid()


def _flow(T: object, left: object, i: int, j: int, m: int) -> object:
    own, total = T[i * m + j], 0.0  # type: ignore[index]
    for p, q in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
        if p < 0:
            total = total + (left - own)
        elif p < m and 0 <= q < m:
            total = total + (T[p * m + q] - own)  # type: ignore[index]
    return total


MODELS: dict[str, Callable[[int], gr.Model]] = {"ladder": ladder, "rod": rod, "grid": grid}


def digits(run: object) -> float:
    """Significant correct digits of Medical Akzo Nobel, as in docs/accuracy.md."""
    errors = [abs(float(run[n][-1]) / value - 1) for n, value in AKZO_REFERENCE.items()]  # type: ignore[index]
    return -float(np.log10(max(errors)))
