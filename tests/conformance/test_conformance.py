"""Every estimator and every animal of the zoo: the truth is found within its errors, or refused as declared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import grisaille as gr
from conformance.checks import EVERYWHERE, IN_TURN, Pair, refused
from conformance.estimators import ESTIMATORS
from conformance.expected_failures import EXPECTED, reason_of
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
    for k, pair in enumerate(FITTED):
        names = ["fit"] if pair.estimator.chooses else [*EVERYWHERE, *(IN_TURN if k % 3 == 0 else ())]
        yield from ((pair, name) for name in names)


def case(pair: Pair, check: str) -> object:
    name = f"{pair}-{check}"
    reason = reason_of(name)
    marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
    return pytest.param(pair, check, id=name, marks=marks)


@pytest.mark.parametrize(("pair", "check"), [case(*c) for c in checks()])
def test_pair(pair: Pair, check: str, tmp_path: Path) -> None:
    declared = pair.estimator.inability(check, pair.entry)
    run = (EVERYWHERE | IN_TURN)[check]
    if not declared:
        run(pair, tmp_path)
    else:
        with pytest.raises(gr.GrisailleError, match=re.escape(declared)):
            run(pair, tmp_path)


@pytest.mark.parametrize(("pair", "check"), [case(p, "refused") for p in PAIRS if p.refusal])
def test_refusal(pair: Pair, check: str, tmp_path: Path) -> None:
    refused(pair, tmp_path)


def test_no_expected_failure_is_left_over() -> None:
    names = {f"{pair}-{check}" for pair, check in checks()} | {f"{pair}-refused" for pair in PAIRS if pair.refusal}
    names |= {f"{name}-same-words" for name, entry in ZOO.items() if entry.refused}
    assert set(EXPECTED) <= names
