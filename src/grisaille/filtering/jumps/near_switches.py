"""Whether a filter's states come near a switch across which the model jumps, and whether its steps see the jump.

A linearised filter knows the model on one side of a switch. Along its path the gap g of every jumping relation has the
mean g(x) and the standard deviation s = (G P Gᵀ)^½, G = ∂g/∂x; where the band of ± 3 s reaches the switch, or the mean
passes it, what lies on the other side is missing from mean and covariance, and from the likelihood.

The unscented filter averages over both sides (``averages``). It asks that one step does not carry the mean further than
``MAX_PASSED_DEVIATIONS`` standard deviations across a switch, for then neither average nor derivatives see when that
was; and that
stairs are wider than what is known of their argument.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.cache import IdentityKey
from grisaille.compilation.kalman.compiled_pass import PreparedPass
from grisaille.compilation.kalman.passing import FilterPass
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.model_jumps import ModelJump
from grisaille.filtering.algebraic_model import AlgebraicModel
from grisaille.filtering.jumps.sizes import JumpPoints, too_large
from grisaille.filtering.passes import Passes

SWITCH_BAND = 3.0
"""Standard deviations within which a switch is reached."""
MAX_PASSED_DEVIATIONS = 6.0
"""Standard deviations by which the mean may pass a switch in one step."""
MAX_EXAMINED_POINTS = 50
"""Points near a switch at which the size of a jump is looked at."""
MAX_STAIR_DEVIATION = 0.5
"""Standard deviation of the argument of ``floor``, in steps of the stairs."""


@dataclass(frozen=True, eq=False)
class _Course:
    """One gap along the record: mean, standard deviation and time, in the order of the pass."""

    t: Floats
    mean: Floats
    deviation: Floats


def near_switch(filter: Passes, q: Floats, x0: Floats, z0: Floats | None) -> str:
    """Return why a filter must not be believed at q, in words; empty where it may."""
    model = filter.model
    given, kept = _every_step(filter, q, x0, z0)
    for jump in model.jumps:
        course = _course(filter, jump, given, kept, q)
        averages = filter.kind.update == "unscented" and not _inside_equations(filter, jump)
        if averages:
            found = _unresolved(jump, course) or too_large(model, jump, _near(filter, jump, course, given, kept), q)
        else:
            found = _reached(filter, jump, course)
        if found:
            return found
    return ""


def _every_step(filter: Passes, q: Floats, x0: Floats, z0: Floats | None) -> tuple[FilterPass, Floats]:
    """Return the pass with a bound after every step, and what the filter carries there before and after updates."""
    nothing = np.zeros((0, len(q)))
    with np.errstate(all="ignore"):
        whole = filter.prepared(q)
        s = filter.start(whole, q, nothing, x0, z0)
        given = PreparedPass(whole.given.step_by_step())
        kept = filter.carry(given, q, s, nothing, keep=True).kept
    assert kept is not None
    return given.given, kept


def _course(filter: Passes, jump: ModelJump, given: FilterPass, kept: Floats, q: Floats) -> _Course:
    """Return moments before each update, with the inputs before and after a jump there, and after the update."""
    n, nz = filter.model.n, int(filter.model.z.numel())
    key = "gap", IdentityKey(jump), filter.newton
    function = filter.model.cached_value(key, lambda: _gap_function(AlgebraicModel(filter.model, filter.newton), jump))
    before = np.concatenate([given.signals[:1], given.stages[given.edges[1:] - 1]])
    signals = np.stack([before, given.signals, given.signals], axis=1).reshape(3 * len(before), given.signals.shape[1])
    s = kept[:, [0, 0, 1]].reshape(-1, kept.shape[2])
    t = np.repeat(given.bounds, 3)
    x, P, z = filter.packing.split(s)
    many = np.repeat(q[:, None], len(t), axis=1)
    mean, slope = function(t[None], x.T, z[:, :nz].T, signals.T, many)
    G = np.array(slope.full()).reshape(len(t), n)
    variance = np.einsum("ki,kij,kj->k", G, P, G)
    with np.errstate(invalid="ignore"):
        return _Course(t, np.array(mean.full()).ravel(), np.sqrt(np.maximum(variance, 0.0)))


def _gap_function(closed: AlgebraicModel, jump: ModelJump) -> ca.Function:
    """Return the gap and its slope by the states."""
    gap = closed.formula(jump.gap)
    return ca.Function("gap", closed.plain_symbols, [gap, ca.densify(ca.jacobian(gap, closed.model.X))])


def _near(filter: Passes, jump: ModelJump, course: _Course, given: FilterPass, kept: Floats) -> JumpPoints:
    """Return a few points before the updates at which the band reaches the switch, samples first."""
    here = slice(1, None, 3)
    with np.errstate(invalid="ignore"):
        reached = np.abs(_away(jump, course.mean[here])) <= SWITCH_BAND * course.deviation[here]
    samples, others = (np.flatnonzero(reached & (given.sample >= 0)), np.flatnonzero(reached & (given.sample < 0)))
    at = np.concatenate([k[:: max(1, len(k) // MAX_EXAMINED_POINTS)] for k in (samples, others)])
    x, P, z = filter.packing.split(kept[at, 0])
    nz = int(filter.model.z.numel())
    return JumpPoints(given.bounds[at], x, P, z[:, :nz], given.signals[at], given.sample[at] >= 0)


def _reached(filter: Passes, jump: ModelJump, course: _Course) -> str:
    """Describe a switch that is reached, for filters that linearise."""
    away = _away(jump, course.mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(course.deviation > 0, np.abs(away) / course.deviation, np.where(away == 0, 0.0, np.inf))
    crossed = np.flatnonzero(_side(jump, course.mean[1:]) != _side(jump, course.mean[:-1]))
    if len(crossed):
        k, how = int(crossed[0]), "the mean passes the switch"
    elif np.nanmin(distance, initial=np.inf) < SWITCH_BAND:
        k = int(np.nanargmin(distance))
        how = f"the switch lies {distance[k]:.2g} standard deviations away (less than {SWITCH_BAND:g})"
    else:
        return ""
    if _inside_equations(filter, jump):
        remedy = (
            "no filter averages over a jump inside an equation that is solved by iteration: write it without the jump "
            "(gr.tanh(x / width) in place of gr.sign(x)), or use gr.OutputError"
        )
    else:
        remedy = (
            "use gr.KalmanML(filter='unscented'), which averages over both sides, or gr.SimulatedPEM(), which "
            "simulates them"
        )
    return (
        f"{jump.place[0].upper()}{jump.place[1:]} jumps with {jump.text}, and at t = {course.t[k]:g} {how}. The "
        f"{filter.kind.update} filter linearises, and a slope does not show what lies on the other side: {remedy}."
    )


def _unresolved(jump: ModelJump, course: _Course) -> str:
    """Describe a switch that is not resolved, for the unscented filter."""
    if jump.is_stair and np.nanmax(course.deviation, initial=0.0) > MAX_STAIR_DEVIATION:
        k = int(np.nanargmax(course.deviation))
        return (
            f"{jump.place[0].upper()}{jump.place[1:]} jumps with {jump.text}, whose argument is known to ± "
            f"{course.deviation[k]:.2g} at t = {course.t[k]:g}: stairs that are finer than twice what is known of "
            f"their argument are not averaged rightly. Write the argument less 0.5 (floor) or plus 0.5 (ceil) instead, "
            f"their mean, or use gr.SimulatedPEM()."
        )
    passed = np.flatnonzero(_side(jump, course.mean[1:]) != _side(jump, course.mean[:-1]))
    for k in passed.tolist():
        known = max(course.deviation[k], course.deviation[k + 1])
        moved = abs(course.mean[k + 1] - course.mean[k])
        if moved > MAX_PASSED_DEVIATIONS * known and course.t[k + 1] > course.t[k]:
            return (
                f"{jump.place[0].upper()}{jump.place[1:]} jumps with {jump.text}, which switches at t = "
                f"{course.t[k + 1]:g} where its argument moves by {moved:.2g} in one step of the filter and is known "
                f"to ± {known:.2g}: the instant is sharper than the steps, and the likelihood a staircase. Set more "
                f"steps, gr.KalmanML(substeps=…); without uncertainty there use gr.OutputError or gr.SimulatedPEM."
            )
    return ""


def _away(jump: ModelJump, gap: Floats) -> Floats:
    """Return the distance from the nearest switch."""
    return np.asarray(gap - np.round(gap) if jump.is_stair else gap)


def _side(jump: ModelJump, gap: Floats) -> Floats:
    return np.asarray(np.floor(gap) if jump.is_stair else np.sign(gap))


def _inside_equations(filter: Passes, jump: ModelJump) -> bool:
    """Return whether it jumps inside the equations of algebraic unknowns."""
    names = filter.model.structure.system.implicit_names
    return jump.place in {f"the equation of {name}" for name in names}
