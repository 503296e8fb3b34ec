"""Nine problems with reference end points, written as they stand in the literature.

Source: Test Set for IVP Solvers (CWI Amsterdam, University of Bari; Mazzia & Magherini 2008; Lioen & de Swart 1998),
and a pendulum with a closed form (Jacobi elliptic functions). None is reduced by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import grisaille as gr
from grisaille import der, exp, sin, sqrt


class Robertson(gr.Model):
    """Autocatalytic reaction."""

    k1, k2, k3 = gr.Parameter(0.04), gr.Parameter(3e7), gr.Parameter(1e4)
    y1, y2, y3 = gr.Variable(1.0), gr.Variable(0.0, nominal=1e-5), gr.Variable(0.0)
    equations = [
        der(y1) == -k1 * y1 + k3 * y2 * y3,
        der(y2) == k1 * y1 - k2 * y2**2 - k3 * y2 * y3,
        der(y3) == k2 * y2**2,
    ]


class RobertsonDAE(Robertson):
    """The same with the conservation law instead of the third equation: index 1."""

    def equations(self):
        y1, y2, y3 = self.y1, self.y2, self.y3
        yield der(y1) == -self.k1 * y1 + self.k3 * y2 * y3
        yield der(y2) == self.k1 * y1 - self.k2 * y2**2 - self.k3 * y2 * y3
        yield y1 + y2 + y3 == 1


class Hires(gr.Model):
    """High irradiance responses of photomorphogenesis."""

    k1, k2, k3, k4, k5 = (gr.Parameter(v) for v in (1.71, 0.43, 8.32, 0.69, 0.035))
    k6, k7, k8, k9 = (gr.Parameter(v) for v in (8.32, 280.0, 0.69, 0.69))
    o = gr.Parameter(0.0007)
    Pr, Pfr, PrX, PfrX = gr.Variable(1.0), gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    PrX2, PfrX2, PfrX2E, E = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0057)
    Q = k7 * PfrX2 * E
    equations = [
        der(Pr) == -k1 * Pr + k2 * Pfr + k6 * PrX + o,
        der(Pfr) == k1 * Pr - (k2 + k3) * Pfr,
        der(PrX) == -(k6 + k1) * PrX + k2 * PfrX + k5 * PrX2,
        der(PfrX) == k3 * Pfr + k1 * PrX - (k4 + k2) * PfrX,
        der(PrX2) == -(k5 + k1) * PrX2 + k2 * (PfrX2 + PfrX2E),
        der(PfrX2) == -Q + k8 * PfrX + k1 * PrX2 - k2 * PfrX2 + k8 * PfrX2E,
        der(PfrX2E) == Q - (k2 + k8 + k9) * PfrX2E,
        der(E) == -der(PfrX2E),
    ]


class VanDerPol(gr.Model):
    """Relaxation oscillator."""

    mu = gr.Parameter(1000.0)
    y1, y2 = gr.Variable(2.0), gr.Variable(0.0)
    equations = [der(y1) == y2, der(y2) == mu * (1 - y1**2) * y2 - y1]


class Oregonator(gr.Model):
    """Belousov–Zhabotinskii reaction."""

    s, w, q = gr.Parameter(77.27), gr.Parameter(0.161), gr.Parameter(8.375e-6)
    y1, y2, y3 = gr.Variable(1.0), gr.Variable(2.0), gr.Variable(3.0)
    equations = [
        der(y1) == s * (y2 + y1 - y1 * y2 - q * y1**2),
        der(y2) == (y3 - (1 + y1) * y2) / s,
        der(y3) == w * (y1 - y3),
    ]


class Pollution(gr.Model):
    """Air pollution chemistry: 25 reactions between 20 species."""

    RATES = (
        0.35, 26.6, 12300, 8.6e-4, 8.2e-4, 15000, 1.3e-4, 24000, 16500, 9000, 0.022, 12000, 1.88, 16300, 4.8e6, 3.5e-4,
        0.0175, 1e8, 4.44e11, 1240, 2.1, 5.78, 0.0474, 1780, 3.12,
    )  # fmt: skip
    SPECIES = (
        (1,), (2, 4), (5, 2), (7,), (7,), (7, 6), (9,), (9, 6), (11, 2), (11, 1), (13,), (10, 2), (14,), (1, 6), (3,),
        (4,), (4,), (16,), (16,), (17, 6), (19,), (19,), (1, 4), (19, 1), (20,),
    )  # fmt: skip
    BALANCE = (
        "-1-10-14-23-24+2+3+9+11+12+22+25", "-2-3-9-12+1+21", "-15+1+17+19+22", "-2-16-17-23+15", "-3+4+4+6+7+13+20",
        "-6-8-14-20+3+18+18", "-4-5-6+13", "+4+5+6+7", "-7-8", "-12+7+9", "-9-10+8+11", "+9", "-11+10", "-13+12", "+14",
        "-18-19+16", "-20", "+20", "-21-22-24+23+25", "-25+24",
    )  # fmt: skip
    STARTS = (0, 0.2, 0, 0.04, 0, 0, 0.1, 0.3, 0.01, 0, 0, 0, 0, 0, 0, 0, 0.007, 0, 0, 0)

    k = gr.Parameter(RATES, size=25)
    y = gr.Variable(STARTS, size=20)

    def equations(self):
        rate = [self.k[j] * np.prod([self.y[s - 1] for s in species]) for j, species in enumerate(self.SPECIES)]
        for i, balance in enumerate(self.BALANCE):
            terms = [int(t) for t in balance.replace("-", " -").replace("+", " +").split()]
            yield der(self.y[i]) == sum(np.sign(t) * rate[abs(t) - 1] for t in terms)


class ChemicalAkzo(gr.Model):
    """Chemical Akzo Nobel: six species, index 1."""

    k1, k2, k3, k4 = gr.Parameter(18.7), gr.Parameter(0.58), gr.Parameter(0.09), gr.Parameter(0.42)
    K, klA, Ks, p, H = (gr.Parameter(v) for v in (34.4, 3.3, 115.83, 0.9, 737.0))
    y1, y2, y3 = gr.Variable(0.444), gr.Variable(0.00123), gr.Variable(0.0)
    y4, y5, y6 = gr.Variable(0.007), gr.Variable(0.0), gr.Variable()
    r1 = k1 * y1**4 * sqrt(y2)
    r2 = k2 * y3 * y4
    r3 = k2 / K * y1 * y5
    r4 = k3 * y1 * y4**2
    r5 = k4 * y6**2 * sqrt(y2)
    F = klA * (p / H - y2)
    equations = [
        der(y1) == -2 * r1 + r2 - r3 - r4,
        der(y2) == -r1 / 2 - r4 - r5 / 2 + F,
        der(y3) == r1 - r2 + r3,
        der(y4) == -r2 + r3 - 2 * r4,
        der(y5) == r2 - r3 + r5,
        0 == Ks * y1 * y4 - y6,
    ]


class TransistorAmplifier(gr.Model):
    """Eight node voltages; the capacitors between free nodes make the leading matrix singular: index 1."""

    Ub, UF, alpha, beta = gr.Parameter(6.0), gr.Parameter(0.026), gr.Parameter(0.99), gr.Parameter(1e-6)
    R0, R = gr.Parameter(1000.0), gr.Parameter(9000.0)
    C1, C2, C3, C4, C5 = (gr.Parameter(k * 1e-6) for k in range(1, 6))
    y1, y2, y3, y4 = gr.Variable(0.0), gr.Variable(3.0), gr.Variable(3.0), gr.Variable(6.0)
    y5, y6, y7, y8 = gr.Variable(3.0), gr.Variable(3.0), gr.Variable(6.0), gr.Variable(0.0)
    ue = 0.1 * sin(200 * np.pi * gr.time)
    g23 = beta * (exp((y2 - y3) / UF) - 1)
    g56 = beta * (exp((y5 - y6) / UF) - 1)
    equations = [
        -C1 * (der(y1) - der(y2)) == (y1 - ue) / R0,
        C1 * (der(y1) - der(y2)) == y2 / R + (y2 - Ub) / R + (1 - alpha) * g23,
        -C2 * der(y3) == y3 / R - g23,
        -C3 * (der(y4) - der(y5)) == (y4 - Ub) / R + alpha * g23,
        C3 * (der(y4) - der(y5)) == y5 / R + (y5 - Ub) / R + (1 - alpha) * g56,
        -C4 * der(y6) == y6 / R - g56,
        -C5 * (der(y7) - der(y8)) == (y7 - Ub) / R + alpha * g56,
        C5 * (der(y7) - der(y8)) == y8 / R,
    ]


class CarAxis(gr.Model):
    """A car axis on a bumpy road: index 3."""

    L, L0, eps, m, g, h, om = (gr.Parameter(v) for v in (1.0, 0.5, 0.01, 10.0, 1.0, 0.1, 10.0))
    xl, yl, xr, yr = gr.Variable(0.0), gr.Variable(0.5), gr.Variable(1.0), gr.Variable(0.5)
    ul, vl, ur, vr = gr.Variable(-0.5), gr.Variable(0.0), gr.Variable(-0.5), gr.Variable(0.0)
    lam1, lam2 = gr.Variable(), gr.Variable()
    K = m * eps**2 / 2
    yb = h * sin(om * gr.time)
    xb = sqrt(L**2 - yb**2)
    Ll = sqrt(xl**2 + yl**2)
    Lr = sqrt((xr - xb) ** 2 + (yr - yb) ** 2)
    equations = [
        der(xl) == ul,
        der(yl) == vl,
        der(xr) == ur,
        der(yr) == vr,
        K * der(ul) == (L0 - Ll) * xl / Ll + lam1 * xb + 2 * lam2 * (xl - xr),
        K * der(vl) == (L0 - Ll) * yl / Ll + lam1 * yb + 2 * lam2 * (yl - yr) - K * g,
        K * der(ur) == (L0 - Lr) * (xr - xb) / Lr - 2 * lam2 * (xl - xr),
        K * der(vr) == (L0 - Lr) * (yr - yb) / Lr - 2 * lam2 * (yl - yr) - K * g,
        0 == xl * xb + yl * yb,
        0 == (xl - xr) ** 2 + (yl - yr) ** 2 - L**2,
    ]


class UnitPendulum(gr.Model):
    """Pendulum of length one in Cartesian coordinates: index 3."""

    g = gr.Parameter(9.81)
    x, y, u, v = gr.Variable(1.0), gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
    lam = gr.Variable()
    equations = [
        der(x) == u,
        der(y) == v,
        der(u) == -lam * x,
        der(v) == -lam * y - g,
        0 == x**2 + y**2 - 1,
    ]


@dataclass(frozen=True)
class Problem:
    """A model, when it ends, its index, and the absolute tolerance it needs at rtol 1e-7."""

    name: str
    model: type[gr.Model]
    end: float
    index: int
    components: tuple[str, ...]
    """In the order of the reference file."""
    atol: float | dict[str, float] | None = None
    differentiate_by: tuple[str, ...] = ()
    checkpoints: tuple[float, ...] = field(default=())


PROBLEMS = (
    Problem("rober", Robertson, 1e11, 0, ("y1", "y2", "y3"), {"y1": 1e-14, "y2": 1e-20, "y3": 1e-14}, ("k1", "k3")),
    Problem(
        "hires", Hires, 321.8122, 0, ("Pr", "Pfr", "PrX", "PfrX", "PrX2", "PfrX2", "PfrX2E", "E"), 1e-10, ("k1", "k7")
    ),
    Problem("vdpol", VanDerPol, 2000.0, 0, ("y1", "y2"), 1e-10, ("mu", "start(y1)")),
    Problem("orego", Oregonator, 360.0, 0, ("y1", "y2", "y3"), 1e-10, ("s", "w")),
    Problem("pollution", Pollution, 60.0, 0, tuple(f"y[{i}]" for i in range(20)), 1e-14, ("k[0]", "k[3]")),
    Problem("chemakzo", ChemicalAkzo, 180.0, 1, ("y1", "y2", "y3", "y4", "y5", "y6"), 1e-11, ("k1", "Ks")),
    Problem("transistor", TransistorAmplifier, 0.2, 1, tuple(f"y{i}" for i in range(1, 9)), 1e-9, ("beta", "C3")),
    Problem(
        "caraxis", CarAxis, 3.0, 3, ("xl", "yl", "xr", "yr", "ul", "vl", "ur", "vr", "lam1", "lam2"), 1e-10, ("L0", "m")
    ),
    Problem("pendulum", UnitPendulum, 10.0, 3, ("x", "y", "u", "v", "lam"), 1e-10, ("g",), (0.5, 1.0, 2.0, 5.0, 10.0)),
)
