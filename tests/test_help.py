"""``help``: every argument of what is public is documented under its name, and the examples run."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import grisaille as gr
from grisaille.assessment import CostSurface, Diagnosis, Profile, Sensitivity
from grisaille.posteriors import PriorPredictive
from grisaille.problem import Problem
from grisaille.results import (
    Bootstrap,
    Comparison,
    DensityFunction,
    MonteCarlo,
    Multistart,
    Posterior,
    UnboundedDensity,
    Validation,
)
from grisaille.simulation import SimulationOptions

ANSWERS = (gr.Fit, gr.Analysis, gr.WellPosedness)
"""Classes of which nobody makes one."""
WITH_METHODS = (
    gr.Fit, gr.Model, gr.Experiment, gr.Simulator, gr.Analysis, gr.WellPosedness, Bootstrap, Comparison, CostSurface,
    DensityFunction, Diagnosis, MonteCarlo, Multistart, Posterior, PriorPredictive, Problem, Profile, Sensitivity,
    UnboundedDensity, Validation,
)  # fmt: skip
EXAMPLES = (
    gr.simulate, gr.Simulator, gr.evaluate, gr.log_density, gr.sensitivity, gr.compare, gr.load,
    gr.multistart, gr.monte_carlo, gr.bootstrap, gr.posterior, gr.prior_predictive,
    gr.Model, gr.Experiment, gr.OutputError, gr.KalmanML, gr.SimulatedPEM, gr.Collocation,
)  # fmt: skip
"""They go on from the one of ``gr.fit``."""


def documented(text: str) -> list[str]:
    """The names before a colon: ``times, inputs : as in gr.simulate``."""
    lines = re.findall(r"^ *(\w+(?:, \w+)*) : ", text, re.MULTILINE)
    return [name for line in lines for name in line.split(", ")]


def is_formula(value: Any) -> bool:
    """``gr.sin(x)`` and its like, whose sentence says all."""
    taken = inspect.signature(value).parameters
    return value.__module__ == "grisaille.model.functions" and all(len(p) == 1 for p in taken)


def public() -> Iterator[tuple[str, Any, int]]:
    """(name, function or class, arguments that are not the user's)."""
    named = {f"gr.{n}": getattr(gr, n) for n in gr.__all__}
    named |= {f"gr.spectra.{n}": getattr(gr.spectra, n) for n in dir(gr.spectra) if n[0].islower()}
    for name, value in named.items():
        if inspect.isclass(value):
            is_made = not issubclass(value, BaseException) and value not in ANSWERS
        else:
            is_made = inspect.isfunction(value) and not is_formula(value)
        if is_made:
            yield name, value, 0
    for cls in WITH_METHODS:
        for name in dir(cls):
            found = inspect.getattr_static(cls, name)
            function = getattr(found, "__func__", found)
            if name[0] != "_" and name != "of" and inspect.isfunction(function):
                yield f"{cls.__name__}.{name}", function, 1


SURFACE = {name: (value, skip) for name, value, skip in public()}


@pytest.mark.parametrize("name", SURFACE)
def test_every_argument_is_documented(name: str) -> None:
    value, skip = SURFACE[name]
    parameters = list(inspect.signature(value).parameters)[skip:]
    told = documented(inspect.getdoc(value) or "")
    assert [p for p in parameters if p not in told] == [], "these are not documented"
    assert [n for n in told if n not in parameters] == [], "these are documented, but are no arguments"
    assert len(told) == len(set(told)), "one is documented twice"


def test_the_walk_sees_what_it_should() -> None:
    assert {"gr.fit", "gr.Experiment", "gr.KalmanML", "gr.spectra.lowpass", "Fit.profile", "Fit.predict"} <= set(
        SURFACE
    )
    assert {"Multistart.repeat", "Bootstrap.intervals", "Comparison.report", "Fit.predict"} <= set(SURFACE)
    assert documented("A line.\n\n    a, b : two\n        more: of it\n    c : three\nlast.") == ["a", "b", "c"]


@pytest.mark.parametrize("function", [gr.fit, *EXAMPLES], ids=lambda f: f.__name__)
def test_help_says_what_comes_back(function: Any) -> None:
    text = inspect.getdoc(function) or ""
    assert "Examples\n--------\n" in text
    assert inspect.isclass(function) or "Returns\n-------\n" in text


def test_the_examples_run(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of ``gr.fit`` as they stand, in an empty namespace; the others after them."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for function in (gr.fit, *EXAMPLES):
        text = inspect.getdoc(function) or ""
        test = doctest.DocTestParser().get_doctest(text, names, f"gr.{function.__name__}", None, None)
        said: list[str] = []
        doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=False)
        assert not said, "".join(said)
        names = test.globs if function is gr.fit else names
    assert names["fit"].converged


def test_options_of_simulations_are_those_of_simulate() -> None:
    taken = list(inspect.signature(gr.simulate).parameters)
    assert list(SimulationOptions.__annotations__) == [n for n in taken if n not in ("model", "times", "inputs")]


@pytest.mark.parametrize("cls", [gr.Fit, Multistart, MonteCarlo, Bootstrap, Comparison], ids=lambda c: c.__name__)
def test_answers_are_typed_without_any(cls: type) -> None:
    """A type checker knows what every public method and property takes and gives."""
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        inner = getattr(found, "fget", None) or getattr(found, "func", None) or getattr(found, "__func__", found)
        if name[0] == "_" or not inspect.isfunction(inner):
            continue
        signature = inspect.signature(inner)
        assert signature.return_annotation is not inspect.Signature.empty, name
        said = [p.annotation for p in list(signature.parameters.values())[1:]] + [signature.return_annotation]
        assert all(a is not inspect.Parameter.empty and not re.search(r"\bAny\b", str(a)) for a in said), name
