"""What is shown while a fit runs, told by a clock of our own."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimation.effort import Cost, cost as costs
from grisaille.estimators import build_problem
from grisaille.results import ProgressLine, format_duration, is_read, progress, progress_reporter


class Clock:
    """Stands still unless it is told."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def listen(seconds, count, cost=None, **options):
    """What is written by so many evaluations of so many seconds each."""
    clock, stream = Clock(), io.StringIO()
    heard = ProgressLine(lambda: cost or Cost(60), stream, clock=clock, **({"live": True} | options))
    for k in range(count):
        clock.now += seconds
        heard.counted(k + 1)
        if k % 5 == 0:
            heard(k + 1, 100.0 - k)
    return heard, stream


def test_a_fit_that_is_over_soon_says_nothing():
    heard, stream = listen(0.01, 60)
    heard.finish()
    assert stream.getvalue() == ""


def test_a_long_fit_says_so_after_the_first_evaluations_and_what_would_be_faster():
    cost = Cost(60, ("6003 samples in 3 experiments", "6 unknowns"), ("experiment.resample(0.03)",))
    _heard, stream = listen(4.0, 4, cost)
    told = stream.getvalue().split("\n")[0].split("\r")[-1].strip()
    assert told == (
        "This fit will take about 4 min: about 60 evaluations of 4 s each (6003 samples in 3 experiments, 6 unknowns). "
        "Faster: experiment.resample(0.03). Ctrl-C keeps what it has reached."
    )
    assert stream.getvalue().count("This fit") == 1


def test_it_is_said_once_and_as_soon_as_evaluations_turn_out_long():
    """A search that begins with evaluations without derivatives, 0.1 s, goes on with 2 s each."""
    clock, stream = Clock(), io.StringIO()
    heard = ProgressLine(lambda: Cost(60), stream, live=False, lines=False, clock=clock)
    for k in range(9):
        clock.now += 0.1
        heard.counted(k + 1)
    assert stream.getvalue() == ""
    for k in range(9, 40):
        clock.now += 2.0
        heard.counted(k + 1)
    assert stream.getvalue().startswith("This fit will take about ")
    assert stream.getvalue().count("\n") == 1


def test_preparation_is_not_taken_for_an_evaluation():
    """A compiler that takes 20 s makes no long fit of 60 evaluations that take a tenth of a second."""
    clock, stream = Clock(), io.StringIO()
    heard = ProgressLine(lambda: Cost(60), stream, live=True, lines=False, clock=clock)
    clock.now += 20.0
    for k in range(60):
        heard.counted(k + 1)
        clock.now += 0.1
    assert stream.getvalue() == ""


def test_the_line_tells_how_far_it_is_and_leaves_nothing_behind():
    heard, stream = listen(0.25, 20)
    line = stream.getvalue().split("\r")[-1].strip()
    assert line == "evaluation 20 of about 60, objective 85, 5 s, about 10 s left"
    heard.finish()
    assert stream.getvalue().endswith(" \r")
    assert "\n" not in stream.getvalue()


def test_where_a_search_takes_longer_than_usual_no_end_is_promised():
    _, stream = listen(0.25, 80)
    assert stream.getvalue().split("\r")[-1].strip() == "evaluation 80, objective 25, 20 s"


def test_lines_that_cannot_be_written_over_come_seldom():
    _, stream = listen(0.25, 100, live=False)
    assert len(stream.getvalue().splitlines()) == 2
    assert "\r" not in stream.getvalue()


@pytest.mark.parametrize(
    "seconds, words", [(0.034, "0.03 s"), (4.2, "4 s"), (42.4, "42 s"), (150.0, "2.5 min"), (9000.0, "2.5 h")]
)
def test_durations(seconds, words):
    assert format_duration(seconds) == words


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_who_is_shown_what(monkeypatch):
    """Lines on terminals, a long fit's sentence in notebooks, nothing in pipes; and as it is asked for."""

    def how(wanted):
        if not is_read(wanted):
            return None
        found = progress_reporter(lambda: Cost(1), wanted)
        return found.live, found.lines

    monkeypatch.setattr(sys, "stderr", Terminal())
    assert how(None) == how(True) == (True, True)
    assert how(False) is None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert how(None) is None
    assert how(True) == (False, True)
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    assert how(None) == (False, False)
    assert how(False) is None


class Tank(gr.Model):
    k, q = gr.Parameter(0.3, bounds=(0.01, 5.0)), gr.Parameter(1.5, bounds=(0.0, 9.0))
    h = gr.Variable(0.5)
    w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.2)
    y = gr.Output(h, noise=0.05)
    equations = [der(h) == q - k * h**1.5 + w]


METHODS = {
    "KalmanML": gr.KalmanML(substeps=2),
    "OutputError": gr.OutputError(),
    "SimulatedPEM": gr.SimulatedPEM(realizations=64),
    "Collocation": gr.Collocation(),
}


@pytest.mark.parametrize("name", METHODS)
def test_every_estimator_says_what_makes_it_long(name, monkeypatch):
    monkeypatch.setattr(costs, "MANY_SAMPLES", 20)
    times = np.linspace(0.0, 30.0, 31)
    data = gr.Experiment(times, {}, {"y": np.full(31, 2.0)})
    cost = METHODS[name].effort.cost(build_problem(Tank(), data, ["k", "q"], METHODS[name]))
    words = ", ".join(cost.causes), "; ".join(cost.faster)
    assert words[0].startswith("31 samples") and words[0].endswith("2 unknowns")
    assert words[1].endswith("fewer samples for a first look, experiment.resample(0.1)")
    assert 10 < cost.evaluations < 200
    if name == "KalmanML":
        assert "2 steps between samples on average, 2 at most" in words[0]
    if name == "SimulatedPEM":
        assert "64 realizations" in words[0] and "gr.SimulatedPEM(realizations=50)" in words[1]


@pytest.mark.parametrize(("count", "said"), [(59, False), (60, True)])
def test_filters_say_how_many_states_are_many(count, said):
    class Chain(gr.Model):
        a = gr.Parameter(1.0)
        w = gr.Disturbance(gr.spectra.lowpass(2.0))
        x = gr.Variable((0.0,) * count, size=count)
        y = gr.Output(x[0], noise=0.1)
        equations = [der(x[0]) == w - a * x[0], der(x[1:]) == x[:-1] - x[1:]]

    method = gr.KalmanML()
    data = gr.Experiment([0.0, 1.0, 2.0], {}, {"y": np.ones(3)})
    cost = method.effort.cost(build_problem(Chain(), data, ["a"], method))
    assert (f"the covariance of {count} states" in ", ".join(cost.causes)) == said
    assert ("gr.SimulatedPEM()" in "; ".join(cost.faster)) == said


def test_a_fit_on_a_terminal_that_takes_long(monkeypatch):
    """Through gr.fit, with a clock that runs ten seconds at a time."""
    clock, stream = Clock(), Terminal()

    def tick():
        clock.now += 10.0
        return clock.now

    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(ProgressLine.__init__, "__kwdefaults__", ProgressLine.__init__.__kwdefaults__ | {"clock": tick})
    times = np.linspace(0.0, 10.0, 21)
    data = gr.Experiment(times, {}, {"y": 2.0 + 0.1 * np.sin(times)})
    gr.fit(Tank(), data, ["k"], gr.OutputError())
    said = stream.getvalue()
    assert "This fit will take about" in said and "s each (21 samples, 1 unknown)." in said
    assert said.endswith(" \r")
    stream.truncate(0)
    gr.fit(Tank(), data, ["k"], gr.OutputError(), progress=False)
    assert stream.getvalue().strip("\0") == ""


def test_many_states_are_said_before_a_filter_begins(monkeypatch):
    class Rod(gr.Model):
        a = gr.Parameter(1.0, bounds=(0.1, 9.0))
        T = gr.Variable(start=0.0, size=80)
        left = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.2)
        y = gr.Output(T[79], noise=0.05)

        def equations(self):
            ends = [self.left, *(self.T[k] for k in range(80)), self.T[79]]
            return [der(self.T[k]) == self.a * (ends[k] - 2 * self.T[k] + ends[k + 2]) for k in range(80)]

    class Begun(Exception):
        pass

    def begin(*_given, **_named):
        raise Begun

    monkeypatch.setattr("grisaille.results.fitting.pose_first", begin)
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    long, short = (gr.Experiment(np.arange(n) * 0.1, {}, {"y": np.zeros(n)}) for n in (400, 40))
    for data in (short, long):
        with pytest.raises(Begun):
            gr.fit(Rod(), data, ["a"], gr.KalmanML())
    told = stream.getvalue()
    assert told.count("\n") == 1 and "covariance of all 80 states of Rod through 400 samples" in told
    assert "gr.SimulatedPEM() or gr.OutputError() carry no covariance" in told
    with pytest.raises(Begun):
        gr.fit(Rod(), long, ["a"], gr.KalmanML(), progress=False)
    assert stream.getvalue() == told


def test_one_slow_evaluation_is_enough_to_tell():
    _heard, stream = listen(4.0, 2, Cost(60, ("6003 samples",)))
    assert "This fit will take about 4 min: about 60 evaluations of 4 s each (6003 samples)." in stream.getvalue()


def test_whoever_asks_for_progress_is_told_what_short_fits_cost_too():
    _heard, stream = listen(0.2, 5, Cost(60, ("300 samples",)), long=progress.FIRST_LINE_SECONDS)
    assert "This fit will take about 12 s: about 60 evaluations of 0.2 s each (300 samples)." in stream.getvalue()


def test_a_long_fit_says_what_it_was_spent_on():
    cost = Cost(60, ("6003 samples", "1.2e+05 steps with derivatives"), ("fewer samples",))
    assert costs.duration_note(cost, 60, 30.0) == ""
    assert costs.duration_note(cost, 60, 240.0) == (
        "cost: the search took 4 min: 60 evaluations of 4 s each (6003 samples, 1.2e+05 steps with derivatives). "
        "Faster: fewer samples."
    )


def test_a_slow_first_evaluation_is_announced_before_it_ends():
    """The sentence on a long fit needs a second evaluation, which may be minutes away."""
    streams = [io.StringIO(), io.StringIO()]
    slow, quick = (ProgressLine(lambda: Cost(60), s, live=False, lines=False) for s in streams)
    quick.counted(1)
    for heard in (slow, quick):
        heard.speak_early(lambda: Cost(25, ("20001 samples", "2 unknowns")), 0.01)
        heard._early.join()
        heard.finish()
    assert streams[0].getvalue() == (
        "The first evaluation has taken more than 0.01 s, with all that precedes it, and this search takes about 25 of "
        "them (20001 samples, 2 unknowns). Ctrl-C ends it.\n"
    )
    assert streams[1].getvalue() == ""


@pytest.mark.parametrize(
    "method", [gr.OutputError(), gr.KalmanML(), gr.SimulatedPEM(realizations=50), gr.Collocation()]
)
def test_early_costs_compute_nothing(method):
    """They are asked for by a thread, while the search runs: of a problem they see unknowns and samples."""
    case = SimpleNamespace(trial=SimpleNamespace(times=np.arange(5.0)))
    problem = SimpleNamespace(unknowns=(None,), cases=(case,))
    assert method.effort.early_cost(problem).evaluations == method.effort.evaluations(problem) >= 20
