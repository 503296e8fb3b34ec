"""``when`` and what belongs to it as language: what is printed, kept and refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.model import change, flatten


class Ball(gr.Model):
    e = gr.Parameter(0.8)
    h, v = gr.Variable(1.0), gr.Variable(0.0)
    n = gr.Discrete(0, "1", "bounces")
    low = h < 0
    equations = [
        der(h) == v,
        der(v) == -9.81,
        gr.when(low, gr.reinit(v, -e * gr.pre(v)), n == gr.pre(n) + 1).otherwise(gr.clock(1.0), n == 0),
    ]


def test_events_are_printed_and_analysed() -> None:
    text = str(Ball())
    assert "Discrete variables\n  n [1]  start 0  # bounces" in text
    assert "  when low:\n      reinit(v, -e*pre(v))\n      n == pre(n) + 1\n  otherwise when clock(1, 0):\n" in text
    shown = str(gr.analyze(Ball()))
    assert "when low: reinit v, n" in shown and "discrete    n" in shown and "1 parameter," in shown
    html = Ball()._repr_html_()
    assert "when <math>" in html and "←" in html and "Discrete variables" in html


def test_events_are_part_of_what_a_model_is() -> None:
    back = pickle.loads(pickle.dumps(Ball()))
    assert back == Ball() and str(back) == str(Ball())
    assert back.start["n"] == 0 and "n" not in back.parameters
    assert Ball(start={"n": 2}) != Ball() and Ball(start={"n": 2}).structure_key == Ball().structure_key


class Two(gr.Model):
    """Components bring their events with them."""

    balls = gr.copies(Ball(), 2)
    total = gr.Discrete(0)

    def equations(self) -> Any:
        yield gr.when(self.balls[0].n > 0.5, self.total == self.balls[0].n + self.balls[1].n)


def test_events_of_components() -> None:
    flat = flatten(Two())
    assert [w.clauses[0].text for w in flat.whens] == ["balls[0].n > 0.5", "balls[0].low", "balls[1].low"]
    assert list(flat.discretes) == ["balls[0].n", "balls[1].n", "total"]
    assert "low" in flatten(Ball()).quantities


class Named(gr.Model):
    """A clock with a name is no quantity that has values."""

    x, n, T = gr.Variable(0.0), gr.Discrete(size=2), gr.Parameter(1.0)
    tick = gr.clock(T)
    equations = [der(x) == gr.pre(n)[0] + n[1], gr.when(tick & (x >= 0), n == gr.pre(n) + np.array([1, 2]))]


def test_named_clocks_and_vectors() -> None:
    assert "tick" not in flatten(Named()).quantities
    got = gr.simulate(Named(), np.array([0.0, 0.5, 1.5]))
    assert got["n[1]"].values.tolist() == [2.0, 2.0, 4.0] and np.allclose(got.x.values, [0.0, 1.5, 6.0])


def plant(event: Callable[[Any], Any]) -> gr.Model:
    class Made(gr.Model):
        x, w, n, k = gr.Variable(1.0), gr.Variable(), gr.Discrete(0), gr.Parameter(1.0)

        def equations(self) -> Any:
            yield der(self.x) == -self.x
            yield self.w == 2 * self.x
            yield event(self)

    return Made()


MISTAKES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no action": (lambda s: gr.when(s.x < 0.5), "does nothing: give it actions"),
    "algebraic": (lambda s: gr.when(s.x < 0.5, gr.reinit(s.w, 1), s.n == 1), "'w' is no state"),
    "outside": (lambda s: gr.reinit(s.x, 1), "belongs inside gr.when"),
    "reset of a count": (lambda s: gr.when(s.x < 0.5, gr.reinit(s.n, 1)), "is a gr.Discrete; write `n == 1`"),
    "reset of a parameter": (lambda s: gr.when(s.x < 0.5, gr.reinit(s.k, 1)), "k is a parameter, not a state"),
    "equation of a state": (lambda s: gr.when(s.x < 0.5, s.x == 1), "A state is set by gr.reinit"),
    "equation as condition": (lambda s: gr.when(s.x == 1, s.n == 1), "is an equation"),
    "two at once": (lambda s: gr.when(s.x < 0.5, s.n == 1, s.n == 2), "gives 'n' two values at once"),
    "nested": (lambda s: gr.when(s.x < 0.5, gr.when(s.x < 0.2, s.n == 1)), "inside another gr.when"),
    "condition": (lambda s: gr.when(gr.pre(s.x) < 0.5, s.n == 1), "has a meaning in actions only"),
    "moving clock": (lambda s: gr.when(gr.clock(s.x), s.n == 1), "but 'x' is none"),
    "circle": (lambda s: gr.when(s.x < 0.5, s.n == 2 * s.n), "defined by each other in a circle"),
    "change of a state": (lambda s: gr.when(change(s.x), s.n == 1), "is taken of a gr.Discrete only"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake: str) -> None:
    made, words = MISTAKES[mistake]
    with pytest.raises(gr.GrisailleError) as told:
        gr.analyze(plant(made))
    assert words in str(told.value)


def test_mistakes_around_events() -> None:
    class Forgotten(gr.Model):
        x, n = gr.Variable(1.0), gr.Discrete(0)
        equations = [der(x) == -x]

    with pytest.raises(gr.ModelError, match=r"no gr.when gives it a value: write gr.when\(condition, n == …\)"):
        gr.analyze(Forgotten())

    class Outside(gr.Model):
        x, n = gr.Variable(1.0), gr.Discrete(0)
        equations = [der(x) == -x, n == gr.pre(n) + 1]

    with pytest.raises(gr.ModelError, match="write it inside a when"):
        gr.analyze(Outside())

    class Before(gr.Model):
        x = gr.Variable(1.0)
        equations = [der(x) == -gr.pre(x)]

    with pytest.raises(gr.ModelError, match=r"`pre\(x\)` stands outside gr.when"):
        gr.analyze(Before())

    class Moment(gr.Model):
        x = gr.Variable(1.0)
        equations = [der(x) == gr.where(gr.clock(1.0), 1, 0)]

    with pytest.raises(gr.ModelError, match="is a moment"):
        gr.analyze(Moment())

    class Shared(gr.Model):
        x, n = gr.Variable(1.0), gr.Discrete(0)
        equations = [der(x) == -x, gr.when(x < 0.5, n == 1), gr.when(x < 0.2, n == 2)]

    with pytest.raises(gr.ModelError, match=r"'n' gets values from two events.*otherwise\(x < 0.2, n == …\)"):
        gr.analyze(Shared())
    with pytest.raises(gr.ModelError, match="is written but not listed"):

        class Lost(gr.Model):
            x, n = gr.Variable(1.0), gr.Discrete(0)
            equations = [der(x) == -x]
            gr.when(x < 0.5, n == 1)

    with pytest.raises(gr.ModelError, match="the period must be above zero, got -1"):
        gr.clock(-1)
    with pytest.raises(gr.ModelError, match="constant between events"):

        class Slope(gr.Model):
            x, n = gr.Variable(1.0), gr.Discrete(0)
            equations = [der(x) == der(n), gr.when(x < 0.5, n == 1)]

        gr.analyze(Slope())


class Levels(gr.Model):
    """Something that events change, to be used where it must not be."""

    u = gr.Input(default=1.0)
    n = gr.Discrete(1)
    x = gr.Variable(0.0)
    y = gr.Output(x)
    equations = [der(x) == u, gr.when(gr.time > 1, n == 3)]


class NoisyByEvents(Levels):
    y = gr.Output(Levels.x, noise=0.1 * Levels.n)


class LateEvents(Levels):
    equations = [der(Levels.x) == gr.delay(Levels.n * Levels.u, 0.5), gr.when(gr.time > 1, Levels.n == 3)]


class LateNumbers(Levels):
    equations = [der(Levels.x) == gr.delay(Levels.n, 0.5), gr.when(gr.time > 1, Levels.n == 3)]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (NoisyByEvents, "the noise of 'y' contains the discrete variable 'n'"),
        (LateEvents, "contains the discrete variable 'n', whose past is not kept"),
        (LateNumbers, "contains the discrete variable 'n', whose past is not kept"),
    ],
)
def test_what_holds_for_a_run_or_has_a_past_is_not_of_events(model: type[gr.Model], words: str) -> None:
    with pytest.raises(gr.GrisailleError, match=words):
        gr.simulate(model(), [0.0, 1.0, 2.0], noise=True)
