"""More problems from the Test Set for IVP Solvers and its relatives, written as they stand in the literature.

Mechanisms with closed loops (index 3), circuits whose transistors switch (index 2), a net of pipes, a train's wheels on
its rails, a robot whose structural index misleads, large discretised equations. None is reduced by hand. End values are
those of the test set, or have a closed form, or come from a minimal-coordinate form that is solved beside it.

References: Mazzia, Magherini: Test Set for Initial Value Problem Solvers, release 2.4 (2008). Campbell, Griepentrog:
Solvability of general differential algebraic equations, SIAM J. Sci. Comput. 16 (1995) 257-270 (robot). Hairer, Wanner:
Solving Ordinary Differential Equations I and II (Arenstorf orbit, Brusselator).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import grisaille as gr
from grisaille import atan, cos, der, exp, floor, log10, maximum, minimum, sin, sqrt, tanh, time, where


def combine(factors: Any, values: Any) -> Any:
    """Σ factor · value over the factors that are not the number zero."""
    return sum(f * v for f, v in zip(factors, values, strict=True) if not (isinstance(f, (int, float)) and f == 0))


class Andrews(gr.Model):
    """Andrews' squeezing mechanism: seven bodies, three closed loops, index 3."""

    m1, m2, m3, m4, m5 = (gr.Parameter(v) for v in (0.04325, 0.00365, 0.02373, 0.00706, 0.07050))
    m6, m7, c0, mom = (gr.Parameter(v) for v in (0.00706, 0.05498, 4530.0, 0.033))
    xa, ya, xb, yb, xc, yc = (gr.Parameter(v) for v in (-0.06934, -0.00227, -0.03635, 0.03273, 0.014, 0.072))
    i1, i2, i3, i4 = (gr.Parameter(v) for v in (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7))
    i5, i6, i7 = (gr.Parameter(v) for v in (1.169e-5, 5.667e-7, 1.912e-5))
    d, da, e, ea, rr, ra, l0 = (gr.Parameter(v) for v in (28e-3, 115e-4, 2e-2, 1421e-5, 7e-3, 92e-5, 7785e-5))
    ss, sa, sb, sc, sd = (gr.Parameter(v) for v in (35e-3, 1874e-5, 1043e-5, 18e-3, 2e-2))
    ta, tb, u, ua, ub = (gr.Parameter(v) for v in (2308e-5, 916e-5, 4e-2, 1228e-5, 449e-5))
    zf, zt, fa = gr.Parameter(2e-2), gr.Parameter(4e-2), gr.Parameter(1421e-5)
    STARTS = (
        -0.0617138900142764, 0.0, 0.4552798191630704, 0.2226683901658859, 0.4873649795438425, -0.2226683901658859,
        1.230547444549821,
    )  # fmt: skip
    q = gr.Variable(STARTS, size=7)
    v = gr.Variable((0.0,) * 7, size=7)
    w = gr.Variable(size=7, nominal=1e4)
    lam = gr.Variable(size=6, nominal=100.0)

    def mass(self):
        s, th, ph, om = self, self.q[1], self.q[3], self.q[5]
        E, F = s.e - s.ea, s.zf - s.fa
        m = np.zeros((7, 7), dtype=object)
        m[0, 0] = s.m1 * s.ra**2 + s.m2 * (s.rr**2 - 2 * s.da * s.rr * cos(th) + s.da**2) + s.i1 + s.i2
        m[1, 0] = m[0, 1] = s.m2 * (s.da**2 - s.da * s.rr * cos(th)) + s.i2
        m[1, 1] = s.m2 * s.da**2 + s.i2
        m[2, 2] = s.m3 * (s.sa**2 + s.sb**2) + s.i3
        m[3, 3] = s.m4 * E**2 + s.i4
        m[4, 3] = m[3, 4] = s.m4 * (E**2 + s.zt * E * sin(ph)) + s.i4
        m[4, 4] = s.m4 * (s.zt**2 + 2 * s.zt * E * sin(ph) + E**2) + s.m5 * (s.ta**2 + s.tb**2) + s.i4 + s.i5
        m[5, 5] = s.m6 * F**2 + s.i6
        m[6, 5] = m[5, 6] = s.m6 * (F**2 - s.u * F * sin(om)) + s.i6
        m[6, 6] = s.m6 * (F**2 - 2 * s.u * F * sin(om) + s.u**2) + s.m7 * (s.ua**2 + s.ub**2) + s.i6 + s.i7
        return m

    def forces(self):
        s, th, ga, ph, om = self, self.q[1], self.q[2], self.q[3], self.q[5]
        be_, th_, _, ph_, de_, om_, ep_ = self.v
        E, F = s.e - s.ea, s.zf - s.fa
        x, y = s.sd * cos(ga) + s.sc * sin(ga) + s.xb - s.xc, s.sd * sin(ga) - s.sc * cos(ga) + s.yb - s.yc
        length = sqrt(x**2 + y**2)
        spring = -s.c0 * (length - s.l0) / length
        return [
            s.mom - s.m2 * s.da * s.rr * th_ * (th_ + 2 * be_) * sin(th),
            s.m2 * s.da * s.rr * be_**2 * sin(th),
            spring * (x * (s.sc * cos(ga) - s.sd * sin(ga)) + y * (s.sd * cos(ga) + s.sc * sin(ga))),
            s.m4 * s.zt * E * de_**2 * cos(ph),
            -s.m4 * s.zt * E * ph_ * (ph_ + 2 * de_) * cos(ph),
            -s.m6 * s.u * F * ep_**2 * cos(om),
            s.m6 * s.u * F * om_ * (om_ + 2 * ep_) * cos(om),
        ]

    def loops(self):
        s, (be, th, ga, ph, de, om, ep) = self, self.q
        x, y = s.rr * cos(be) - s.d * cos(be + th), s.rr * sin(be) - s.d * sin(be + th)
        return [
            x - s.ss * sin(ga) - s.xb,
            y + s.ss * cos(ga) - s.yb,
            x - s.e * sin(ph + de) - s.zt * cos(de) - s.xa,
            y + s.e * cos(ph + de) - s.zt * sin(de) - s.ya,
            x - s.zf * cos(om + ep) - s.u * sin(ep) - s.xa,
            y - s.zf * sin(om + ep) + s.u * cos(ep) - s.ya,
        ]

    def slopes(self):
        """∂loops/∂q."""
        s, (be, th, ga, ph, de, om, ep) = self, self.q
        x_th, y_th = s.d * sin(be + th), -s.d * cos(be + th)
        x_be, y_be = x_th - s.rr * sin(be), y_th + s.rr * cos(be)
        x_ph, y_ph = -s.e * cos(ph + de), -s.e * sin(ph + de)
        x_om, y_om = s.zf * sin(om + ep), -s.zf * cos(om + ep)
        return np.array(
            [
                [x_be, x_th, -s.ss * cos(ga), 0, 0, 0, 0],
                [y_be, y_th, -s.ss * sin(ga), 0, 0, 0, 0],
                [x_be, x_th, 0, x_ph, x_ph + s.zt * sin(de), 0, 0],
                [y_be, y_th, 0, y_ph, y_ph - s.zt * cos(de), 0, 0],
                [x_be, x_th, 0, 0, 0, x_om, x_om - s.u * cos(ep)],
                [y_be, y_th, 0, 0, 0, y_om, y_om - s.u * sin(ep)],
            ],
            dtype=object,
        )

    def equations(self):
        yield der(self.q) == self.v
        yield der(self.v) == self.w
        slopes = self.slopes()
        for i, (row, force) in enumerate(zip(self.mass(), self.forces(), strict=True)):
            yield combine(row, self.w) == force - combine(slopes[:, i], self.lam)
        yield from (0 == loop for loop in self.loops())


class FlexibleCrank(gr.Model):
    """A slider crank whose rod bends and stretches (two modes each), driven at constant speed: index 3."""

    M1, M2, M3, L1, L2 = (gr.Parameter(v) for v in (0.36, 0.151104, 0.075552, 0.15, 0.30))
    J1, J2, E, B, H = (gr.Parameter(v) for v in (0.002727, 0.0045339259, 0.20e12, 0.0080, 0.0080))
    rho, omega = gr.Parameter(7870.0), gr.Parameter(150.0)
    POSITIONS = (0.0, 0.0, 0.450016933, 0.0, 0.0, 0.103339863e-4, 0.169327969e-4)
    VELOCITIES = (150.0, -74.9957670, -0.268938672e-5, 0.444896105, 0.463434311e-2, -0.178591076e-5, -0.268938672e-5)
    p, v = gr.Variable(POSITIONS, size=7), gr.Variable(VELOCITIES, size=7)
    w, lam = gr.Variable(size=7), gr.Variable(size=3)

    def integrals(self):
        """Mass, stiffness, coupling of the modes and their moments over the rod."""
        pi, area = np.pi, self.B * self.H
        slender = pi**4 * (self.H / self.L2) ** 2
        rows = [[0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 8, 1], [0, 0, 1, 2]]
        mass = self.rho * area * self.L2 * np.array(rows, dtype=object)
        stretch = [[0, 0, 16 / 3, -8 / 3], [0, 0, -8 / 3, 7 / 3]]
        stiffness = self.E * area / self.L2 * np.array([[slender / 24, 0, 0, 0], [0, slender * 2 / 3, 0, 0], *stretch])
        b = 8 / pi**3 - 1 / pi
        rows = [[0, 0, -16 / pi**3, b], [0, 0, 0, 0.5 / pi], [16 / pi**3, 0, 0, 0], [-b, -0.5 / pi, 0, 0]]
        coupling = area * self.L2 * np.array(rows, dtype=object)
        c1, c2 = area * self.L2 * np.array([0, 0, 2 / 3, 1 / 6]), area * self.L2 * np.array([2 / pi, 0, 0, 0])
        c12 = area * self.L2**2 * np.array([0, 0, 1 / 3, 1 / 6])
        c21 = area * self.L2**2 * np.array([1 / pi, -0.5 / pi, 0, 0])
        return mass, stiffness, coupling, c1, c2, c12, c21

    def equations(self):
        s, (a1, a2, x3, *_), (v1, v2, *_) = self, self.p, self.v
        q, qd = np.array(list(self.p[3:]), dtype=object), np.array(list(self.v[3:]), dtype=object)
        M, K, B, c1, c2, c12, c21 = self.integrals()
        C, S, half = cos(a1 - a2), sin(a1 - a2), 0.5 * s.L1 * s.L2 * s.M2
        A = np.zeros((7, 7), dtype=object)
        A[0, 0], A[1, 1], A[2, 2] = s.J1 + s.M2 * s.L1**2, s.J2 + q @ M @ q + 2 * s.rho * (c12 @ q), s.M3
        A[0, 1] = A[1, 0] = half * C + s.rho * s.L1 * (S * (c2 @ q) + C * (c1 @ q))
        A[0, 3:] = A[3:, 0] = s.rho * s.L1 * (C * c2 - S * c1)
        A[1, 3:] = A[3:, 1] = s.rho * (c21 + q @ B)
        A[3:, 3:] = M
        bend, lift = C * (c1 @ qd) + S * (c2 @ qd), S * (c1 @ q) - C * (c2 @ q)
        force = [
            -half * v2**2 * S - s.rho * s.L1 * v2**2 * lift - 2 * s.rho * s.L1 * v2 * bend,
            half * v1**2 * S + s.rho * s.L1 * v1**2 * lift - 2 * s.rho * v2 * (c12 @ qd) - 2 * v2 * (qd @ M @ q)
            - s.rho * (qd @ B @ qd),
            0.0,
            *(v2**2 * (M @ q + s.rho * c12) + s.rho * (s.L1 * v1**2 * (C * c1 + S * c2) + 2 * v2 * (B @ qd)) - K @ q),
        ]  # fmt: skip
        rod = s.L2 + q[3]
        slopes = np.array(
            [
                [s.L1 * cos(a1), rod * cos(a2), 0, 0, 0, 0, sin(a2)],
                [s.L1 * sin(a1), rod * sin(a2), 1, 0, 0, 0, -cos(a2)],
                [1, 0, 0, 0, 0, 0, 0],
            ],
            dtype=object,
        )
        yield der(s.p) == s.v
        yield der(s.v) == s.w
        for i in range(7):
            yield combine(A[i], s.w) == force[i] - combine(slopes[:, i], s.lam)
        yield 0 == s.L1 * sin(a1) + rod * sin(a2)
        yield x3 == s.L1 * cos(a1) + rod * cos(a2)
        yield a1 == s.omega * time


def fekete(n: int) -> type[gr.Model]:
    """The first n of twenty bodies that repel each other on a sphere; index 2 by stabilisation with mu."""

    class Fekete(gr.Model):
        RINGS = (
            *((2 * np.pi * i / 3 + np.pi / 13, 3 * np.pi / 8) for i in range(1, 4)),
            *((2 * np.pi * i / 7 + np.pi / 29, np.pi / 8) for i in range(1, 8)),
            *((2 * np.pi * i / 6 + np.pi / 7, -2 * np.pi / 15) for i in range(1, 7)),
            *((2 * np.pi * i / 4 + np.pi / 17, -3 * np.pi / 10) for i in range(4)),
        )
        STARTS = np.array([(np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)) for a, b in RINGS])[:n].ravel()
        friction = gr.Parameter(0.5)
        p, q = gr.Variable(tuple(STARTS), size=3 * n), gr.Variable((0.0,) * (3 * n), size=3 * n)
        lam, mu = gr.Variable(size=n), gr.Variable(size=n)

        def equations(self):
            P, Q = ([np.array(list(w[3 * i : 3 * i + 3]), dtype=object) for i in range(n)] for w in (self.p, self.q))
            for i in range(n):
                away = [P[i] - P[j] for j in range(n) if j != i]
                force = sum(d / (d @ d) for d in away)
                for k in range(3):
                    yield der(P[i][k]) == Q[i][k] + 2 * self.mu[i] * P[i][k]
                    yield der(Q[i][k]) == -self.friction * Q[i][k] + 2 * self.lam[i] * P[i][k] + force[k]
                yield 0 == P[i] @ P[i] - 1
                yield 0 == 2 * (P[i] @ Q[i])

    return Fekete


class Nand(gr.Model):
    """A NAND gate of three MOS transistors, driven by two trapezoids."""

    RGS, RGD, RBS, RBD = (gr.Parameter(v) for v in (4.0, 4.0, 10.0, 10.0))
    CGS, CGD, CBD, C9 = (gr.Parameter(v) for v in (0.6e-4, 0.6e-4, 2.4e-5, 0.5e-4))
    delta, saturation, VTH, VDD, VBB = (gr.Parameter(v) for v in (0.02, 1e-14, 25.85, 5.0, -2.5))
    STARTS = (5.0, 5.0, -2.5, -2.5, 5.0, 3.62385, 5.0, -2.5, -2.5, 3.62385, 0.0, 3.62385, -2.5, -2.5)
    y = gr.Variable(STARTS, size=14)

    @staticmethod
    def pulse(delay: float, top: float, period: float):
        phase = time - period * floor(time / period)
        return 5 * maximum(0, minimum(1, minimum((phase - delay) / 5, (delay + 10 + top - phase) / 5)))

    def channel(self, depletion: bool, vds, vgs, vbs, vgd, vbd):
        threshold, body, phi = (-2.43, 0.2, 1.28) if depletion else (0.2, 0.035, 1.01)
        forward, backward = (5.35e-4, 5.35e-4) if depletion else (1.748e-3, 1.748e-4)

        def current(gain, v, gate, bulk):
            on = gate - threshold - body * (sqrt(phi - bulk) - np.sqrt(phi))
            return gain * (1 + self.delta * v) * where(on <= 0, 0.0, where(on <= v, on**2, v * (2 * on - v)))

        return where(vds > 0, -current(forward, vds, vgs, vbs), current(backward, -vds, vgd, vbd))

    def diode(self, v):
        return where(v <= 0, -self.saturation * (exp(v / self.VTH) - 1), 0.0)

    def junction(self, v):
        return self.CBD * where(v <= 0, 1 / sqrt(1 - v / 0.87), 1 + v / (2 * 0.87))

    def equations(self):
        s, y, d = self, [None, *self.y], [None, *(der(v) for v in self.y)]
        V1, V2 = self.pulse(5.0, 5.0, 20.0), self.pulse(15.0, 15.0, 40.0)
        i1 = s.channel(True, y[2] - y[1], y[5] - y[1], y[3] - y[5], y[5] - y[2], y[4] - s.VDD)
        i2 = s.channel(False, y[7] - y[6], V1 - y[6], y[8] - y[10], V1 - y[7], y[9] - y[5])
        i3 = s.channel(False, y[12] - y[11], V2 - y[11], y[13], V2 - y[12], y[14] - y[10])
        q3, q9 = s.junction(y[3] - y[5]) * (d[3] - d[5]), s.junction(y[9] - y[5]) * (d[9] - d[5])
        q8, q14 = s.junction(y[8] - y[10]) * (d[8] - d[10]), s.junction(y[14] - y[10]) * (d[14] - d[10])
        b3, b9, b8, b14 = (s.diode(y[i] - y[j]) for i, j in ((3, 5), (9, 5), (8, 10), (14, 10)))
        q1, q2 = s.CGS * (d[1] - d[5]), s.CGD * (d[2] - d[5])
        yield q1 == -(y[1] - y[5]) / s.RGS - i1
        yield q2 == -(y[2] - s.VDD) / s.RGD + i1
        yield q3 == -(y[3] - s.VBB) / s.RBS + b3
        yield s.junction(y[4] - s.VDD) * d[4] == -(y[4] - s.VBB) / s.RBD + s.diode(y[4] - s.VDD)
        yield s.C9 * d[5] - q1 - q2 - q3 - q9 == -(y[5] - y[1]) / s.RGS - b3 - (y[5] - y[7]) / s.RGD - b9
        yield s.CGS * (d[6] - der(V1)) == -(y[6] - y[10]) / s.RGS - i2
        yield s.CGD * (d[7] - der(V1)) == -(y[7] - y[5]) / s.RGD + i2
        yield q8 == -(y[8] - s.VBB) / s.RBS + b8
        yield q9 == -(y[9] - s.VBB) / s.RBD + b9
        yield s.C9 * d[10] - q8 - q14 == -(y[10] - y[6]) / s.RGS - b8 - (y[10] - y[12]) / s.RGD - b14
        yield s.CGS * (d[11] - der(V2)) == -y[11] / s.RGS - i3
        yield s.CGD * (d[12] - der(V2)) == -(y[12] - y[10]) / s.RGD + i3
        yield s.junction(y[13]) * d[13] == -(y[13] - s.VBB) / s.RBS + s.diode(y[13])
        yield q14 == -(y[14] - s.VBB) / s.RBD + b14


class ChargePump(gr.Model):
    """Two capacitors and a MOS transistor given by its charges; the source's current is a derivative: index 2."""

    CD, CS, Cox, threshold, body, phi = (gr.Parameter(v) for v in (0.4e-12, 1.6e-12, 4e-12, 0.2, 0.035, 1.01))
    QG, YS, QS, YD, QD = (gr.Variable(nominal=1e-12) for _ in range(5))
    U1, U2, U3, current = gr.Variable(), gr.Variable(), gr.Variable(), gr.Variable(nominal=1e-4)
    tau = 1e9 * time - 120 * floor(1e9 * time / 120)
    source = where(tau < 50, 0.0, where(tau < 60, 2 * (tau - 50), where(tau < 110, 20.0, 2 * (120 - tau))))
    flat = threshold - body * sqrt(phi) - phi

    def equations(self):
        s, root = self, sqrt(self.phi + self.U2)
        on = s.threshold + s.body * (root - sqrt(s.phi))
        source, drain = s.U1 - s.U2 - on, maximum(s.U1 - s.U3 - on, 0)
        both = where(source > 0, source + drain, 1.0)
        channel = s.Cox * 2 / 3 * (source + drain - source * drain / both)
        depleted = s.Cox * s.body * (sqrt(maximum((s.body / 2) ** 2 + s.U1 - s.flat, 1e-12)) - s.body / 2)
        gate = where(source <= 0, depleted, channel + s.Cox * s.body * root)
        yield der(s.QG) == -s.current
        yield der(s.YS) + der(s.QS) == 0
        yield der(s.YD) + der(s.QD) == 0
        yield s.U1 == s.source
        yield s.QG == where(s.U1 <= s.flat, s.Cox * (s.U1 - s.flat), gate)
        yield s.YS == s.CS * s.U2
        yield s.YD == s.CD * s.U3
        for charge in (s.QS, s.QD):
            yield charge == where((s.U1 <= s.flat) | (source <= 0), 0.0, -0.5 * channel)


class WaterTubes(gr.Model):
    """Eighteen pipes between thirteen nodes, two of which have a buffer: index 2."""

    nu, g, rho, critical = (gr.Parameter(v) for v in (1.31e-6, 9.8, 1e3, 2.3e3))
    length, k, d, b = (gr.Parameter(v) for v in (1e3, 2e-4, 1.0, 2e2))
    PIPES = (
        (1, 2), (2, 3), (2, 6), (3, 4), (3, 5), (4, 5), (5, 10), (6, 5), (7, 4), (7, 8), (8, 5), (8, 10), (9, 8),
        (11, 9), (11, 12), (12, 7), (12, 8), (13, 11),
    )  # fmt: skip
    flow = gr.Variable((0.0,) * 18, size=18, nominal=1e-3)
    resistance = gr.Variable((0.047519404529185289807,) * 18, size=18)
    p = gr.Variable((109800.0,) * 13, size=13, nominal=1e5)
    area = np.pi * d**2 / 4
    hours = time / 3600

    def equations(self):
        s, p = self, [None, *self.p]
        inlet = 1 - cos(exp(-s.hours) - 1)
        net = [0, inlet / 200, *[0] * 11, inlet / 80]
        net[10] = -(s.hours**2) * (3 * s.hours**2 - 92 * s.hours + 720) / 1e6
        for (i, j), f, r in zip(s.PIPES, s.flow, s.resistance, strict=True):
            reynolds = abs(f * s.d / (s.nu * s.area))
            rough = where(reynolds > s.critical, reynolds, s.critical) * sqrt(r)
            yield 0 == 1 / sqrt(r) - 1.74 + 2 * log10(2 * s.k / s.d + 18.7 / rough)
            turbulent = r * s.rho * s.length * f**2 / (s.area**2 * s.d)
            laminar = 32 * s.nu * s.rho * s.length * f / (s.area * s.d**2)
            yield s.rho * s.length / s.area * der(f) == p[i] - p[j] - where(reynolds > s.critical, turbulent, laminar)
            net[i], net[j] = net[i] - f, net[j] + f
        for node in range(1, 14):
            yield net[node] == (s.b / (s.rho * s.g) * der(p[node]) if node in (5, 8) else 0)


class Wheelset(gr.Model):
    """Two conical wheels on round rails, with creep forces at both contacts, on a straight track: index 2."""

    M, V, R0, I1, I2, mu = (gr.Parameter(v) for v in (16.08, 30.0, 0.1, 0.0605, 0.366, 0.12))
    XL, CX, CZ = gr.Parameter(0.19), gr.Parameter(6400.0), gr.Parameter(6400.0)
    E, G, sigma, GM = (gr.Parameter(v) for v in (1.3537956, 0.7115218, 0.28, 7.92e10))
    C11, C22, C23 = (gr.Parameter(v) for v in (4.72772197, 4.27526987, 1.97203505))
    cone, AR, RS, g = (gr.Parameter(v) for v in (0.0262, 0.1506, 0.06, 9.81))
    x, th, ph = gr.Variable(0.14941e-2), gr.Variable(-0.28573e-3), gr.Variable(0.26459e-3)
    y, z = gr.Variable(0.40089e-6, nominal=1e-4), gr.Variable(0.11241e-5, nominal=1e-4)
    vx, vy, vz, vth, vph, beta = (gr.Variable(0.0) for _ in range(6))
    psi_l, xi_l = gr.Variable(7.5634406395172940e-06), gr.Variable(0.1490635714733819)
    psi_r, xi_r = gr.Variable(-7.4122380357667139e-06), gr.Variable(-0.1521364296121248)
    e1, e2 = gr.Variable(-8.3593e-3), gr.Variable(-7.4144e-3)

    def geometry(self, side: int, xi, psi) -> dict[str, Any]:
        """Profiles at a contact (side +1 left, -1 right), the row of the constraint matrix, the angle of contact."""
        s, st, ct, sp, cp = self, sin(self.th), cos(self.th), sin(self.ph), cos(self.ph)
        ss, cs, slope = sin(psi), cos(psi), -side * gr.tan(s.cone)
        R = s.R0 + gr.tan(s.cone) * (s.AR - side * xi)
        off = side * (s.x + xi * ct * cp + R * (ct * sp * cs - st * ss)) - s.AR - sin(s.cone) * s.RS
        root = sqrt(s.RS**2 - off**2)
        rail = -side * off / root
        row = [
            rail, -1, 0, rail * (-R * (ct * ss + cs * sp * st) - cp * st * xi),
            -cs * R * sp - cp * xi + rail * (cp * cs * ct * R - ct * sp * xi),
        ]  # fmt: skip
        normal = ((slope * cp - sp * cs) * ct + ss * st) / (slope * sp + cs * cp)
        return {
            "side": side, "xi": xi, "psi": psi, "R": R, "slope": slope, "row": row, "angle": atan(-side * normal),
            "curvature": s.RS**2 / root**3 / (1 + rail**2) ** 1.5,
            "contact": [
                rail * (slope * sp + cp * cs) + slope * ct * cp - ct * sp * cs + st * ss,
                slope * st * cp - st * sp * cs - ct * ss,
            ],
        }  # fmt: skip

    def creep(self, c: dict[str, Any], load):
        """Forces in the contact plane by Kalker's linear theory, limited by friction."""
        s, R, xi, side, spin = self, c["R"], c["xi"], c["side"], self.V / self.R0 + self.beta
        sd, cd = sin(c["angle"]), cos(c["angle"])
        st, ct, sp, cp, ss, cs = sin(s.th / cd), cos(s.th / cd), sin(s.ph), cos(s.ph), sin(c["psi"]), cos(c["psi"])
        radius = 0.5 / (R * sqrt(1 + c["slope"] ** 2)) + 0.5 * c["curvature"]
        patch = (3 * abs(load) * (1 - s.sigma) * s.E / (2 * 3.1415926 * radius * s.GM * sqrt(s.G))) ** (1 / 3)
        across = R * (st * sp * cs + ct * ss) + xi * st * cp
        along = xi * ct * cp + R * (ct * sp * cs - st * ss)
        arm = xi * sp - R * cp * cs
        rolling = [-spin * R * (st * cs + ct * sp * ss) - s.vth * across - s.vph * ct * arm,
                   spin * R * cp * ss + s.vph * (xi * cp + R * sp * cs),
                   -spin * R * (ct * cs - st * sp * ss) - s.vth * along + s.vph * st * arm]  # fmt: skip
        gliding = [s.vx, s.vy, s.V + s.vz]
        k1, k2, k3 = (a + b for a, b in zip(rolling, gliding, strict=True))
        mean = 0.5 * sqrt(sum((a - b) ** 2 for a, b in zip(rolling, gliding, strict=True)))
        limit = s.mu * load
        fx = -limit * tanh(s.GM * patch**2 * s.C11 * (st * k1 + ct * k3) / mean / limit)
        turn = patch * s.C23 * (cd * s.vth - side * sd * spin)
        lateral = s.C22 * (ct * cd * k1 + side * sd * k2 - st * cd * k3) + turn
        fy = -limit * tanh(s.GM * patch**2 * lateral / mean / limit)
        total = sqrt(fx**2 + fy**2)
        fx, fy = (f * where(total > abs(limit), abs(limit) / total, 1.0) for f in (fx, fy))
        return st * fx + ct * cd * fy, side * sd * fy, ct * fx - st * cd * fy

    def moments(self, c: dict[str, Any], f):
        s, R, xi, ss, cs = self, c["R"], c["xi"], sin(c["psi"]), cos(c["psi"])
        st, ct, sp, cp = sin(s.th), cos(s.th), sin(s.ph), cos(s.ph)
        return np.array([
            -(xi * st + R * ss * ct * cp) * f[0] - R * ss * sp * f[1] + (R * ss * st * cp - xi * ct) * f[2],
            (R * cs * cp - xi * sp) * (ct * f[0] - st * f[2]) + (xi * cp + R * cs * sp) * f[1],
            R * ss * cp * f[1] - R * (cs * st + ss * ct * sp) * f[0] - R * (cs * ct - ss * st * sp) * f[2],
        ], dtype=object)  # fmt: skip

    def equations(self):
        s, left, right = self, self.geometry(1, self.xi_l, self.psi_l), self.geometry(-1, self.xi_r, self.psi_r)
        e1, e2, al, ar = 1e4 * s.e1, 1e4 * s.e2, left["angle"], right["angle"]
        Q = [a * e1 + b * e2 for a, b in zip(left["row"], right["row"], strict=True)]
        TL = self.creep(left, -(cos(ar) * Q[0] - sin(ar) * Q[1]) / sin(al + ar))
        TR = self.creep(right, (cos(al) * Q[0] + sin(al) * Q[1]) / sin(al + ar))
        T, (m1, m2, m3) = [a + b for a, b in zip(TL, TR, strict=True)], self.moments(left, TL) + self.moments(right, TR)
        sp, cp, spin, spring = sin(s.ph), cos(s.ph), s.V / s.R0 + s.beta, -2 * s.XL**2 * s.CZ * s.th
        velocity = [s.vx, s.vy, s.vz, s.vth, s.vph]
        yield from (der(a) == b for a, b in zip((s.x, s.y, s.z, s.th, s.ph), velocity, strict=True))
        yield s.M * der(s.vx) == T[0] + Q[0] - 2 * s.CX * s.x
        yield s.M * der(s.vy) == T[1] + Q[1] - s.M * s.g
        yield s.M * der(s.vz) == T[2] - 2 * s.CZ * s.z
        swing = s.vth * s.vph * sp
        yield s.I2 * (cp * der(s.vth) - swing) == -s.I1 * spin * s.vph - (s.I1 - s.I2) * swing + m1 + cp * spring + Q[3]
        yield s.I2 * der(s.vph) == (s.I1 * spin + (s.I1 - s.I2) * s.vth * sp) * s.vth * cp + m2 + Q[4]
        yield s.I1 * (sp * der(s.vth) + der(s.beta) + s.vth * s.vph * cp) == m3 + sp * spring
        for c in (left, right):
            yield 0 == sum(a * b for a, b in zip(c["row"], velocity, strict=True))
            yield from (0 == condition for condition in c["contact"])


class Robot(gr.Model):
    """A two-link arm with a flexible joint and a prescribed path: index 5, which counting derivatives alone misses."""

    k = gr.Parameter(1.0)
    x1, x2, x3 = gr.Variable(0.0), gr.Variable(), gr.Variable(1.0)
    x4, x5, x6, u1, u2 = (gr.Variable() for _ in range(5))

    def equations(self):
        x1, x2, x3, x4, x5, x6 = self.x1, self.x2, self.x3, self.x4, self.x5, self.x6
        u1, u2, n = self.u1, self.u2, 2 - cos(self.x3) ** 2
        a, b, c, d = 2 / n, cos(x3) / n, sin(x3) / n, cos(x3) * sin(x3) / n
        turning = 2 * c * (x4 + x6) ** 2 + d * x4**2
        yield from (der(x1) == x4, der(x2) == x5, der(x3) == x6)
        yield der(x4) == turning + (2 * x3 - x2) * (a + 2 * b) + a * (u1 - u2)
        yield der(x5) == -turning + (2 * x3 - x2) * (1 - 3 * a - 2 * b) - a * u1 + (a + 1) * u2
        inner = -2 * c * x4**2 - d * (x4 + x6) ** 2
        yield der(x6) == -turning + (2 * x3 - x2) * (a - 9 * b) + inner - (a + b) * (u1 - u2)
        yield cos(x1) + cos(x1 + x3) == cos(1 - exp(self.k * time)) + cos(1 - time)
        yield sin(x1) + sin(x1 + x3) == sin(1 - exp(self.k * time)) + sin(1 - time)


class E5(gr.Model):
    """Four species whose amounts span eight decades at once, over eighteen decades of time."""

    A, B, C, M = (gr.Parameter(v) for v in (7.89e-10, 1.1e7, 1.13e3, 1e6))
    y1 = gr.Variable(1.76e-3, nominal=1e-3)
    y2, y3, y4 = (gr.Variable(0.0, nominal=1e-18) for _ in range(3))
    equations = [
        der(y1) == -A * y1 - B * y1 * y3,
        der(y2) == A * y1 - M * C * y2 * y3,
        der(y4) == B * y1 * y3 - C * y4,
        der(y3) == der(y2) - der(y4),
    ]


class Arenstorf(gr.Model):
    """A satellite on a closed orbit around the earth and close to the moon."""

    PERIOD = 17.0652165601579625588917206249
    mu = gr.Parameter(0.012277471)
    x, y, vx, vy = gr.Variable(0.994), gr.Variable(0.0), gr.Variable(0.0), gr.Variable(-2.00158510637908252240537862224)
    earth = (1 - mu) / ((x + mu) ** 2 + y**2) ** 1.5
    moon = mu / ((x - 1 + mu) ** 2 + y**2) ** 1.5
    equations = [
        der(x) == vx,
        der(y) == vy,
        der(vx) == x + 2 * vy - earth * (x + mu) - moon * (x - 1 + mu),
        der(vy) == y - 2 * vx - (earth + moon) * y,
    ]


def chain(n: int) -> type[gr.Model]:
    """n pendulums hanging from each other, in Cartesian coordinates, dropped from the horizontal: index 3."""

    class Chain(gr.Model):
        g, m, length = gr.Parameter(9.81), gr.Parameter(1.0), gr.Parameter(1.0)
        x, y = gr.Variable(tuple(range(1, n + 1)), size=n), gr.Variable((0.0,) * n, size=n)
        u, v = gr.Variable((0.0,) * n, size=n), gr.Variable((0.0,) * n, size=n)
        pull = gr.Variable(size=n)

        def equations(self):
            dx, dy = np.diff([0, *self.x]), np.diff([0, *self.y])
            for i in range(n):
                down = (self.pull[i + 1] * dx[i + 1], self.pull[i + 1] * dy[i + 1]) if i < n - 1 else (0, 0)
                yield der(self.x[i]) == self.u[i]
                yield der(self.y[i]) == self.v[i]
                yield self.m * der(self.u[i]) == down[0] - self.pull[i] * dx[i]
                yield self.m * der(self.v[i]) == down[1] - self.pull[i] * dy[i] - self.m * self.g
                yield dx[i] ** 2 + dy[i] ** 2 == self.length**2

    return Chain


def medical_akzo(n: int) -> type[gr.Model]:
    """Penetration of antibodies into tissue, a reaction-diffusion equation on n cells with a jump at t = 5."""

    class MedicalAkzo(gr.Model):
        k, c = gr.Parameter(100.0), gr.Parameter(4.0)
        u, v = gr.Variable((0.0,) * n, size=n), gr.Variable((1.0,) * n, size=n)

        def equations(self):
            z = np.arange(1, n + 1) / n
            u = np.concatenate([[where(time <= 5, 2.0, 0.0)], self.u, [self.u[-1]]])
            drift, diffusion = 2 * (z - 1) ** 3 / self.c**2, (z - 1) ** 4 / self.c**2
            reaction = self.k * self.u * self.v
            transport = drift * (u[2:] - u[:-2]) * (n / 2) + diffusion * (u[2:] - 2 * u[1:-1] + u[:-2]) * n**2
            yield der(self.u) == transport - reaction
            yield der(self.v) == -reaction

    return MedicalAkzo


def ring_modulator(capacity: float, bias: float = 0.0, carrier: float = 2.0) -> type[gr.Model]:
    """Four diodes between two transformers; without the capacities beside the diodes of index 2.

    The diodes' currents then are algebraic equations of y[2] … y[5] whose sum says y[9] + y[10] + y[11] + y[12] = 0.

    bias : a voltage added to the carrier, which moves all diodes away from zero
    """

    class RingModulator(gr.Model):
        y = gr.Variable((0.0,) * 15, size=15, nominal=[1.0] * 7 + [1e-6] * 2 + [1e-3] * 6)

        def equations(self):
            y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15 = self.y
            signal, u = 0.5 * sin(2000 * np.pi * time), carrier * sin(20000 * np.pi * time) + bias
            voltages = (y3 - y5 - y7 - u, -y4 + y6 - y7 - u, y4 + y5 + y7 + u, -y3 - y6 + y7 + u)
            q1, q2, q3, q4 = (40.67286402e-9 * (exp(17.7493332 * v) - 1) for v in voltages)
            into = (y10 - q1 + q4, -y11 + q2 - q3, y12 + q1 - q3, -y13 - q2 + q4)
            for node, current in zip((y3, y4, y5, y6), into, strict=True):
                yield (capacity * der(node) if capacity else 0) == current
            yield 1.6e-8 * der(y1) == y8 - 0.5 * y10 + 0.5 * y11 + y14 - y1 / 25e3
            yield 1.6e-8 * der(y2) == y9 - 0.5 * y12 + 0.5 * y13 + y15 - y2 / 25e3
            yield 1e-8 * der(y7) == -y7 / 50 + q1 + q2 - q3 - q4
            yield 4.45 * der(y8) == -y1
            yield 4.45 * der(y9) == -y2
            yield 5e-4 * der(y10) == 0.5 * y1 - y3 - 17.3 * y10
            yield 5e-4 * der(y11) == -0.5 * y1 + y4 - 17.3 * y11
            yield 5e-4 * der(y12) == 0.5 * y2 - y5 - 17.3 * y12
            yield 5e-4 * der(y13) == -0.5 * y2 + y6 - 17.3 * y13
            yield 2e-3 * der(y14) == -y1 + signal - (50 + 36.3) * y14
            yield 2e-3 * der(y15) == -y2 - (600 + 36.3) * y15

    return RingModulator


RING = (
    -0.023399134632, -0.00737488258707, 0.323424822744, -0.341313540129, -0.338811830904, 0.325926531969,
    0.110674476711, 2.93990976384e-07, -2.83881802637e-08, 7.26084728866e-04, 7.93516280816e-04, -7.26084730071e-04,
    -7.93516279611e-04, 7.08782118150e-05, 2.38980820247e-05,
)  # fmt: skip
"""Without capacities, at 1 ms: by the three-stage Radau method with 80 000 steps and y[12] and y[5] eliminated by hand;
with 40 000 steps the relative differences are at most 2e-11."""


@dataclass(frozen=True)
class Problem:
    """A model, what ``analyze`` must find, and the values at the end."""

    name: str
    model: type[gr.Model]
    end: float
    index: int
    freedom: int
    reference: dict[str, float]
    digits: float
    """Significant correct digits that rtol 1e-7 must give."""
    differentiate_by: str = ""


def numbered(name: str, values: tuple[float, ...]) -> dict[str, float]:
    return {f"{name}[{k}]": v for k, v in enumerate(values)}


ANDREWS = (
    15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948, 0.5244099658805304,
    0.5347301163226948, 1.048080741042263,
)  # fmt: skip
CRANK = (
    15.0, -0.3311734988256260, 0.1697373328427860, 0.1893192899613509e-3, 0.2375751249879174e-4,
    -0.5323896770569702e-5, -0.8363313279112129e-5,
)  # fmt: skip
NAND = (
    4.971088699385777, 4.999752103929311, -2.499998781491227, -2.499999999999975, 4.970837023296724,
    -0.2091214032073855, 4.970593243278363, -2.500077409198803, -2.499998781491227, -0.2090289583878100,
    -0.2399999999966269e-3, -0.2091214032073855, -2.499999999999991, -2.500077409198803,
)  # fmt: skip
TUBES = {
    "flow[0]": 0.2298488296477430e-2, "flow[3]": 0.1589620100314825e-3, "flow[17]": 0.5746220741193575e-2,
    "resistance[6]": 0.4311196778792902e-1, "resistance[17]": 0.3651427026675656e-1, "p[0]": 0.1111271078730254e6,
}  # fmt: skip
WHEELS = {
    "x": 0.86355386965811e-2, "y": 0.13038281022727e-4, "z": -0.93635784016818e-4, "th": -0.13642299804033e-1,
    "ph": 0.15292895005422e-2, "vx": -0.76985374142666e-1, "vth": -0.23904837703692, "beta": -0.24421377661131,
    "psi_l": 0.37839614386969e-3, "xi_l": 0.14173214964613, "xi_r": -0.15949425684022, "e1": -0.10124044903201e-1,
}  # fmt: skip
ARENSTORF = {"x": 0.994, "vy": -2.00158510637908252240537862224}

PROBLEMS = (
    Problem("andrews", Andrews, 0.03, 3, 2, numbered("q", ANDREWS), 6.0),
    Problem("crank", FlexibleCrank, 0.1, 3, 8, numbered("p", CRANK), 4.5),
    Problem("nand", Nand, 80.0, 0, 14, numbered("y", NAND), 4.0),
    Problem("pump", ChargePump, 1.2e-6, 2, 2, {"QG": 0.1262800429876759e-12}, 7.0),
    Problem("ring", ring_modulator(0.0), 1e-3, 2, 10, numbered("y", RING), 5.5),
    Problem("tubes", WaterTubes, 17 * 3600.0, 2, 9, TUBES, 4.0),
    Problem("wheelset", Wheelset, 10.0, 2, 9, WHEELS, 4.5),
    Problem("e5", E5, 1e13, 0, 4, {"y2": 0.8867655517642120e-22, "y3": 0.8854814626268838e-22}, 2.5, "A"),
    Problem("arenstorf", Arenstorf, Arenstorf.PERIOD, 0, 4, ARENSTORF, 4.5, "mu"),
)
