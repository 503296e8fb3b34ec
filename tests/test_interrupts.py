"""An interruption that something has swallowed is raised again."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import interrupts
from grisaille.estimation import EstimationProblem


def swallow() -> None:
    """What wrappers do that catch everything."""
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_lost_interruptions_come_back_at_the_next_check_or_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.interruptible():
        swallow()
        interrupts.check()
    with pytest.raises(KeyboardInterrupt), interrupts.interruptible(), interrupts.interruptible():
        swallow()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    interrupts.check()


def test_answered_ones_do_not_and_other_handlers_and_threads_are_left_alone() -> None:
    with interrupts.interruptible():
        swallow()
        interrupts.acknowledge()
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        with interrupts.interruptible():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [signal.SIGINT]
    found: list[Any] = []

    def elsewhere() -> None:
        with interrupts.interruptible():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_a_fit_is_interrupted_although_its_evaluation_swallowed_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Decay(gr.Model):
        k = gr.Parameter(0.2, bounds=(0.01, 5.0))
        x = gr.Variable(1.0)
        y = gr.Output(x, noise=0.1)
        equations = [gr.der(x) == -k * x]

    evaluate, calls = EstimationProblem.evaluate, []

    def evaluated(self: EstimationProblem, *arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            swallow()
        return evaluate(self, *arguments, **named)

    monkeypatch.setattr(EstimationProblem, "evaluate", evaluated)
    t = np.linspace(0.0, 4.0, 21)
    fit = gr.fit(Decay(), gr.Experiment(t, {}, {"y": np.exp(-0.7 * t)}), method=gr.OutputError())
    assert fit.status.startswith("INTERRUPTED") and not fit.converged


class Stop(Exception):
    """What a handler of the user's raises."""


class Referred:
    """Something that weak references refer to."""


def lose(signals: int = signal.SIGINT) -> None:
    """Ctrl-C in a callback of a weak reference, where Python drops what is raised."""
    thing = Referred()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(signals))
    del thing
    assert reference() is None


def test_what_callbacks_of_weak_references_drop_is_raised_by_any_handler_that_raised_it() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.interruptible():
        lose()
        interrupts.check()

    def stop(*_: object) -> None:
        raise Stop

    hook, before = sys.unraisablehook, signal.signal(signal.SIGINT, stop)
    try:
        with pytest.raises(Stop), interrupts.interruptible():
            swallow_all()
            interrupts.check()
        assert signal.getsignal(signal.SIGINT) is stop and sys.unraisablehook is hook
    finally:
        signal.signal(signal.SIGINT, before)

    def press(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, press)
    try:
        with pytest.raises(KeyboardInterrupt), interrupts.interruptible():
            lose(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)


def swallow_all() -> None:
    with contextlib.suppress(Stop):
        signal.raise_signal(signal.SIGINT)


def test_an_error_that_an_interruption_became_is_the_interruption() -> None:
    def wrapped() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise RuntimeError("in a callback of compiled code") from None

    with pytest.raises(KeyboardInterrupt), interrupts.interruptible():
        wrapped()


@pytest.mark.parametrize("given", [{}, {"step": 0.01}, {"realizations": 200, "step": 0.01, "reduce": "mean"}])
def test_every_public_call_raises_what_was_lost(given: dict[str, Any]) -> None:
    class Noisy(gr.Model):
        x = gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.3)
        equations = [gr.der(x) == w - x]

    lost: list[int] = []

    def force(t: np.ndarray) -> np.ndarray:
        lose()
        lost.append(1)
        return np.sin(t)

    class Driven(Noisy):
        u = gr.Input()
        y = gr.Variable(0.0)

        def equations(self) -> Any:
            yield from super().equations
            yield gr.der(self.y) == self.u - self.y

    with pytest.raises(KeyboardInterrupt):
        gr.simulate(Driven(), [0.0, 1.0], {"u": force}, **given)
    assert lost
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
