"""Chains on disk: a study's file (``study.store``) whose rows are the blocks that chains have drawn.

Row number·MAX_BLOCKS + k is block k of a chain: its transitions, and the state from which the chain goes on. A chain
whose process was killed continues from its last block, with the numbers that it would have drawn; more draws of the
same posterior may be asked for later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import grisaille
from grisaille.posteriors.chain import Block, Chain, SamplingOptions
from grisaille.posteriors.chain_worker import ChainAnswer
from grisaille.posteriors.target import PosteriorTarget, PosteriorTask
from grisaille.study.header import options_text
from grisaille.study.store import Store
from grisaille.study.study_task import RunAnswer

MAX_BLOCKS = 1_000_000
"""Blocks of a chain."""


class ChainStore:
    """The file of one posterior."""

    def __init__(self, path: str | Path, header: dict[str, str], unknowns: int) -> None:
        self.store, self.unknowns = Store(path, header, []), unknowns
        self.blocks: dict[int, int] = {}

    @property
    def path(self) -> Path:
        """The file."""
        return self.store.path

    def read(self, chains: int) -> dict[int, list[ChainAnswer]]:
        """Return what chains 0, …, chains − 1 have drawn so far, in order."""
        found: dict[int, list[ChainAnswer]] = {}
        for run, answer in sorted(self.store.read(chains * MAX_BLOCKS).items()):
            chain, block = Chain.of_data(answer.row["chain"]), Block.of_data(answer.row["block"], self.unknowns)
            found.setdefault(run // MAX_BLOCKS, []).append(ChainAnswer(chain, block, answer.seconds))
        self.blocks = {number: len(answers) for number, answers in found.items()}
        return found

    def write(self, answers: Iterable[ChainAnswer]) -> None:
        """Keep blocks; each is there completely or not at all."""
        rows = []
        for a in answers:
            k = self.blocks.get(a.chain.number, 0)
            self.blocks[a.chain.number] = k + 1
            row = {"chain": a.chain.as_data(), "block": a.block.as_data()}
            rows.append(RunAnswer(a.chain.number * MAX_BLOCKS + k, a.chain.seed, a.seconds, row))
        self.store.write(rows)

    def close(self) -> None:
        """Close the file."""
        self.store.close()


def header_of(task: PosteriorTask, target: PosteriorTarget, options: SamplingOptions, seed: int) -> dict[str, str]:
    """Return what must be the same when a posterior is resumed."""
    return {
        "kind": "posterior",
        "model": task.model.fingerprint[:16],
        "parameters": json.dumps({n: p.formula or repr(p.value) for n, p in task.model.parameters.items()}),
        "data": json.dumps({e.name: e.fingerprint[:16] for e in task.experiments}),
        "method": options_text(task.method),
        "priors": json.dumps(target.describe_priors()),
        "seed": str(seed),
        "tune": str(options.tune),
        "acceptance": repr(options.acceptance),
        "grisaille": grisaille.__version__,
    }
