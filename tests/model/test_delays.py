"""gr.delay in the language: what it takes, how it reads, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille.structure import structure_of

T = np.arange(0.0, 6.0, 0.5)


class Lag(gr.Model):
    tau = gr.Parameter(1.0, bounds=(0.1, 5))
    k = gr.Parameter(1.0)
    u = gr.Input()
    x = gr.Variable(start=0.0)
    equations = [gr.der(x) == -k * x + gr.delay(u, tau)]
    y = gr.Output(x, noise=0.1)


def test_reads_as_it_is_written() -> None:
    assert str(gr.delay(Lag.u, Lag.tau)) == "delay(u, tau)"
    assert str(gr.delay(2 * Lag.u, 0.5, before=3)) == "delay(2*u, 0.5, before=3)"
    assert "der(x) == -k*x + delay(u, tau)" in str(Lag())
    assert "delay(u, tau)" in structure_of(Lag()).system.delays[0].name


def test_mathml_shows_the_earlier_instant() -> None:
    from grisaille.model.notation import formula

    markup = str(formula(gr.delay(Lag.u, Lag.tau)))
    assert "<mi>t</mi><mo>−</mo><mi>τ</mi>" in markup
    assert "msub" in str(formula(gr.delay(Lag.u * 2, Lag.tau)))


def test_arrays_element_by_element() -> None:
    pair = gr.delay(gr.array([Lag.u, Lag.x]), [1.0, 2.0])
    assert [str(p) for p in pair] == ["delay(u, 1)", "delay(x, 2)"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gr.delay(3.0, 1.0), "delay of a constant"),
        (lambda: gr.delay(Lag.k, 1.0), "delay of a constant"),
        (lambda: gr.delay(Lag.u, 0.0), "remove the delay"),
        (lambda: gr.delay(Lag.u, -1.0), "what lies ahead cannot be known"),
        (lambda: gr.delay(Lag.u, Lag.x), "the dead time x moves"),
        (lambda: gr.delay(Lag.u, 1.0, before=Lag.x), "what held before the start must be a number"),
        (lambda: gr.delay("u", 1.0), "without quotes"),
    ],
)
def test_arguments_are_checked(make: object, words: str) -> None:
    with pytest.raises(gr.ModelError, match=words):
        make()  # type: ignore[operator]


def test_start_values_and_noise_have_no_past() -> None:
    class Wrong(gr.Model):
        u = gr.Input()
        x = gr.Variable(start=0.0)
        equations = [gr.der(x) == -x + u]
        y = gr.Output(x, noise=0.1 + gr.delay(u, 1.0) ** 2)

    data = gr.Experiment(T, outputs={"y": T}, inputs={"u": T})
    with pytest.raises(gr.ModelError, match="has no meaning in a start value"):
        gr.fit(Wrong(), data, estimate=["start(x)"])


class Noisy(gr.Model):
    x = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=1.0)
    equations = [gr.der(x) == -x + gr.delay(w, 1.0)]


class Neutral(gr.Model):
    u = gr.Input()
    x = gr.Variable(start=0.0)
    equations = [gr.der(x) == -x + u + gr.delay(gr.der(x), 1.0)]


class HiddenNeutral(gr.Model):
    x = gr.Variable(start=1.0)
    a = gr.Variable()
    v = gr.Variable()
    equations = [gr.der(x) == -x + v, a == gr.delay(x, 1.0), v == gr.der(a)]


class Jumping(gr.Model):
    u = gr.Input()
    a = gr.Variable()
    v = gr.Variable()
    equations = [a == gr.delay(u, 1.0, before=3.0), v == gr.der(a)]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Noisy, "delays the disturbance 'w'"),
        (Neutral, "neutral equation"),
        (HiddenNeutral, "neutral equation"),
        (Jumping, "before= may make it jump"),
    ],
)
def test_types_of_equations_that_are_refused(model: type[gr.Model], words: str) -> None:
    with pytest.raises(gr.StructureError, match=words):
        structure_of(model())


def test_static_rows_have_no_past() -> None:
    class Row(gr.Model):
        u = gr.Input()
        y = gr.Output(2 * gr.delay(u, 1.0), noise=0.1)

    with pytest.raises(gr.DataError, match="has delays"):
        gr.Experiment(outputs={"y": [1.0, 2.0]}, inputs={"u": [1.0, 2.0]}).check(Row())
