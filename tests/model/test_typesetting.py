"""Models in notebooks: equations typeset, symbols with values and units, user texts escaped."""

from __future__ import annotations

import grisaille as gr
from grisaille import der
from grisaille.components.electrical import Capacitor, Ground, Resistor, VoltageSource


class Tank(gr.Model):
    """A tank with a <leak>."""

    area = gr.Parameter(2.0, "m2", "of the <base>")
    k = gr.Parameter(0.5, "m2/s", bounds=(0.1, 2.0), prior=gr.Normal(0.5, 0.1))
    level = gr.Variable(start=1.0, unit="m", fixed=True)
    inflow = gr.Input("m3/s", default=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.1)
    depth = gr.Output(level, unit="m")
    equations = [area * der(level) == inflow - k * level + w]


def test_a_model_in_a_notebook() -> None:
    html = Tank()._repr_html_()
    assert html.count("<math display") == 1
    for part in (
        "A tank with a &lt;leak&gt;.",
        "of the &lt;base&gt;",
        "0.1 … 2",
        "Normal(",
        "lowpass",
        "m3/s",
        "(fixed)",
    ):
        assert part in html
    assert "<leak>" not in html and "<base>" not in html


def test_connections_are_listed() -> None:
    class Lowpass(gr.Model):
        source, r, c, ground = VoltageSource(), Resistor(R=1e3), Capacitor(C=1e-6), Ground()
        equations = [gr.connect(source.p, r.p), gr.connect(r.n, c.p), gr.connect(c.n, source.n, ground.p)]

    assert "connect(c.n, source.n, ground.p)" in Lowpass()._repr_html_()


def test_long_models_are_cut() -> None:
    class Chain(gr.Model):
        x = gr.Variable(start=0.0, size=250)

        def equations(self):
            yield from (der(self.x[k]) == -self.x[k] for k in range(250))

    assert "… and 50 more" in Chain()._repr_html_()


def test_a_model_without_equations() -> None:
    class Line(gr.Model):
        p, x = gr.Parameter(1.0), gr.Input()
        y = gr.Output(p * x)

    assert "No equations" in Line()._repr_html_()
