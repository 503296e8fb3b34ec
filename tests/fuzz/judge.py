"""One problem, drawn by its seed: its reference, the package's answer, and the verdict."""

from __future__ import annotations

import signal
import time
import warnings
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np

import grisaille as gr
from fuzz.disguise import Disguise, disguise
from fuzz.hidden import Features, Hidden
from fuzz.truth import IllPosed, Reference, Truth, growth

RTOL = 1e-8
MARGIN = 1e-5
"""Largest error of any variable, relative to its largest size, that counts as solved at RTOL; times the growth of small
errors where that is above ten."""
LONGEST = 20.0
"""Seconds of processor time."""
END = 8.0
FINE = 801
"""Instants at which a gap is looked for: it may be passed between two outputs."""


@dataclass
class Verdict:
    seed: int
    outcome: str
    """``solved``, ``refused``, ``wrong``, ``crash``, ``slow``, ``skipped``."""
    detail: str
    error: float
    seconds: float
    features: Features
    expected: str
    """``solved``; ``refused`` where there is no solution; ``either`` where a jump is mixed into a constraint."""
    kinds: tuple[str, ...] = ()


@dataclass
class Problem:
    hidden: Hidden
    truth: Truth
    disguise: Disguise
    growth: float
    solvable: bool


def pose(seed: int, **changes: Any) -> Problem:
    """The problem of a seed; ``changes`` to its features make a failure smaller. Raises ``IllPosed``."""
    features = replace(Features.draw(np.random.default_rng([seed, 7])), **changes)
    hidden = Hidden(seed, features)
    reference = Reference(hidden, END)
    theta = np.linspace(0.0, END, features.outputs)
    truth = reference.solve(theta, hidden.y0)
    factor = growth(reference, theta, hidden.y0, truth)
    if factor > 1e3:
        raise IllPosed("errors grow a thousandfold")
    first = np.hstack([truth.y[0], truth.q[0], truth.multiplier[0], truth.a[0]])
    solvable = all(layer.solvable for layer in hidden.layers) or not _reaches_gap(
        hidden, reference.solve(np.linspace(0.0, END, FINE), hidden.y0)
    )
    return Problem(hidden, truth, disguise(hidden, END, first), factor, solvable)


def mixes_jumps(hidden: Hidden) -> bool:
    """Whether equations that jump or bend are added to others of which some combination has to be differentiated.

    The jump cancels in the right combination, so there is a solution; but an analysis that differentiates one of the
    equations as they are written meets an impulse, and may refuse.
    """
    F = hidden.features
    switched = F.jumps_or_bends or any(layer.has_relation or layer.held for layer in hidden.layers)
    return bool(F.chain and switched and F.rows != "none")


def _reaches_gap(hidden: Hidden, truth: Truth) -> bool:
    column = 0
    for layer in hidden.layers:
        if layer.kind == "gap" and (truth.a[:, column] == 0.0).any():
            return True
        column += layer.count
    return False


def judge(seed: int, **changes: Any) -> Verdict:
    features = replace(Features.draw(np.random.default_rng([seed, 7])), **changes)
    begin = time.process_time()
    try:
        problem = pose(seed, **changes)
    except IllPosed as reason:
        return Verdict(seed, "skipped", str(reason), 0.0, 0.0, features, "")
    kinds = tuple(layer.kind for layer in problem.hidden.layers)
    expected = "refused" if not problem.solvable else "either" if mixes_jumps(problem.hidden) else "solved"
    begin = time.process_time()

    def verdict(outcome: str, detail: str, error: float = float("nan")) -> Verdict:
        return Verdict(seed, outcome, detail, error, time.process_time() - begin, features, expected, kinds)

    try:
        with warnings.catch_warnings(), _Limit(LONGEST):
            warnings.simplefilter("error")
            if any(layer.guess for layer in problem.hidden.layers):  # starts of algebraic unknowns are rough
                warnings.filterwarnings("ignore", message=".* not met", category=UserWarning)
            result = simulate(problem)
    except gr.GrisailleError as refusal:
        return verdict("refused", str(refusal))
    except TooSlow:
        return verdict("slow", f"more than {LONGEST:g} s")
    except Exception as error:
        return verdict("crash", f"{type(error).__name__}: {error}")
    error, where = deviation(problem, result)
    if not problem.solvable:
        return verdict("wrong", "completed although the equations have no solution", error)
    margin = MARGIN * max(1.0, problem.growth / 10)
    return verdict("solved" if error <= margin else "wrong", where, error)


def simulate(problem: Problem, **options: Any) -> Any:
    d, F = problem.disguise, problem.hidden.features
    return gr.simulate(
        d.model, problem.truth.theta * d.tau, inputs=d.inputs, hold=d.hold or None, rtol=RTOL, method=F.method,
        **options,
    )  # fmt: skip


def deviation(problem: Problem, result: Any) -> tuple[float, str]:
    """The largest error over all variables, relative to the variable's size; rows beside a switch are left out."""
    truth, d = problem.truth, problem.disguise
    exact = d.true_values(truth)
    got = np.stack([result[name].values for name in d.names], axis=1)
    size = np.abs(exact).max(axis=0)
    size = np.where(size > 0, size, d.sizes)
    beside = np.min(np.abs(truth.theta[:, None] - truth.switches[None, :]), axis=1) < 1e-5
    beside[0] = False
    errors = np.where(beside[:, None], 0.0, np.abs(got - exact) / size)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    row, column = np.unravel_index(int(np.argmax(errors)), errors.shape)
    return float(errors[row, column]), f"{d.names[column]} at θ = {truth.theta[row]:g}"


class TooSlow(Exception):
    pass


class _Limit:
    """Raises ``TooSlow`` after so many seconds of processor time, between two slices of a run."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        self.old = signal.signal(signal.SIGVTALRM, self._stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, self.old)

    @staticmethod
    def _stop(signum: int, frame: FrameType | None) -> None:
        raise TooSlow
