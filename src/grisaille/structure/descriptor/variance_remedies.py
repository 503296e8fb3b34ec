"""Remedies for signals of infinite variance, in words and as calls.

A signal that contains w^{(r)}, where w has pole excess p ≤ r, lacks r − p + 1 integrations. They can be added to the
disturbance (a smoother spectrum) or to the measurement (a presampling filter of that order; an integrating sampler).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Arrival:
    """One disturbance on its way to one variable."""

    disturbance: str
    spectrum: str
    pole_excess: int
    differentiations: int
    """Highest derivative that arrives: 0 for the disturbance itself, −k when it passes k integrations first."""

    @property
    def is_finite(self) -> bool:
        return self.differentiations < self.pole_excess

    @property
    def missing(self) -> int:
        """Return how many integrations are lacking for a finite variance."""
        return max(0, self.differentiations - self.pole_excess + 1)

    def __str__(self) -> str:
        r = self.differentiations
        how = (
            "enters directly" if r == 0 else f"is differentiated {times(r)}" if r > 0 else f"is integrated {times(-r)}"
        )
        return f"{self.disturbance} [{self.spectrum}, pole excess {self.pole_excess}] {how}"


def times(n: int) -> str:
    """Return ``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def advise(name: str, kind: str, arrivals: tuple[Arrival, ...], undefined: str = "") -> tuple[str, ...]:
    """Return remedies for one variable, the likely one first; ``undefined`` names what enters nonlinearly and must
    not.
    """
    if undefined:
        return (
            f"give what drives {undefined} a spectrum with more poles, such as gr.spectra.lowpass(bandwidth=…)",
            f"or let {undefined} enter linearly",
        )
    wild = [a for a in arrivals if not a.is_finite]
    if not wild:
        return ()
    smoother = [
        f"{a.disturbance} = gr.Disturbance(gr.spectra.lowpass(bandwidth=…, order={a.differentiations + 1}))"
        for a in wild
    ]
    order = max(a.missing for a in wild)
    excess = " and ".join(f"{a.differentiations + 1} for {a.disturbance}" for a in wild)
    advice = [f"give a smoother spectrum, pole excess at least {excess}: {'; '.join(smoother)}"]
    signal = f"u=<formula of {name}>" if kind == "output" else f"u={name}"
    filtered = f"presampling_filter(time_constant=…, order={order}, {signal}).y"
    verb = (
        "measure it behind a presampling filter, as instruments do"
        if kind == "output"
        else "ask for it behind a filter"
    )
    advice.append(f"or {verb}: {filtered}")
    if order == 1:
        advice.append(f"or as the mean over a sampling interval: IntegratingSampler(window=…, {signal}).y")
    advice[-1] += f" ({'both' if order == 1 else 'it is'} in grisaille.components.sampling)"
    return tuple(advice)
