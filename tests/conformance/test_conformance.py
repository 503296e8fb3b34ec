"""Every estimator and every animal of the zoo: the truth is found within its errors, or refused as declared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import grisaille as gr
from conformance.checks import EVERYWHERE, IN_TURN, Pair, refused
from conformance.estimators import ESTIMATORS
from conformance.zoo import ZOO

PAIRS = [
    Pair(animal, method)
    for animal, entry in ZOO.items()
    for method, estimator in ESTIMATORS.items()
    if not entry.refused and not estimator.is_another(entry)
]
FITTED = [pair for pair in PAIRS if not pair.refusal]


def checks() -> Iterator[tuple[Pair, str]]:
    """The checks of a pair stand together, so that one process makes its fit once; the dear ones take turns."""
    turn = 0
    for pair in FITTED:
        if pair.estimator.chooses:
            yield pair, "fit"
            continue
        yield from ((pair, name) for name in (*EVERYWHERE, *(IN_TURN if turn % 3 == 0 else ())))
        turn += 1


@pytest.mark.parametrize(("pair", "check"), list(checks()), ids=str)
def test_pair(pair: Pair, check: str, tmp_path: Path) -> None:
    declared = pair.estimator.inability(check, pair.entry)
    run = (EVERYWHERE | IN_TURN)[check]
    if not declared:
        run(pair, tmp_path)
    else:
        with pytest.raises(gr.GrisailleError, match=re.escape(declared)):
            run(pair, tmp_path)


@pytest.mark.parametrize("pair", [p for p in PAIRS if p.refusal], ids=str)
def test_refusal(pair: Pair, tmp_path: Path) -> None:
    refused(pair, tmp_path)


def test_a_third_is_profiled_and_bootstrapped() -> None:
    """Of the pairs that are fitted, in turn, so that every estimator and nearly every animal has its share."""
    dear = {name: [pair for pair, check in checks() if check == name] for name in IN_TURN}
    fitted = [pair for pair in FITTED if not pair.estimator.chooses]
    for pairs in dear.values():
        assert len(pairs) >= len(fitted) // 3
        assert {p.method for p in pairs} == {p.method for p in fitted}
        assert len({p.animal for p in pairs}) >= 0.9 * len({p.animal for p in fitted})
