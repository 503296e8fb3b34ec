"""Wrong things in the place of every argument of every public function and method.

Whatever is handed over, the answer is a result or one of our own errors, which names the argument. What takes nothing
wrong by its nature (a title may be any text) is accepted, and that is counted, too.
"""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from sweeping import Call, experiment, surface, wrong_things
from test_help import SURFACE

import grisaille as gr
from grisaille.arguments import BY_ANNOTATION, BY_FUNCTION, BY_NAME, annotations_of
from grisaille.errors import ArgumentError, GrisailleError

DEAR = {("executor", "None"), ("executor", "a large number"), ("profiles", "True")}
"""Right, and long: processes of their own, and profiles of every unknown."""


@dataclass
class Swept:
    """What became of the calls."""

    outcomes: Counter[str] = field(default_factory=Counter)
    foreign: list[str] = field(default_factory=list)
    vague: list[str] = field(default_factory=list)
    accepted: set[tuple[str, str, str]] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)


def sweep(calls: Iterator[Call], data: gr.Experiment, fit: gr.Fit) -> Swept:
    found = Swept()
    for call in calls:
        found.functions.add(call.name)
        for argument in call.names:
            for what, thing in wrong_things(fit, data).items():
                if (argument, what) not in DEAR:
                    _try(found, call, argument, what, thing)
    return found


def _try(found: Swept, call: Call, argument: str, what: str, thing: object) -> None:
    said = f"{call.name}({argument}={what})"
    try:
        call.function(**{**call.arguments, argument: thing})
        found.outcomes["accepted"] += 1
        found.accepted.add((call.name, argument, what))
    except ArgumentError as error:
        found.outcomes["refused"] += 1
        if argument not in str(error) or "; give " not in str(error):
            found.vague.append(f"{said}: {error}")
    except GrisailleError:
        found.outcomes["refused"] += 1
    except Exception as error:
        found.foreign.append(f"{said}: {type(error).__name__}: {error}")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swept]:
    folder = tmp_path_factory.mktemp("sweep")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), np.errstate(all="ignore"):
        patch.chdir(folder)
        warnings.simplefilter("ignore")
        calls = list(surface(Path(folder)))
        fit = next(c.arguments["fit"] for c in calls if c.name == "gr.bootstrap")
        yield sweep(iter(calls), experiment(), fit)


def test_wrong_things_everywhere(swept: Swept) -> None:
    """One test for all of it: processes that share the tests would each make the calls."""
    _no_exception_is_foreign(swept)
    _refusals_name_the_argument_and_what_it_takes(swept)
    _nonsense_is_not_taken(swept)
    _the_sweep_covers_the_surface(swept)


def _no_exception_is_foreign(swept: Swept) -> None:
    tried = sum(swept.outcomes.values()) + len(swept.foreign)
    print(f"{tried} calls of {len(swept.functions)} functions: {dict(swept.outcomes)}, {len(swept.foreign)} foreign")
    assert not swept.foreign, "\n".join(swept.foreign[:20])
    assert tried > 15_000


def _refusals_name_the_argument_and_what_it_takes(swept: Swept) -> None:
    assert not swept.vague, "\n".join(swept.vague[:20])


NONSENSE = [
    ("gr.OutputError", "rtol", "NaN"), ("gr.OutputError", "rtol", "a negative number"),
    ("gr.OutputError", "pieces", "True"), ("gr.OutputError", "projection", "'False'"),
    ("gr.OutputError", "tolerance", "NaN"), ("gr.SimulatedPEM", "seed", "a number"),
    ("gr.SimulatedPEM", "compiled", "'False'"), ("gr.Collocation", "debias", "'False'"),
    ("gr.simulate", "strict", "'False'"), ("gr.simulate", "seed", "a text"), ("gr.simulate", "threads", "zero"),
    ("gr.simulate", "between", "a text"), ("gr.fit", "progress", "'False'"), ("gr.fit", "guess", "an empty text"),
    ("gr.fit", "bounds", "zero"), ("gr.sensitivity", "rtol", "infinity"), ("gr.load", "check", "'False'"),
    ("Fit.predict", "horizon", "a negative number"), ("Fit.predict", "horizon", "NaN"),
    ("Fit.predict", "bands", "a text"), ("Fit.profile", "threshold", "a text"),
    ("Experiment.from_dataset", "time", "a number"), ("Experiment.split", "seed", "a negative number"),
    ("gr.well_posedness", "trajectory", "a text"),
]  # fmt: skip


def _nonsense_is_not_taken(swept: Swept) -> None:
    """Each was accepted, and meant nothing or something else."""
    assert {case[0] for case in NONSENSE} <= swept.functions
    assert not swept.accepted.intersection(NONSENSE)


def _the_sweep_covers_the_surface(swept: Swept) -> None:
    tried = {name.partition("(")[0].partition(" ")[0] for name in swept.functions}
    closed = {"gr.Connector", "Model.equations", "Model.noise_covariance", "Experiment.replace", "gr.Model"}
    folders = {"Problem.fit", "Problem.study"}
    left = [
        n
        for n in SURFACE
        if n not in tried and n not in closed | folders and inspect.signature(SURFACE[n][0]).parameters
    ]
    assert left == ["Fit.states"], "tried with a fit that has states"
    assert "Fit by KalmanML.states" in swept.functions


def test_no_kind_is_left_over() -> None:
    """Every function and argument in the tables exists, and every argument is annotated."""
    functions = {name.removeprefix("gr."): function for name, (function, *_) in SURFACE.items()}
    estimators = {
        cls.__name__: cls for cls in (gr.OutputError, gr.KalmanML, gr.SimulatedPEM, gr.Collocation, gr.ParticleML)
    }
    inside = {name for name in BY_FUNCTION if name.startswith("Fitted.")}
    everything = {**functions, **estimators, "Simulator": gr.Simulator}
    taken = {name: annotations_of(function) for name, function in everything.items()}
    assert set(BY_FUNCTION) - inside <= set(taken), set(BY_FUNCTION) - inside - set(taken)
    for name, kinds in BY_FUNCTION.items():
        assert name in inside or set(kinds) <= set(taken[name]), name
    assert set(BY_NAME) <= {argument for arguments in taken.values() for argument in arguments}
    written = {text.removesuffix(" | None") for arguments in taken.values() for text in arguments.values()}
    assert set(BY_ANNOTATION) <= written, set(BY_ANNOTATION) - written


@pytest.fixture(scope="module")
def fit() -> gr.Fit:
    from sweeping import Calm

    return gr.fit(Calm(), experiment(), ["k"], gr.OutputError())


def test_what_newcomers_met(fit: gr.Fit) -> None:
    """A record to diagnose, a fit as parameters, a table as data, a class as model."""
    import pandas as pd
    from sweeping import Calm

    frame = pd.DataFrame({"u": [1.0], "y": [1.0]})
    with pytest.raises(ArgumentError, match=r"level is an Experiment; give a number .*fit\.validate\(experiment\)"):
        fit.diagnose(experiment())
    here = gr.evaluate(Calm(), experiment(), fit.method, parameters=fit)
    assert here.log_likelihood == pytest.approx(fit.log_likelihood)
    with pytest.raises(ArgumentError, match=r"experiments is a DataFrame; give a gr\.Experiment .*from_frame"):
        gr.fit(Calm(), frame)
    with pytest.raises(ArgumentError, match=r"model is the class Calm; .* Make an instance: Calm\(\)"):
        gr.fit(Calm, experiment())
    with pytest.raises(GrisailleError, match=r"method is the class KalmanML; make an instance: gr\.KalmanML\(\)"):
        gr.fit(Calm(), experiment(), method=gr.KalmanML)
