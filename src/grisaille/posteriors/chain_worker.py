"""The work of a process: make the target of a task once, then carry on any of its chains."""

from __future__ import annotations

import pickle
import threading
import time
from dataclasses import dataclass

import numpy as np

from grisaille.errors import EstimationError
from grisaille.posteriors.chain import Block, Chain, SamplingOptions, advance, begin_chain
from grisaille.posteriors.metric import Metric
from grisaille.posteriors.target import PosteriorTarget, PosteriorTask

_local = threading.local()
_preparing = threading.Lock()
"""Symbolic work is not made for several threads at once."""


@dataclass(frozen=True, eq=False)
class ChainOrder:
    """What is to be done with a chain.

    number, seed : which one, of which posterior
    metric : with which it begins
    chain : where it is; None before its first transition
    transitions : how many more to make
    """

    number: int
    seed: int
    metric: Metric
    chain: Chain | None
    transitions: int
    options: SamplingOptions


@dataclass(frozen=True, eq=False)
class ChainAnswer:
    """A chain after some transitions, what they drew, and how long that took."""

    chain: Chain
    block: Block
    seconds: float


def carry_on(target: PosteriorTarget, order: ChainOrder) -> ChainAnswer:
    """Carry on a chain."""
    begin = time.perf_counter()
    chain = order.chain or begin_chain(target, order.metric, order.number, order.seed)
    if chain is None:
        reason = target.failure(order.metric.centre)
        raise EstimationError(
            f"Chain {order.number} finds no point to begin at: the posterior has no density around the estimates"
            f"{f' ({reason})' if reason else ''}. Give narrower priors or bounds."
        )
    after, block = advance(target, chain, order.transitions, order.options)
    return ChainAnswer(after, block, time.perf_counter() - begin)


def carry_on_packed(key: str, packed: bytes, order: ChainOrder) -> ChainAnswer:
    """Carry on a chain of a packed task; the target is kept for the next call."""
    if getattr(_local, "key", None) != key:
        with _preparing:
            _local.target = _unpacked(packed).target()
            _local.key = key
    with np.errstate(over="ignore", under="ignore"):
        return carry_on(_local.target, order)


def _unpacked(packed: bytes) -> PosteriorTask:
    try:
        task: PosteriorTask = pickle.loads(packed)
    except AttributeError as error:
        raise EstimationError(
            f"A worker process cannot find something that was defined in a script or notebook: {error}. Put the class "
            f"of the method into a module of its own, or use executor='serial'."
        ) from error
    return task
