"""Starts that are found from piece to piece, and where unknowns differ by many powers of ten."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, where


def volts(s: object) -> object:
    return s * where(s < 0, 1, 1e-5)


def amperes(s: object) -> object:
    return s * where(s < 0, 1e-5, 1)


class Bridge(gr.Model):
    """Six ideal diodes between three voltages and a resistor that floats."""

    phase = gr.Parameter(0.0)
    x, i, top, bottom = gr.Variable(0.0), gr.Variable(), gr.Variable(), gr.Variable()
    u, v, w, a, b, c, d, e, f = (gr.Variable() for _ in range(9))
    equations = [
        der(x) == i - x, top - bottom == 100 * i,
        u == 311 * gr.sin(phase), v == 311 * gr.sin(phase + 2.0944), w == 311 * gr.sin(phase + 4.18879),
        u - top == volts(a), v - top == volts(b), w - top == volts(c),
        bottom - u == volts(d), bottom - v == volts(e), bottom - w == volts(f),
        i == amperes(a) + amperes(b) + amperes(c), i == amperes(d) + amperes(e) + amperes(f),
    ]  # fmt: skip


@pytest.mark.parametrize("phase", [0.1, 2.5, 4.0])
def test_a_bridge_of_diodes_starts_at_any_phase(phase: float) -> None:
    run = gr.simulate(Bridge(), [0.0, 1e-3], parameters={"phase": phase})
    v = 311 * np.sin(phase + np.array([0.0, 2.0944, 4.18879]))
    assert run["i"].values[0] == pytest.approx(np.ptp(v) / 100, rel=1e-2)


class Core(gr.Model):
    """A coil on iron that saturates: reluctances of a million, permeances of a millionth, and the current demanded."""

    i0 = gr.Parameter(0.2)
    phi, B, G, Rm, mu, i = (*(gr.Variable() for _ in range(5)), gr.Variable(start=i0, fixed=True))
    equations = [
        600 * der(phi) == -7.5 * i, B == phi / 6.25e-4, mu == 1 + 20000 / (1 + abs(B / 0.7) ** 9),
        G == 1.2566e-6 * mu * 6.25e-4 / 0.26, Rm == 1 / G, 600 * i == phi * Rm + phi * 1.2e5,
    ]  # fmt: skip


@pytest.mark.parametrize("current", [0.2, 20.0])
def test_a_saturated_core_starts_at_its_current(current: float) -> None:
    run = gr.simulate(Core(), [0.0, 1e-3], parameters={"i0": current})
    phi, rm = run["phi"].values[0], run["Rm"].values[0]
    assert run["i"].values[0] == pytest.approx(current, abs=1e-12)
    assert 600 * current == pytest.approx(phi * (rm + 1.2e5), abs=1e-6)
