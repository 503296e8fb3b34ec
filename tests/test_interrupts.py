"""An interruption that something has swallowed is raised again."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import interrupts
from grisaille.estimation.problem import Problem


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

    evaluate, calls = Problem.evaluate, []

    def evaluated(self: Problem, *arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            swallow()
        return evaluate(self, *arguments, **named)

    monkeypatch.setattr(Problem, "evaluate", evaluated)
    t = np.linspace(0.0, 4.0, 21)
    fit = gr.fit(Decay(), gr.Experiment(t, {}, {"y": np.exp(-0.7 * t)}), method=gr.OutputError())
    assert fit.status.startswith("INTERRUPTED") and not fit.converged
