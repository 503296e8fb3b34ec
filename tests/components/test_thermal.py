"""Bodies that warm up and cool down, with known answers."""

from __future__ import annotations

import numpy as np
from components.running import largest_error, run
from scipy.linalg import expm

import grisaille as gr
from grisaille.components.thermal import (
    STEFAN_BOLTZMANN,
    Ambient,
    Conductance,
    HeatCapacity,
    PrescribedFlow,
    PrescribedTemperature,
    Radiation,
)


class House(gr.Model):
    """Room and wall as two capacities, heated, losing to a changing outside."""

    room, wall = HeatCapacity(C=2e5), HeatCapacity(C=4e6, start={"T": 285.0})
    inner, outer = Conductance(G=150.0), Conductance(G=80.0)
    heater, outside = PrescribedFlow(), PrescribedTemperature()
    equations = [
        gr.connect(heater.port, room.port, inner.a),
        gr.connect(inner.b, wall.port, outer.a),
        gr.connect(outer.b, outside.port),
    ]


def test_two_capacities_equal_the_matrix_exponential() -> None:
    times = np.linspace(0, 1e5, 21)
    result = run(House(), times, inputs={"heater.u": 1500.0, "outside.u": 273.15})
    A = np.array(
        [[-150.0 / 2e5, 150.0 / 2e5, 1500.0 / 2e5], [150.0 / 4e6, -230.0 / 4e6, 80.0 * 273.15 / 4e6], [0, 0, 0]]
    )
    exact = np.array([expm(A * t) @ [293.15, 285.0, 1.0] for t in times])
    assert largest_error(result["room.T"], exact[:, 0]) < 1e-9
    assert largest_error(result["wall.T"], exact[:, 1]) < 1e-9
    assert largest_error(result["outer.Q"], 80.0 * (exact[:, 1] - 273.15)) < 1e-8


def test_steady_state_on_request() -> None:
    result = run(House(), [0.0, 10.0], inputs={"heater.u": 1500.0, "outside.u": 273.15}, start="steady")
    np.testing.assert_allclose(result["wall.T"], 273.15 + 1500.0 / 80.0, rtol=1e-12)
    np.testing.assert_allclose(result["room.T"], 273.15 + 1500.0 / 80.0 + 1500.0 / 150.0, rtol=1e-12)


def test_radiation_into_the_cold_follows_the_cube_law() -> None:
    class Probe(gr.Model):
        body, surface, space = HeatCapacity(C=500.0, start={"T": 600.0}), Radiation(A=0.2), Ambient(T=0.0)
        equations = [gr.connect(body.port, surface.a), gr.connect(surface.b, space.port)]

    times = np.linspace(0, 5000, 11)
    exact = (600.0**-3 + 3 * 0.2 * STEFAN_BOLTZMANN / 500.0 * times) ** (-1 / 3)
    assert largest_error(run(Probe(), times)["body.T"], exact) < 1e-8


def test_bodies_in_contact_share_their_heat() -> None:
    """Two capacities at one port have one temperature."""

    class Contact(gr.Model):
        a, b, heater = HeatCapacity(C=100.0), HeatCapacity(C=300.0), PrescribedFlow(u=8.0)
        equations = [gr.connect(a.port, b.port, heater.port)]

    assert gr.analyze(Contact()).degrees_of_freedom == 1
    times = np.linspace(0, 10, 5)
    assert largest_error(run(Contact(), times)["b.T"], 293.15 + 8.0 / 400.0 * times) < 1e-12
