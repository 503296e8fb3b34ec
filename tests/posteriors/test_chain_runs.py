"""Chains in processes, interrupted, killed and resumed: the numbers are those of an undisturbed run."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille.estimation import Fitted
from grisaille.posteriors import PosteriorTarget, chain_runs
from grisaille.results import Posterior

U = np.linspace(0.0, 2.0, 10)


class Line(gr.Model):
    a = gr.Parameter(0.1, prior=gr.Normal(0.0, 1.0))
    b = gr.Parameter(0.1, prior=gr.Normal(0.0, 1.0))
    u = gr.Input()
    y = gr.Output(a + b * u, noise=0.5)
    equations = []


DATA = gr.Experiment(None, {"u": U}, {"y": 0.4 + 0.8 * U + 0.3 * np.cos(9 * U)})
SMALL: dict[str, Any] = {"draws": 60, "tune": 40, "chains": 2, "seed": 4}


@cache
def fit() -> Any:
    return gr.fit(Line(), DATA, ["a", "b"], gr.OutputError())


@cache
def undisturbed() -> Posterior:
    found: Posterior = fit().posterior(executor="serial", **SMALL)
    return found


def interrupted_after(evaluations: int, monkeypatch: pytest.MonkeyPatch, error: Callable[[], BaseException]) -> None:
    count, evaluate = 0, PosteriorTarget.value_and_gradient

    def counted(self: PosteriorTarget, xi: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal count
        count += 1
        if count == evaluations:
            raise error()
        return evaluate(self, xi)

    monkeypatch.setattr(PosteriorTarget, "value_and_gradient", counted)


def test_an_interrupted_posterior_goes_on_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_runs, "MAX_BLOCK", 11)
    path = tmp_path / "line.db"
    with monkeypatch.context() as once:
        interrupted_after(400, once, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt) as stop:
            fit().posterior(executor="serial", store=path, **SMALL)
    (said,) = stop.value.__notes__
    assert "of 200 transitions are in" in said and "the same call continues from there" in said
    assert 10 <= int(said.split()[0]) < 200
    found = fit().posterior(executor="serial", store=path, **SMALL)
    assert found.draws.equals(undisturbed().draws) and found.statistics.equals(undisturbed().statistics)
    with monkeypatch.context() as never:  # everything is in the file
        interrupted_after(40, never, AssertionError)
        assert fit().posterior(executor="serial", store=path, **SMALL).draws.equals(found.draws)


def test_more_and_fewer_draws_from_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "line.db"
    longer = fit().posterior(executor="serial", store=path, **{**SMALL, "draws": 90})
    assert longer.draws.isel(draw=slice(60)).equals(undisturbed().draws)
    assert fit().posterior(executor="serial", store=path, **SMALL).draws.equals(undisturbed().draws)
    with pytest.raises(gr.EstimationError, match=r"holds another study.*seed"):
        fit().posterior(executor="serial", store=path, **{**SMALL, "seed": 5})
    with pytest.raises(gr.EstimationError, match=r"holds another study.*priors"):
        fit().posterior(executor="serial", store=path, priors={"a": gr.Normal(0.0, 2.0)}, **SMALL)


class Failing(Executor):
    """Loses its process at some submissions."""

    def __init__(self, lost: set[int]) -> None:
        self.lost, self.count = lost, 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.count += 1
        future: Future[Any] = Future()
        if self.count in self.lost:
            future.set_exception(BrokenProcessPool("killed"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_process_that_dies_costs_its_block_alone() -> None:
    assert fit().posterior(executor=Failing({3, 4}), **SMALL).draws.equals(undisturbed().draws)


def test_a_chain_that_kills_its_process_twice_ends_the_call_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "line.db"
    with pytest.raises(gr.EstimationError, match=r"process of chain \d died twice after \d+ transitions"):
        fit().posterior(executor=Failing(set(range(3, 9))), store=path, **SMALL)
    found = fit().posterior(executor="serial", store=path, **SMALL)
    assert found.draws.equals(undisturbed().draws)


def test_what_a_worker_refuses_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_after(200, monkeypatch, lambda: gr.EstimationError("the tank is empty"))
    with pytest.raises(gr.EstimationError, match="the tank is empty"):
        fit().posterior(executor=Failing(set()), **SMALL)


@pytest.mark.slow
def test_processes_give_the_same_draws_and_ctrl_c_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fit().posterior(executor=2, **SMALL).draws.equals(undisturbed().draws)
    monkeypatch.setattr(chain_runs, "BLOCK_SECONDS", 0.05)

    def stop(*given: Any) -> Any:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(chain_runs._Run, "follow", stop)
    with pytest.raises(KeyboardInterrupt):
        fit().posterior(executor=2, **SMALL)


def test_progress_counts_transitions(capsys: pytest.CaptureFixture[str]) -> None:
    fit().posterior(executor="serial", progress=True, **SMALL)
    said = capsys.readouterr().err
    assert "2 chains of Line" in said and "200/200" in said and "0 divergent" in said
    assert isinstance(fit(), Fitted)
