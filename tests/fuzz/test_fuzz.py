"""Fifty fixed problems of the fuzz: solved or refused, never wrong, never a crash; nine of ten solved.

``python tests/fuzz/run.py --count 1000`` tries a thousand.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import pytest

from fuzz.judge import Problem, Verdict, deviation, judge, pose
from fuzz.run import is_fault, line, table
from fuzz.truth import IllPosed

SEEDS = tuple(range(1000, 1060))
COMPILED = SEEDS[::15]


@cache
def verdict_of(seed: int) -> Verdict:
    return judge(seed, compiled=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_right_or_refused(seed: int) -> None:
    verdict = verdict_of(seed)
    assert not is_fault(verdict), line(verdict)
    if verdict.expected == "refused":
        assert verdict.outcome == "refused", line(verdict)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", COMPILED)
def test_compiled_agrees(seed: int) -> None:
    verdict = judge(seed, compiled=True)
    assert verdict.outcome == verdict_of(seed).outcome, line(verdict)


def test_nine_of_ten_are_solved() -> None:
    verdicts = [verdict_of(seed) for seed in SEEDS]
    posed = [v for v in verdicts if v.expected == "solved"]
    assert len([v for v in verdicts if v.expected]) >= 50
    assert sum(v.outcome == "solved" for v in posed) >= 0.9 * len(posed), table(verdicts)


def test_a_wrong_answer_is_noticed() -> None:
    """A judge that accepted anything would prove nothing: an answer off by a thousandth is told apart."""
    problem = next(p for p in map(_posed, SEEDS) if p is not None and p.solvable)
    exact = problem.disguise.true_values(problem.truth)
    answer = {n: SimpleNamespace(values=exact[:, k]) for k, n in enumerate(problem.disguise.names)}
    assert deviation(problem, answer)[0] == 0.0
    name = problem.disguise.names[0]
    answer[name] = SimpleNamespace(values=exact[:, 0] * 1.001)
    error, where = deviation(problem, answer)
    assert error == pytest.approx(1e-3) and name in where


def _posed(seed: int) -> Problem | None:
    try:
        return pose(seed)
    except IllPosed:
        return None
