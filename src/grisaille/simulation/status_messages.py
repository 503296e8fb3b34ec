"""How a run ended, in words that carry their remedy."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.compilation.schemes import Scheme
from grisaille.compilation.task import Status, Task
from grisaille.experiment.piecewise_polynomials import SignalTable
from grisaille.simulation.event_texts import event_text
from grisaille.simulation.nominal_sizes import small_states
from grisaille.structure.switching_pieces import jumps_of
from grisaille.structure.system import System

WITHOUT_STEPS = "algebraic"
"""How rows that are solved for one by one are called in the place of a scheme."""


@dataclass(frozen=True)
class FailureAdvice:
    """What the caller of a run can change, in the words of its own options."""

    steps: str
    """Where a run takes too many."""
    stiff: str
    """Where explicit steps do not suit."""
    tolerance: str
    size: str
    """How a variable is said to be small."""
    step: str
    kept: str
    """What becomes of the part that was reached."""


SIMULATION_ADVICE = FailureAdvice(
    steps="Give a larger max_steps=, a looser rtol=, or method='implicit' if the model is stiff",
    stiff="Use method='auto' or method='implicit'",
    tolerance="loosen rtol", size="nominal= or atol=", step=", or give a shorter step=",
    kept="requested times were reached and are kept",
)  # fmt: skip
FIT_ADVICE = FailureAdvice(
    steps="Smooth or leave out what makes the steps so short there, keep the search away from there by bounds= or "
    "guess=, or take a looser tolerance, such as gr.OutputError(rtol=1e-5)",
    stiff="Keep the search away from there by bounds= or guess=",
    tolerance="take a looser tolerance, such as gr.OutputError(rtol=1e-5)", size="nominal=",
    step=", or take a tighter tolerance, such as gr.OutputError(rtol=1e-9), whose steps are shorter",
    kept="samples were reached",
)  # fmt: skip


def describe(task: Task, system: System, scheme: Scheme | None, advice: FailureAdvice = SIMULATION_ADVICE) -> str:
    """A sentence on the status: what happened, when, to which variable, what to do next.

    scheme : what made the steps; None where there were none
    advice : in the options of the caller
    """
    status = Status(task.status)
    at = f"at t = {task.t:.6g}"
    if status is Status.DONE:
        remarks = (
            f"{_snaps(task)}{_undefined(task, system)}{_uncontrolled(task, system, scheme)}{_coarse(task, system)}"
        )
        return f"completed by the {scheme or WITHOUT_STEPS} method in {task.steps} steps{remarks}"
    done = f"{task.written} of {task.n_times} {advice.kept}"
    if status in _ADVISED:
        return f"{_ADVISED[status](task, system, at, advice)} ({done})."
    return f"{_SENTENCES[status](task, system, at)} ({done})."


def _snaps(task: Task) -> str:
    """Algebraic solutions that came to an end."""
    if not task.snaps:
        return ""
    return f", with {task.snaps} jump{'s' if task.snaps > 1 else ''} to another solution of the algebraic equations"


def _coarse(task: Task, system: System) -> str:
    """Equal steps that are known to be too long."""
    if task.fixed_step > 0.0 and not np.isfinite(task.error_estimate):
        return (
            ", but some of its steps pass more knots or switches than were looked at, or could not be compared with "
            "shorter ones: the error is not known. Give a shorter step="
        )
    if task.fixed_step > 0.0 and task.error_estimate > 1.0:
        return f", whose error is about {task.error_estimate:.2g} times the tolerance"
    if task.differs is None:
        return ""
    place, share = task.differs
    return (
        f", but {system.observed_names[place]} differs by {100 * share:.2g} % of what it covers from a run under error "
        f"control: compare with method='auto', or give a shorter step="
    )


def _undefined(task: Task, system: System) -> str:
    """Outputs and quantities may be undefined although the states are not."""
    fine = np.isfinite(task.y[: task.written])
    if fine.all():
        return ""
    bad = ~fine
    names = [system.observed_names[k] for k in np.flatnonzero(bad.any(axis=0))]
    first = task.times[int(np.argmax(bad.any(axis=1)))]
    shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    return f", but {shown} {'is' if len(names) == 1 else 'are'} infinite or undefined, first at t = {first:.6g}"


def _uncontrolled(task: Task, system: System, scheme: Scheme | None) -> str:
    """States so small beside their absolute tolerance that the steps did not look at them."""
    is_controlled = scheme is None or scheme.is_adaptive
    told = [system.state_names[k] for k in small_states(task, system)] if is_controlled else []
    if not told:
        return ""
    shown = ", ".join(told[:6]) + (", …" if len(told) > 6 else "")
    verb, word = ("is", "it") if len(told) == 1 else ("are", "them")
    return (
        f", but {shown} {verb} hardly larger than the absolute tolerance, and no step was made small for {word}: if "
        f"that matters, give nominal= or atol="
    )


def _not_finite(task: Task, system: System, at: str) -> str:
    return (
        f"{_equation(task, system)} became infinite or undefined {at}, even with the smallest step. Look for a "
        f"division by zero (also by a parameter that is zero), a logarithm, root or power of a negative number, or a "
        f"root of zero, whose slope is infinite, near {_point(task, system)}"
    )


def _step_too_small(task: Task, system: System, at: str, advice: FailureAdvice) -> str:
    return (
        f"the step size fell below rounding {at}: the solution blows up or jumps there ({_point(task, system)}). Check "
        f"the model near this point, smooth a discontinuity (gr.smooth_sign, gr.smooth_abs), or {advice.tolerance}; "
        f"where a variable that matters is much smaller than 1, say so with {advice.size}"
    )


def _too_many(task: Task, system: System, at: str, advice: FailureAdvice) -> str:
    if task.fixed_step > 0.0 and task.error_estimate > 1.0:
        return (
            f"equal steps of {task.fixed_step:.3g} leave an error of {task.error_estimate:.3g} times the tolerance, "
            f"and there would be more than {task.max_steps} shorter ones: something is much shorter than the run, such "
            f"as a bump of a table, a switch or a fast mode. Take steps under error control (method='auto'), or a "
            f"larger max_steps= or rtol="
        )
    slides = _sliding(task, system)
    if slides:
        return (
            f"{task.max_steps} steps were used up {at}, where the trajectory slides along the switch of {slides}: both "
            f"sides drive it back, and every step crosses it again. Give the switch a width (gr.smooth_sign(x, width), "
            f"or a ramp with gr.minimum and gr.maximum), or let a second state decide which side holds"
        )
    where = "" if advice is SIMULATION_ADVICE else f" ({_point(task, system)})"
    return f"{task.max_steps} steps were used up {at}{where}. {advice.steps}"


def _sliding(task: Task, system: System) -> str:
    """The relation of states at whose switch a run stands and across which its rates jump, as its equation has it."""
    jumps = jumps_of(system.rhs, system.x) if system.nx else []
    if not jumps:
        return ""
    u = SignalTable(task.breaks, task.coef, task.kink).at(task.t) if system.nu else np.zeros(0)
    rows = ca.vertcat(*(j.gap for j in jumps))
    function = ca.Function(
        "gaps", [system.t, system.x, system.z, system.u, system.p], [rows, ca.jacobian(rows, system.x)]
    )
    gaps, slopes = (np.array(part.full()) for part in function(task.t, task.x, task.z, u, task.p))
    # within what a step's tolerance moves the states by
    reach = np.abs(slopes) @ (1e3 * (task.atol[: system.nx] + task.rtol * np.abs(task.x)))
    for jump, gap, near in zip(jumps, gaps[:, 0], reach, strict=True):
        if abs(gap - (np.round(gap) if jump.kind in ("floor", "ceil") else 0.0)) <= near:
            names = [n for n, s in zip(system.state_names, ca.vertsplit(system.x), strict=True)
                     if ca.depends_on(jump.gap, s)]  # fmt: skip
            return f"a relation of {', '.join(names)}"
    return ""


def _newton(task: Task, system: System, at: str, advice: FailureAdvice) -> str:
    if system.pieces:
        relation, text = next((p for p in system.pieces if p[1] in _equation(task, system)), system.pieces[0])
        return (
            f"'{text}' has no solution {at} in any piece that was tried: it jumps with '{relation}', over the value "
            f"that it would need there ({_point(task, system)}). Where the jump stands for something that takes any "
            f"value in between (friction at rest, a blocking diode), write that value as a smooth, steep function, "
            f"such as gr.smooth_sign(z, width)"
        )
    shorter = advice.step if task.fixed_step > 0 else ""
    return (
        f"the equations of a step could not be solved {at}; the worst is {_equation(task, system)}. The algebraic "
        f"equations may have no solution beyond this point ({_point(task, system)}); check them there{shorter}"
    )


def _branch_ends(task: Task, system: System, at: str) -> str:
    name = system.implicit_names[task.where] if 0 <= task.where < system.nz else "an unknown"
    value = f" = {task.z[task.where]:.4g}" if 0 <= task.where < system.nz else ""
    jumps = bool(np.any(task.kink.astype(bool) & (np.abs(task.breaks - task.t) <= 1e-14 * abs(task.t))))
    where = f" after {100 * task.amount:.3g} % of the jump of the inputs there" if jumps and task.amount > 0 else ""
    return (
        f"{name} could not be followed {at}: the solution of its equations that goes on from {name}{value} comes to an "
        f"end{where}, where it meets another solution, or jumps ({_point(task, system)}). Beyond, there is no "
        f"solution, or there are others and nothing says which one is meant{_why_not_snapped(task)}. Check the "
        f"equations of {name} for such inputs; where it is meant to snap to another solution, give it dynamics "
        f"of its own, such as tau*der({name}) == <left side> - <right side>"
    )


def _why_not_snapped(task: Task) -> str:
    return "; derivatives of the instant at which it jumps are not known" if task.ns else ""


def _singular(task: Task, system: System, at: str) -> str:
    return (
        f"the equations became singular {at}: {_unknown(task, system)} is no longer determined there "
        f"({_point(task, system)}). The model may pass a singular configuration, or one equation repeats another"
    )


def _projection(task: Task, system: System, at: str) -> str:
    text = system.constraint_texts[task.where] if 0 <= task.where < system.nc else "a hidden constraint"
    return (
        f"the constraint '{text}' could not be met {at}: its residual stays at {task.amount:.3g}. The constraints may "
        f"contradict each other beyond this point ({_point(task, system)})"
    )


SMOOTH_SWITCH_ADVICE = (
    "Give the switch a width (gr.smooth_sign(x, width), gr.tanh(x / width), or a ramp with gr.minimum and gr.maximum), "
    "or describe what holds there by a state of its own (for friction the bristles of the LuGre model)"
)


def _mode(task: Task, system: System) -> str:
    return event_text(system, task.where)


def _clause(task: Task, system: System) -> str:
    return event_text(system, len(system.modes) + task.where)


def _repeats(task: Task, system: System, at: str) -> str:
    if task.amount == 0:
        return (
            f"{_clause(task, system)} fires again and again {at} and the events of this instant do not settle: each "
            f"pass makes its condition false and true once more ({_point(task, system)}). Let a gr.Discrete remember "
            f"that it has fired, and ask for it in the condition"
        )
    return (
        f"{_clause(task, system)} fires faster and faster, and its events accumulate {at} ({_point(task, system)}): "
        f"beyond this instant the model says nothing. End the run before it, or let the model come to rest: a "
        f"gr.Discrete that is set where what happens is too small to matter, as in gr.when((h < 0) & (v > -0.01), "
        f"rest == 1), with equations that hold then"
    )


def _contradicts(task: Task, system: System, at: str) -> str:
    name = system.state_names[task.where] if 0 <= task.where < system.nx else "a state"
    if np.isinf(task.amount):
        return (
            f"two gr.when set '{name}' {at}, at once, and nothing says which value is meant ({_point(task, system)}). "
            f"Write them as one, gr.when(a, gr.reinit({name}, …)).otherwise(b, gr.reinit({name}, …)), where the first "
            f"counts"
        )
    return (
        f"a gr.reinit of '{name}' {at} contradicts the algebraic equations, which tie it to states that are set at the "
        f"same instant or do not follow it, as positions do not follow velocities: something would have to be off by "
        f"{task.amount:.3g} ({_point(task, system)}). Set fewer states and let the others follow, or set all "
        f"of them to values that fit together"
    )


def _no_instant(task: Task, system: System, at: str) -> str:
    return (
        f"{_clause(task, system)} fires {at}, where a motion along a switch ends, clocks that move apart tick at once, "
        f"or a relation stands at its switch at the start and would not turn there with another start: the derivative "
        f"of this instant is not known ({_point(task, system)}). Take differences of simulations, smooth the relation "
        f"along which the motion slides, or begin beside the switch"
    )


def _clashes(task: Task, system: System, at: str) -> str:
    found = () if system.reactions is None else system.reactions.clashes
    pair = (task.where, int(task.amount))
    unknown, discrete = next((c[2:] for c in found if c[:2] == pair), ("an unknown", "a discrete variable"))
    other = event_text(system, len(system.modes) + pair[1])
    return (
        f"{_clause(task, system)} and {other} fire at once {at}: the first needs {unknown} with the value that the "
        f"second gives '{discrete}', and {unknown} is solved for only after it ({_point(task, system)}). Write "
        f"gr.pre(…) around the variable whose value before the event is meant, or solve the equation for {unknown} and "
        f"write that formula in its place"
    )


def _unsettled(task: Task, system: System, at: str) -> str:
    if task.amount <= -1:  # another relation of the same gap slides
        slides = event_text(system, round(-1 - task.amount))
        return (
            f"{_mode(task, system)} and {slides} are relations of one quantity, which {at} comes to its switch and "
            f"stays there: both sides drive it back. {slides} takes a value in between, and nothing says what "
            f"{_mode(task, system)} is meanwhile ({_point(task, system)}). Write one of them in all places, as below = "
            f"gr.where(T < 20, 1, 0) and 1 - below for the other side, or give the switch a width "
            f"(gr.smooth_sign(x, width))"
        )
    return (
        f"{_mode(task, system)} switches {at}, and nothing says how the motion goes on: both sides drive it back, and "
        f"with relations that switch at the same instant or unknowns that are solved for no motion along the switch "
        f"is the only one ({_point(task, system)}). "
        f"{SMOOTH_SWITCH_ADVICE}"
    )


def _accumulates(task: Task, system: System, at: str) -> str:
    last = {int(m) for m in task.events[max(0, min(task.n_events, len(task.events)) - 20) : task.n_events, 1]}
    names = ", ".join(event_text(system, m) for m in sorted(last)) or _mode(task, system)
    return (
        f"switches of {names} follow each other faster and faster and accumulate {at}: {task.amount:.0f} of them "
        f"within rounding ({_point(task, system)}). No motion along all of them at once goes on from there, or it is "
        f"left in more than one way. {SMOOTH_SWITCH_ADVICE}"
    )


def _grazes(task: Task, system: System, at: str) -> str:
    return (
        f"the trajectory grazes the switch of {_mode(task, system)} {at}: it touches it with a rate of "
        f"{task.amount:.3g} instead of crossing it, so that the instant has no derivative ({_point(task, system)}). "
        f"Take differences of simulations, or smooth the relation (gr.smooth_sign, or a ramp with gr.minimum and "
        f"gr.maximum)"
    )


def describe_coincidence(task: Task, system: System) -> str:
    """What is reached at the instant at which a run with ``Status.ORDER`` stopped; empty for other runs."""
    if task.status != Status.ORDER:
        return ""
    one, other = _reached(system, task.where), _reached(system, int(task.amount))
    verb = "come" if min(task.where, int(task.amount)) < 0 else "are reached"
    return f"{one} and {other} {verb} at the same instant, t = {task.t:.6g}"


def _order(task: Task, system: System, at: str) -> str:
    return (
        f"{describe_coincidence(task, system)}, and what follows depends on which comes first: there is a derivative "
        f"for each order and none at the values given ({_point(task, system)}). Move one of the values that set these "
        f"instants a little, by 1e-6 of itself, so that their order is known; give like parts with equal values "
        f"different ones"
    )


def _reached(system: System, number: int) -> str:
    """What is at ``where`` or ``amount`` of ``Status.ORDER``."""
    if number >= 0:
        return f"the switch of {event_text(system, number)}"
    ticks = () if system.reactions is None else system.reactions.ticks
    if 0 <= -2 - number < len(ticks):
        return f"a tick of {ticks[-2 - number].text}"
    return "a jump of an input or of a condition of time"


def _stiff(task: Task, system: System, at: str, advice: FailureAdvice) -> str:
    return f"the model is stiff {at} and the explicit method would crawl. {advice.stiff}"


_ADVISED = {
    Status.STEP_TOO_SMALL: _step_too_small,
    Status.TOO_MANY_STEPS: _too_many,
    Status.NEWTON: _newton,
    Status.STIFF: _stiff,
}
_SENTENCES = {
    Status.MORE: lambda task, system, at: f"the run was interrupted {at}",
    Status.NOT_FINITE: _not_finite,
    Status.SINGULAR: _singular,
    Status.PROJECTION: _projection,
    Status.BRANCH_ENDS: _branch_ends,
    Status.UNSETTLED: _unsettled,
    Status.ACCUMULATES: _accumulates,
    Status.GRAZES: _grazes,
    Status.REPEATS: _repeats,
    Status.CONTRADICTS: _contradicts,
    Status.NO_INSTANT: _no_instant,
    Status.CLASHES: _clashes,
    Status.ORDER: _order,
}


def _equation(task: Task, system: System) -> str:
    where = task.where
    if 0 <= where < system.nx:
        name = system.state_names[where]
        return f"der({name})" if not name.startswith("der(") else f"the rate of {name}"
    if system.nx <= where < system.nx + system.nz:
        return f"the equation '{system.residual_texts[where - system.nx]}'"
    return "an equation"


def _unknown(task: Task, system: System) -> str:
    names = (*system.state_names, *system.implicit_names)
    if 0 <= task.where < system.nz and system.nz:
        return system.implicit_names[task.where]
    return names[task.where] if 0 <= task.where < len(names) else "an unknown"


def _point(task: Task, system: System) -> str:
    names, point = (system.state_names, task.x) if system.nx else (system.implicit_names, task.z)
    values = [f"{n} = {v:.4g}" for n, v in zip(names, point, strict=True)]
    shown = ", ".join(values[:6])
    return shown + (", …" if len(values) > 6 else "")
