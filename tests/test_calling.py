"""Calls with arguments that do not exist, over the public surface."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

import grisaille as gr
from grisaille.errors import ArgumentError

FUNCTIONS = [
    gr.analyze, gr.bootstrap, gr.compare, gr.evaluate, gr.fit, gr.load, gr.load_problem, gr.monte_carlo, gr.multistart,
    gr.sensitivity, gr.simulate, gr.well_posedness, gr.Experiment, gr.OutputError, gr.KalmanML, gr.SimulatedPEM,
    gr.Collocation,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_unknown_arguments_are_named(function: Callable[..., object]) -> None:
    with pytest.raises(ArgumentError, match=rf"{function.__name__}\(\) has no argument 'nonsense'"):
        function(nonsense=1)
    with pytest.raises(TypeError):
        function(nonsense=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gr.fit(None, None, metod="auto"), "no argument 'metod'. Did you mean 'method'"),
        (lambda: gr.KalmanML(filtr="unscented"), "no argument 'filtr'. Did you mean 'filter'"),
        (lambda: gr.Experiment(inpts={}), "no argument 'inpts'. Did you mean 'inputs'"),
        (lambda: gr.simulate(), r"simulate\(\): missing a required argument: 'model'. Its arguments are model, times"),
    ],
)
def test_what_was_meant(call: Callable[[], object], words: str) -> None:
    with pytest.raises(gr.GrisailleError, match=words):
        call()


def test_type_errors_of_other_causes_are_not_hidden() -> None:
    from grisaille.calling import checked

    @checked
    def broken(x: int) -> int:
        return x + "a"  # type: ignore[operator, no-any-return]

    with pytest.raises(TypeError, match="unsupported operand") as caught:
        broken(1)
    assert not isinstance(caught.value, ArgumentError)


@pytest.mark.parametrize("function", [gr.fit, gr.simulate, gr.evaluate], ids=lambda f: f.__name__)
def test_functions_can_be_sent_to_other_processes(function: Callable[..., object]) -> None:
    assert pickle.loads(pickle.dumps(function)) is function
