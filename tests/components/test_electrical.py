"""Circuits with known answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from components.running import largest_error, run
from scipy.linalg import expm
from scipy.special import lambertw
from zoo.ivp_test_set import TransistorAmplifier

import grisaille as gr
from grisaille.components.electrical import (
    NMOS,
    NPN,
    PMOS,
    PNP,
    Capacitor,
    ConstantCurrent,
    ConstantVoltage,
    CurrentSource,
    Diode,
    Ground,
    Inductor,
    OpAmp,
    Resistor,
    SineVoltage,
    StepCurrent,
    StepVoltage,
    Transformer,
    TrapezoidVoltage,
    VoltageSource,
)


class Lowpass(gr.Model):
    source, r, c, ground = VoltageSource(), Resistor(R=1e3), Capacitor(C=1e-6), Ground()
    equations = [gr.connect(source.p, r.p), gr.connect(r.n, c.p), gr.connect(c.n, source.n, ground.p)]


def test_lowpass_charges_exponentially() -> None:
    times = np.linspace(0, 5e-3, 21)
    result = run(Lowpass(), times, inputs={"source.u": 2.0})
    assert largest_error(result["c.v"], 2 * (1 - np.exp(-times / 1e-3))) < 1e-9
    assert largest_error(result["source.i"], -2e-3 * np.exp(-times / 1e-3)) < 1e-9


def test_lowpass_starts_where_it_is_told() -> None:
    times = np.linspace(0, 2e-3, 5)
    model = Lowpass(c=Capacitor(C=1e-6, start={"v": 1.5}))
    result = run(model, times, inputs={"source.u": 0.0})
    assert largest_error(result["c.v"], 1.5 * np.exp(-times / 1e-3)) < 1e-9


class SeriesCircuit(gr.Model):
    """Source, resistor, inductor and capacitor in one loop."""

    source, r = StepVoltage(amplitude=5.0), Resistor(R=20.0)
    coil, c, ground = Inductor(L=0.1), Capacitor(C=1e-4), Ground()
    equations = [
        gr.connect(source.p, r.p),
        gr.connect(r.n, coil.p),
        gr.connect(coil.n, c.p),
        gr.connect(c.n, source.n, ground.p),
    ]


def test_series_circuit_rings_as_the_closed_form_says() -> None:
    times = np.linspace(0, 0.05, 51)
    result = run(SeriesCircuit(), times)
    a, w0 = 20.0 / (2 * 0.1), 1 / np.sqrt(0.1 * 1e-4)
    wd = np.sqrt(w0**2 - a**2)
    exact = 5 * (1 - np.exp(-a * times) * (np.cos(wd * times) + a / wd * np.sin(wd * times)))
    current = 5 / (0.1 * wd) * np.exp(-a * times) * np.sin(wd * times)
    assert largest_error(result["c.v"], exact) < 1e-8
    assert largest_error(result["coil.i"], current) < 1e-8


def test_step_holds_from_its_delay_on() -> None:
    class Divider(gr.Model):
        source, r, ground = StepVoltage(amplitude=2.0, offset=1.0, delay=0.5), Resistor(R=2.0), Ground()
        equations = [gr.connect(source.p, r.p), gr.connect(source.n, r.n, ground.p)]

    result = run(Divider(), [0.0, 0.25, 0.5, 1.0])
    np.testing.assert_allclose(result["r.i"], [0.5, 0.5, 1.5, 1.5])


def test_trapezoid_is_piecewise_linear_and_periodic() -> None:
    class Pulses(gr.Model):
        source = TrapezoidVoltage(amplitude=5.0, rise=1.0, width=2.0, fall=0.5, period=5.0, delay=1.0, offset=-1.0)
        r, ground = Resistor(R=1.0), Ground()
        equations = [gr.connect(source.p, r.p), gr.connect(source.n, r.n, ground.p)]

    times = np.array([0.0, 1.0, 1.5, 2.0, 3.9, 4.25, 4.5, 5.9, 6.5, 9.25, 10.0])
    knots, levels = [0, 1, 2, 4, 4.5, 6, 7, 9, 9.5, 10], [0, 0, 5, 5, 0, 0, 5, 5, 0, 0]
    np.testing.assert_allclose(run(Pulses(), times)["r.v"], np.interp(times, knots, levels) - 1, atol=1e-12)


def test_sine_voltage_drives_a_coil() -> None:
    class Coil(gr.Model):
        source = SineVoltage(amplitude=10.0, frequency=50.0, phase=np.pi / 2)
        coil, ground = Inductor(L=0.2), Ground()
        equations = [gr.connect(source.p, coil.p), gr.connect(source.n, coil.n, ground.p)]

    times = np.linspace(0, 0.04, 33)
    w = 100 * np.pi
    assert largest_error(run(Coil(), times)["coil.i"], 10 / (0.2 * w) * np.sin(w * times)) < 1e-8


def test_current_flows_inside_the_source_from_p_to_n() -> None:
    class Loop(gr.Model):
        source, r, ground = CurrentSource(u=0.5), Resistor(R=4.0), Ground()
        equations = [gr.connect(source.n, r.p), gr.connect(source.p, r.n, ground.p)]

    result = run(Loop(), [0.0, 1.0])
    np.testing.assert_allclose(result["r.v"], 2.0)
    np.testing.assert_allclose(result["source.v"], -2.0)


@pytest.mark.parametrize("source", [ConstantCurrent(I=1e-3), StepCurrent(amplitude=1e-3)])
def test_constant_current_charges_a_capacitor_linearly(source: gr.Model) -> None:
    class Charging(gr.Model):
        source, c, ground = ConstantCurrent(I=1.0), Capacitor(C=1e-3, start={"v": -1.0}), Ground()
        equations = [gr.connect(source.n, c.p), gr.connect(source.p, c.n, ground.p)]

    times = np.linspace(0, 3, 7)
    assert largest_error(run(Charging(source=source), times)["c.v"], times - 1) < 1e-10


def test_transformer_scales_resistance_by_the_square_of_its_ratio() -> None:
    class Transformed(gr.Model):
        source, transformer, load = ConstantVoltage(V=12.0), Transformer(ratio=3.0), Resistor(R=8.0)
        ground = Ground()
        equations = [
            gr.connect(source.p, transformer.p1),
            gr.connect(transformer.p2, load.p),
            gr.connect(source.n, transformer.n1, transformer.n2, load.n, ground.p),
        ]

    result = run(Transformed(), [0.0, 1.0])
    np.testing.assert_allclose(result["load.v"], 4.0)
    np.testing.assert_allclose(-result["source.i"], 12.0 / (9 * 8.0))


class OpAmpIntegrator(gr.Model):
    """v_out = −1/(R C) ∫ v_in dt."""

    source, r, c, amp = VoltageSource(), Resistor(R=1e4), Capacitor(C=1e-6), OpAmp()
    load, ground = Resistor(R=1e3), Ground()
    equations = [
        gr.connect(source.p, r.p),
        gr.connect(r.n, c.p, amp.minus),
        gr.connect(c.n, amp.out, load.p),
        gr.connect(source.n, amp.plus, load.n, ground.p),
    ]


def test_op_amp_integrates_with_inverted_sign() -> None:
    times = np.linspace(0, 0.2, 41)
    result = run(OpAmpIntegrator(), times, inputs={"source.u": lambda t: np.sin(50 * t)})
    assert largest_error(result["load.v"], -(1 - np.cos(50 * times)) / 50 / 1e-2) < 1e-8


def test_inverting_amplifier_has_its_gain() -> None:
    class Inverting(gr.Model):
        source, r1, r2, amp, ground = VoltageSource(u=0.25), Resistor(R=1e3), Resistor(R=8e3), OpAmp(), Ground()
        equations = [
            gr.connect(source.p, r1.p),
            gr.connect(r1.n, r2.p, amp.minus),
            gr.connect(r2.n, amp.out),
            gr.connect(source.n, amp.plus, ground.p),
        ]

    np.testing.assert_allclose(run(Inverting(), [0.0, 1.0])["amp.out.v"], -2.0)


@pytest.mark.parametrize("voltage", [-5.0, 0.3, 0.7, 5.0, 400.0])
def test_diode_with_resistor_meets_the_lambert_function(voltage: float) -> None:
    """Also at 400 V, where exp(v/VT) at the first trial would overflow."""

    class Clamp(gr.Model):
        source, r, d, ground = ConstantVoltage(V=voltage), Resistor(R=100.0), Diode(G=0.0), Ground()
        equations = [gr.connect(source.p, r.p), gr.connect(r.n, d.p), gr.connect(d.n, source.n, ground.p)]

    result = run(Clamp(), [0.0, 1.0])
    a, n = 1e-14 * 100.0 / 0.025852, 0.025852
    current = n / 100.0 * lambertw(a * np.exp((voltage + 1e-12) / n)).real - 1e-14 if voltage < 10 else None
    if current is not None:
        np.testing.assert_allclose(result["d.i"], current, rtol=1e-9, atol=1e-16)
    i, v = float(result["d.i"][0]), float(result["d.v"][0])
    assert abs(v + 100 * i - voltage) < 1e-9
    assert abs(i - 1e-14 * np.expm1(v / n)) <= 1e-9 * abs(i) + 1e-16


def test_diode_characteristic_continues_by_its_tangent() -> None:
    class Measured(gr.Model):
        source, d, ground = VoltageSource(), Diode(Is=1.0, VT=1.0, G=0.0), Ground()
        equations = [gr.connect(source.p, d.p), gr.connect(source.n, d.n, ground.p)]

    volts = np.array([39.0, 40.0, 41.0, 1000.0])
    currents = [float(run(Measured(), [0.0, 1.0], inputs={"source.u": v})["d.i"][0]) for v in volts]
    expected = [np.expm1(39.0), np.expm1(40.0), 2 * np.exp(40.0), 961 * np.exp(40.0)]
    np.testing.assert_allclose(currents, expected, rtol=1e-12)


@pytest.mark.parametrize(("kind", "sign"), [(NPN, 1.0), (PNP, -1.0)])
def test_bipolar_currents(kind: type[gr.Model], sign: float) -> None:
    class Stage(gr.Model):
        base, supply, q, ground = ConstantVoltage(V=sign * 0.3), ConstantVoltage(V=sign * 5.0), kind(), Ground()
        equations = [
            gr.connect(base.p, q.b),
            gr.connect(supply.p, q.c),
            gr.connect(base.n, supply.n, q.e, ground.p),
        ]

    result = run(Stage(), [0.0, 1.0]).isel(time=0)
    g = sign * 1e-6 * np.expm1(0.3 / 0.026)
    np.testing.assert_allclose([result["q.c.i"], result["q.b.i"], result["q.e.i"]], [0.99 * g, 0.01 * g, -g])


@pytest.mark.parametrize(("kind", "sign"), [(NMOS, 1.0), (PMOS, -1.0)])
@pytest.mark.parametrize(
    ("gate", "drain", "current"),
    [
        (0.5, 3.0, 0.0),  # off
        (3.0, 1.0, 2e-3 * (2.0 * 1.0 - 0.5) * 1.02),  # triode
        (3.0, 5.0, 1e-3 * 2.0**2 * 1.10),  # saturation
        (3.0, -1.0, -1e-3 * (3.0**2 - 2.0**2) * 1.02),  # drain and source change places
    ],
)
def test_field_effect_currents(kind: type[gr.Model], sign: float, gate: float, drain: float, current: float) -> None:
    class Stage(gr.Model):
        vg, vd = ConstantVoltage(V=sign * gate), ConstantVoltage(V=sign * drain)
        m, ground = kind(K=2e-3, VT=1.0, lam=0.02), Ground()
        equations = [gr.connect(vg.p, m.g), gr.connect(vd.p, m.d), gr.connect(vg.n, vd.n, m.s, ground.p)]

    result = run(Stage(), [0.0, 1.0]).isel(time=0)
    np.testing.assert_allclose(float(result["m.d.i"]), sign * current, rtol=1e-12, atol=1e-15)
    assert float(result["m.g.i"]) == 0


class Inverter(gr.Model):
    """A complementary pair that discharges its load."""

    supply, gate = ConstantVoltage(V=5.0), TrapezoidVoltage(amplitude=5.0, rise=1e-9, width=1e-6, fall=1e-9, period=1.0)
    up, down = PMOS(K=1e-4, VT=1.0), NMOS(K=1e-4, VT=1.0)
    load, ground = Capacitor(C=1e-12, start={"v": 5.0}), Ground()
    equations = [
        gr.connect(supply.p, up.s),
        gr.connect(gate.p, up.g, down.g),
        gr.connect(up.d, down.d, load.p),
        gr.connect(supply.n, gate.n, down.s, load.n, ground.p),
    ]


def test_inverter_pulls_its_output_down() -> None:
    result = run(Inverter(), [0.0, 1e-9, 1e-6], rtol=1e-6, atol=1e-6)
    volts = result["load.v"].values
    assert volts[0] == 5.0 and volts[1] > 4.0 and abs(volts[2]) < 1e-3


class Amplifier(gr.Model):
    """The two-stage transistor amplifier of the IVP test set, built from parts."""

    signal = SineVoltage(amplitude=0.1, frequency=100.0)
    supply, ground = ConstantVoltage(V=6.0), Ground()
    r0, r = Resistor(R=1e3), gr.copies(Resistor(R=9e3), 9)
    c1, c2 = Capacitor(C=1e-6, start={"v": -3.0}), Capacitor(C=2e-6, start={"v": 3.0})
    c3, c4 = Capacitor(C=3e-6, start={"v": 3.0}), Capacitor(C=4e-6, start={"v": 3.0})
    c5 = Capacitor(C=5e-6, start={"v": 6.0})
    t1, t2 = NPN(), NPN()
    equations = [
        gr.connect(signal.p, r0.p),
        gr.connect(r0.n, c1.p),
        gr.connect(c1.n, r[0].p, r[1].p, t1.b),
        gr.connect(t1.e, r[2].p, c2.p),
        gr.connect(t1.c, r[3].p, c3.p),
        gr.connect(c3.n, r[4].p, r[5].p, t2.b),
        gr.connect(t2.e, r[6].p, c4.p),
        gr.connect(t2.c, r[7].p, c5.p),
        gr.connect(c5.n, r[8].p),
        gr.connect(supply.p, r[1].n, r[3].n, r[5].n, r[7].n),
        gr.connect(signal.n, supply.n, r[0].n, r[2].n, c2.n, r[4].n, r[6].n, c4.n, r[8].n, ground.p),
    ]


NODES = ("c1.p.v", "c1.n.v", "c2.v", "c3.p.v", "c3.n.v", "c4.v", "c5.p.v", "c5.n.v")


def test_amplifier_from_parts_equals_the_equations_of_the_test_set() -> None:
    times = np.linspace(0, 0.01, 6)
    parts = run(Amplifier(), times, rtol=1e-8, atol=1e-8)
    nodal = run(TransistorAmplifier(), times, rtol=1e-8, atol=1e-8)
    for i, node in enumerate(NODES):
        np.testing.assert_allclose(parts[node], nodal[f"y{i + 1}"], atol=2e-6)


def test_amplifier_from_parts_reaches_the_reference_end_point(reference_data: Path) -> None:
    rows = (reference_data / "dae_testset" / "reference_transistor.csv").read_text().split()[1:]
    expected = [float(row.split(",")[1]) for row in rows]
    result = gr.simulate(Amplifier(), [0.0, 0.2], rtol=1e-8, atol=1e-9).isel(time=-1)
    digits = -np.log10(np.abs([float(result[node]) / y - 1 for node, y in zip(NODES, expected, strict=True)]).max())
    assert digits > 5


def test_ladder_of_copies_equals_the_matrix_exponential() -> None:
    """Ten RC sections in an array of sub-models."""
    n = 10

    class Ladder(gr.Model):
        source, ground = ConstantVoltage(V=1.0), Ground()
        r, c = gr.copies(Resistor(R=1e3), n), gr.copies(Capacitor(C=1e-6), n)

        def equations(self):
            yield gr.connect(self.source.p, self.r[0].p)
            for k in range(n - 1):
                yield gr.connect(self.r[k].n, self.c[k].p, self.r[k + 1].p)
            yield gr.connect(self.r[n - 1].n, self.c[n - 1].p)
            yield gr.connect(self.source.n, self.ground.p, *(part.n for part in self.c))

    A = (np.diag([-2.0] * (n - 1) + [-1.0]) + np.eye(n, k=1) + np.eye(n, k=-1)) * 1e3
    times = np.linspace(0, 0.05, 6)
    final = run(Ladder(), times)[f"c[{n - 1}].v"]
    exact = [(np.ones(n) - expm(A * t) @ np.ones(n))[-1] for t in times]
    assert largest_error(final, exact) < 1e-8
