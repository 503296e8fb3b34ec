"""Discrete variables as signals: what is computed before a run is what a run of the events shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.model.whens import change, edge, initial, whenever
from grisaille.structure.prepared import structure_of
from grisaille.structure.schedule import why_not_scheduled
from grisaille.trial import Trial


class Scheduled(gr.Model):
    x = gr.Variable(0.0)
    n, m = gr.Discrete(0.0), gr.Discrete(0.0)

    def equations(self) -> Any:
        yield der(self.x) == self.n - self.m


class Chained(Scheduled):
    """Clocks that meet, and one that begins before the run."""

    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.clock(0.1), self.n == gr.pre(self.n) + 1)
        yield gr.when(gr.clock(0.3, -0.6), self.m == gr.pre(self.m) + self.n)


class Either(Scheduled):
    """A chain with an order, relations of time that discrete variables move, what is true at the start."""

    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.time > 1, self.n == 1).otherwise(gr.clock(0.5), self.n == gr.pre(self.n) + 0.25)
        yield gr.when(gr.time > self.m + 0.4, self.m == gr.time + 0.1)


class Remembered(Scheduled):
    """edge, change and the start; a clock that asks for a time it ticks at."""

    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(initial() | edge(gr.sin(3 * gr.time) > 0.5), self.n == gr.pre(self.n) + 1)
        yield gr.when(change(self.n) & (gr.time > 0.1), self.m == gr.time).otherwise(
            gr.clock(1.0) & (gr.time > 2), self.m == -1
        )


class Crooked(Scheduled):
    """Relations that are not straight in time, one of them of a variable of its own."""

    a = gr.Variable()

    def equations(self) -> Any:
        yield from super().equations()
        yield self.a == gr.where(gr.time > 2.2, 3, gr.sin(7 * gr.time))
        yield gr.when(gr.floor(gr.time / 0.7) > self.n, self.n == gr.floor(gr.time / 0.7))
        yield gr.when(self.a > 0.3, self.m == gr.pre(self.m) + 1)


class Beside(Scheduled):
    """A relation with an offset, whose gap is zero on both sides of its root, computed; one that a tick meets."""

    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.time + 1000 > 1000.3, self.n == 1).otherwise(gr.time / 86400 + 200 > 200.00001, self.n == 4)
        yield gr.when(gr.time > 0.7, self.m == 1).otherwise(gr.clock(0.1), self.m == gr.pre(self.m) + 0.25)


class Ordered(Scheduled):
    """What is decided after what it needs, written before it; what stands at its threshold at the start."""

    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when((self.n > 2) & (gr.time < 2), self.m == 5).otherwise(gr.time > 0, self.m == 1)
        yield gr.when(gr.clock(0.5), self.n == gr.pre(self.n) + 1).otherwise(gr.time >= 0, self.n == -9)


TIMES = np.array([round(0.05 * k, 2) for k in range(61)])


@pytest.mark.parametrize("model", [Chained, Either, Remembered, Crooked, Beside, Ordered])
@pytest.mark.parametrize("begin", [0.0, 0.35, -0.4])
def test_signals_are_what_a_run_shows(model: type[gr.Model], begin: float) -> None:
    every = TIMES + min(begin, 0.0)
    times = every[every >= begin] + 0.003 * (every[every >= begin] > begin)  # beside located instants
    run = gr.simulate(model(), times, rtol=1e-10)
    point = Trial(model(), times).scheduled().at()
    for name in ("n", "m"):
        place = [s.name for s in point.structure.system.signals].index(name)
        known = [point.table.at(float(t))[place] for t in times]
        np.testing.assert_allclose(known, run[name].values, rtol=1e-12, atol=1e-12)


def test_ticks_show_what_holds_after_them() -> None:
    point = Trial(Chained(), TIMES).scheduled().at()
    place = [s.name for s in point.structure.system.signals].index("n")
    np.testing.assert_array_equal([point.table.at(float(t))[place] for t in TIMES[::2]], np.arange(1, 32))


class Restless(Scheduled):
    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when((gr.time > 1) & (self.n < 0.5), self.n == 1).otherwise(self.n > 0.5, self.n == 0)
        yield gr.when(gr.clock(10.0), self.m == 1)


def test_events_that_do_not_settle_are_told() -> None:
    with pytest.raises(gr.ModelError, match="fires again and again at t = 1 "):
        Trial(Restless(), TIMES).scheduled().at().table  # noqa: B018


class OfState(Scheduled):
    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.clock(0.1), self.n == 1 - self.x)
        yield gr.when(gr.clock(0.2), self.m == 1)


class Reset(Scheduled):
    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.clock(0.1), self.n == 1, self.m == 1, gr.reinit(self.x, 0))


class Crossed(Scheduled):
    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(self.x > 0.1, self.n == 1, self.m == 1)


class OfInput(Scheduled):
    u = gr.Input()

    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(self.u > 0.1, self.n == 1, self.m == 1)


class Moved(Scheduled):
    def equations(self) -> Any:
        yield der(self.x) == gr.where(gr.time > self.m, 1, self.n)
        yield gr.when(gr.clock(1.0), self.m == gr.time + 0.25, self.n == 0)


class Lasting(Scheduled):
    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.clock(0.5), self.n == gr.pre(self.n) + 3)
        yield gr.when(whenever(self.m < self.n), self.m == self.m + 1)


class Tied(Scheduled):
    """The start follows from a fixed sum with a discrete variable that ticks at the start."""

    a = gr.Variable(1.0, fixed=True)

    def equations(self) -> Any:
        yield der(self.x) == -self.x
        yield self.a == self.x + self.n
        yield gr.when(gr.clock(1.0), self.n == 1, self.m == 1)


def test_a_start_that_an_event_at_the_start_would_move_is_refused() -> None:
    with pytest.raises(gr.EstimationError, match=r"start of 'x' .*before it 1, after it 0"):
        Trial(Tied(), TIMES).scheduled().at().start  # noqa: B018


@pytest.mark.parametrize(
    "model, words",
    [
        (OfState, "'n' takes a value that contains 'x'"),
        (Reset, r"gr.when(clock(0.1, 0)) sets the state 'x'"),
        (Crossed, "gr.when(x > 0.1) fires with 'x'"),
        (OfInput, "gr.when(u > 0.1) fires with 'u'"),
        (Moved, "'m' moves the instant at which a relation of time in the equations switches"),
        (Lasting, "gr.when(whenever(m < n)) fires in every pass in which it holds"),
        (Chained, ""),
    ],
)
def test_what_is_not_known_before_a_run_is_named(model: type[gr.Model], words: str) -> None:
    assert why_not_scheduled(structure_of(model())) == words
