"""What a system says that it has."""

from __future__ import annotations

import grisaille as gr
from grisaille import der
from grisaille.structure import structure_of


class Plain(gr.Model):
    k, h = gr.Parameter(0.5), gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.lowpass(3.0))
    equations = [der(h) == w - k * h]


class Everything(gr.Model):
    k, tau, later = gr.Parameter(0.5), gr.Parameter(0.3), gr.Parameter(2.0)
    u, h, x = gr.Input(), gr.Variable(1.0), gr.Variable(0.0)
    equations = [
        der(h) == gr.delay(u, tau) + gr.where(gr.time < later, 1.0, 2.0) - k * h,
        der(x) == gr.delay(h, 0.4) - x,
    ]


class Rough(gr.Model):
    h, v, w = gr.Variable(1.0), gr.Variable(0.0), gr.Disturbance(gr.spectra.matern32(1.0))
    equations = [v == der(w), der(h) == v - h]


def test_a_plain_model_has_nothing() -> None:
    has = structure_of(Plain()).system.has
    assert not (has.delays or has.switches or has.instants or has.divisors or has.stepped_around)
    assert has.pasts == has.moving_instants == has.dead_times == has.timing == () and has.leeway is None


def test_delays_pasts_and_instants_are_told_apart() -> None:
    system = structure_of(Everything()).system
    has = system.has
    assert has.delays and has.switches and has.instants and not has.stepped_around
    assert [system.signals[k].name for k in has.pasts] == ["delay(h, 0.4)"]
    assert has.moving_instants == ("later",) and has.dead_times == ("tau",)
    assert [system.parameter_names[k] for k in has.timing] == ["later", "tau"]


def test_derivatives_of_disturbances_are_stepped_around() -> None:
    assert structure_of(Rough()).system.has.stepped_around
