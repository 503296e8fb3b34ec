"""Several chains at once: carried on in blocks by processes, each block kept when it is there, resumed where they were.

A block takes about a second, so that progress is seen, Ctrl-C is heard and little is lost when a process is killed. How
chains are cut into blocks does not change their numbers. Blocks whose process died are tried again one at a time; one
that loses its process again ends the call, with everything else kept in the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from typing import Protocol

from grisaille import interrupts
from grisaille.errors import EstimationError, GrisailleError
from grisaille.posteriors.chain import Block, Chain, SamplingOptions
from grisaille.posteriors.chain_worker import ChainAnswer, ChainOrder, carry_on, carry_on_packed
from grisaille.posteriors.metric import Metric
from grisaille.posteriors.target import PosteriorTarget, PosteriorTask
from grisaille.study.processes import Pool, processors

BLOCK_SECONDS = 1.0
FIRST_BLOCK, MAX_BLOCK = 5, 500
"""Transitions of the block that shows how long one takes, and of any other."""
USUAL_EVALUATIONS = 8
"""Gradients of a transition, for the choice of workers."""
SHORT_SECONDS = 3.0
"""Chains that take less altogether are drawn in this process."""

Keep = Callable[[list[ChainAnswer]], None]


class ChainWorkers(Protocol):
    """Takes orders and gives futures of answers."""

    workers: int

    def submit(self, order: ChainOrder) -> Future[ChainAnswer]: ...

    def renew(self) -> None:
        """New workers after some died."""
        ...

    def close(self, *, now: bool) -> None: ...


class _Here:
    """This process."""

    workers = 1

    def __init__(self, target: PosteriorTarget) -> None:
        self.target = target

    def submit(self, order: ChainOrder) -> Future[ChainAnswer]:
        future: Future[ChainAnswer] = Future()
        future.set_result(carry_on(self.target, order))
        return future

    def renew(self) -> None:
        """Nobody can have died."""

    def close(self, *, now: bool) -> None:
        """Nobody to send home."""


class _Processes:
    """Processes of our own."""

    def __init__(self, task: PosteriorTask, workers: int) -> None:
        self.task, self.workers, self.pool = task, workers, Pool(workers)

    def submit(self, order: ChainOrder) -> Future[ChainAnswer]:
        return self.pool.submit(carry_on_packed, self.task.key, self.task.packed, order)

    def renew(self) -> None:
        self.pool.abandon()
        self.pool = Pool(self.workers)

    def close(self, *, now: bool) -> None:
        self.pool.abandon() if now else self.pool.shutdown()


class _Given:
    """The workers behind an executor that belongs to the user."""

    def __init__(self, task: PosteriorTask, executor: Executor, chains: int) -> None:
        self.task, self.executor, self.workers = task, executor, chains

    def submit(self, order: ChainOrder) -> Future[ChainAnswer]:
        try:
            return self.executor.submit(carry_on_packed, self.task.key, self.task.packed, order)
        except RuntimeError as error:
            raise EstimationError(f"The executor takes no more chains: {error}. Give a new one.") from error

    def renew(self) -> None:
        """A broken executor says so at the next submission."""

    def close(self, *, now: bool) -> None:
        """The executor stays open: its owner closes it."""


def make_workers(
    executor: Executor | int | str | None,
    task: PosteriorTask,
    target: PosteriorTarget,
    chains: int,
    transitions: int,
    seconds: float,
) -> ChainWorkers:
    """Return the workers that ``executor=`` asks for.

    transitions : of all chains together
    seconds : of an evaluation of the density
    """
    is_short = transitions * USUAL_EVALUATIONS * seconds < SHORT_SECONDS
    if executor == "serial" or (executor is None and (processors() == 1 or chains == 1 or is_short)):
        return _Here(target)
    if executor is None or executor == "processes":
        return _Processes(task, min(processors(), chains))
    if isinstance(executor, int) and not isinstance(executor, bool) and executor > 0:
        return _Processes(task, min(executor, chains))
    if isinstance(executor, Executor) or callable(getattr(executor, "submit", None)):
        return _Given(task, executor, chains)  # type: ignore[arg-type]
    raise EstimationError(
        f"executor is {executor!r}; give None (a process per processor), a number of processes, 'serial', or an "
        f"executor such as client.get_executor() of a Dask client."
    )


@dataclass
class _Run:
    """One chain on its way."""

    number: int
    chain: Chain | None
    left: int
    pace: float = 0.0
    """Seconds of a transition; zero before it is known."""

    def length(self) -> int:
        """Return the transitions of the next block."""
        fitting = int(BLOCK_SECONDS / self.pace) if self.pace > 0 else FIRST_BLOCK
        return max(1, min(fitting, MAX_BLOCK, self.left))

    def follow(self, answer: ChainAnswer, made: int) -> None:
        self.chain, self.left, self.pace = answer.chain, self.left - made, answer.seconds / max(made, 1)


def run_chains(
    crew: ChainWorkers,
    metric: Metric,
    seed: int,
    options: SamplingOptions,
    chains: Sequence[Chain | None],
    keep: Keep,
) -> None:
    """Carry on chains until each has all of its transitions.

    chains : where they are; None before the first transition
    keep : is given every block
    """
    total = options.tune + options.draws
    todo = [_Run(k, chain, total - (0 if chain is None else chain.done)) for k, chain in enumerate(chains)]
    waiting = [run for run in todo if run.left > 0]
    finished = False
    try:
        while waiting:
            suspects = _deal_out(crew, waiting, lambda run: _order(run, metric, seed, options), keep)
            waiting = []
            for run in suspects:
                _quarantine(crew, run, _order(run, metric, seed, options), keep)
                waiting += [run] if run.left > 0 else []
        finished = True
    finally:
        crew.close(now=not finished)


def _order(run: _Run, metric: Metric, seed: int, options: SamplingOptions) -> ChainOrder:
    return ChainOrder(run.number, seed, metric, run.chain, run.length(), options)


def _deal_out(
    crew: ChainWorkers, waiting: Sequence[_Run], order: Callable[[_Run], ChainOrder], keep: Keep
) -> list[_Run]:
    """Carry on all chains, one block of each at a time; return those that lost their process."""
    left, lost = list(waiting), list[_Run]()
    pending: dict[Future[ChainAnswer], tuple[_Run, int]] = {}
    while left or pending:
        while left and len(pending) < crew.workers:
            run = left.pop(0)
            asked = order(run)
            try:
                pending[crew.submit(asked)] = run, asked.transitions
            except BrokenExecutor:
                lost.append(run)
        if not pending:
            break
        done, _ = wait(pending, return_when=FIRST_COMPLETED)
        interrupts.check()
        for future in done:
            run, made = pending.pop(future)
            answer = _answer(future)
            if answer is None:
                lost.append(run)
                continue
            run.follow(answer, made)
            keep([answer])
            if run.left > 0:
                left.insert(0, run)
    if lost:
        crew.renew()
    return lost


def _quarantine(crew: ChainWorkers, run: _Run, order: ChainOrder, keep: Keep) -> None:
    """Carry on one chain that lost its process, alone; a second loss is refused."""
    future = crew.submit(order)
    wait([future])
    answer = _answer(future)
    if answer is None:
        done = 0 if run.chain is None else run.chain.done
        raise EstimationError(
            f"The process of chain {run.number} died twice after {done} transitions, the second time with nothing "
            f"beside it ({type(_error(future)).__name__}): too little memory, or a crash in compiled code. What all "
            f"chains had drawn is in store=, where one was given; executor='serial' shows the crash itself."
        )
    run.follow(answer, order.transitions)
    keep([answer])


def _answer(future: Future[ChainAnswer]) -> ChainAnswer | None:
    """Return None where the worker was lost; what the worker itself refuses is raised."""
    error = _error(future)
    if isinstance(error, GrisailleError):
        raise error
    if error is not None and not isinstance(error, BrokenExecutor | CancelledError):
        raise error
    return None if error is not None else future.result()


def _error(future: Future[ChainAnswer]) -> BaseException | None:
    return CancelledError("the executor gave the chain up") if future.cancelled() else future.exception()


def seconds_of(target: PosteriorTarget, metric: Metric) -> float:
    """Return the processor time of an evaluation of the density and its gradient."""
    begin = time.process_time()
    target.value_and_gradient(metric.centre)
    return time.process_time() - begin


def joined(answers: Sequence[ChainAnswer], transitions: int) -> Block:
    """Return the first transitions of the blocks of a chain as one block."""
    whole = Block.joined([a.block for a in answers])
    if len(whole.energy) <= transitions:
        return whole
    cut = {n: v[:transitions] for n, v in vars(whole).items() if n != "divergences"}
    return Block(**cut, divergences=whole.divergences[: int(cut["diverging"].sum())])
