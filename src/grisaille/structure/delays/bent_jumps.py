"""Signals that jump at instants that move, and enter the rates other than linearly, on steps that stay.

Such a signal is not projected itself (``experiment/projected_signals.py``): the square of a parabola that stands for a
jump is
not what the square of the jump is on the average. Where it jumps from l to r within a step,

    rhs = (1 − ρ) rhs(l) + ρ rhs(r),

with ρ = 0 before and 1 behind the jump, is linear in ρ, which is projected in its place. Signals that are delayed alike
jump together. Layout of further signals, for each dead time: ρ, its rate, then l and r of each signal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import casadi as ca

from grisaille.structure.switching_pieces import is_affine, relations_of
from grisaille.structure.system import MovingBreaks, System


def bent_signals(system: System, jumping: Sequence[int]) -> list[int]:
    """Return which of the signals that jump enter the rates other than linearly."""
    if not jumping or not system.nx:
        return []
    v = ca.vertcat(*(system.u[k] for k in jumping))
    slopes = ca.jacobian(system.rhs, v)
    return [
        k
        for i, k in enumerate(jumping)
        if ca.depends_on(slopes[:, i], v) or not is_affine(system.rhs, system.u[k])
    ]  # fmt: skip


def refused_jumps(system: System, jumping: Sequence[int], groups: Mapping[str, Sequence[int]]) -> str:
    """Return why signals cannot be projected on steps that stay, in words; empty where they can."""
    remedy = "gr.KalmanML() and gr.OutputError() end their steps on the jumps; or join the samples by lines, hold='foh'"
    seen = [k for k in jumping if system.nz and ca.depends_on(system.residual, system.u[k])]
    if seen:
        w = ca.vertcat(system.z, *(system.u[k] for k in seen))
        if not is_affine(ca.vertcat(system.rhs, system.residual), w):
            return (
                f"{system.signals[seen[0]].name} jumps at instants that move, and decides {system.implicit_names[0]}, "
                f"which stays implicit, other than linearly; ensembles and elements do not follow it. {remedy}."
            )
    texts = list(groups)
    for i, one in enumerate(texts):
        for other in texts[i + 1 :]:
            a, b = (ca.vertcat(*(system.u[k] for k in groups[text])) for text in (one, other))
            compared = [r.gap for r in relations_of(system.rhs, a)]
            if ca.depends_on(ca.vertcat(ca.vec(ca.jacobian(system.rhs, a)), *compared), b):
                names = [system.signals[groups[text][0]].name for text in (one, other)]
                return (
                    f"{names[0]} and {names[1]} jump at instants that move apart, and rates depend on them together "
                    f"other than linearly; steps of ensembles and elements do not follow them. {remedy}."
                )
    return ""


def blended_rates(
    still: MovingBreaks, groups: Mapping[str, Sequence[int]], extra: ca.SX, apart: Mapping[str, ca.SX]
) -> ca.SX:
    """Return rhs(l) + Σ_j ρ_j (rhs(r_j) − rhs(l)) over groups of signals that jump together."""
    left, right = ca.SX(still.u), dict[str, ca.SX]()
    shares, at = dict[str, ca.SX](), 0
    for text, own in groups.items():
        shares[text] = extra[at] - apart[text] * extra[at + 1]
        for i, k in enumerate(own):
            left[k] = extra[at + 2 + 2 * i]
        at += 2 + 2 * len(own)
    at = 0
    for text, own in groups.items():
        u = ca.SX(left)
        for i, k in enumerate(own):
            u[k] = extra[at + 3 + 2 * i]
        right[text] = u
        at += 2 + 2 * len(own)
    before, *behind = (replace(still, u=u).put([still.plain.rhs])[0] for u in (left, *right.values()))
    return ca.densify(before + sum(shares[t] * (b - before) for t, b in zip(shares, behind, strict=True)))
