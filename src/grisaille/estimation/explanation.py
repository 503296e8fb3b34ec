"""Whether a fit explains its data: residuals against the noise that was declared.

A search may end, and truly converge, in a minimum far from every explanation: small standard errors there are those of
a model that is known to be wrong. Where the noise of an output is declared, the root mean square of its standardized
residuals says so; where it is estimated, nothing does. Residuals that hold disturbances are compared with those of
records simulated from the fitted model, as far as the estimator has done so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator

UNEXPLAINED = ("not an explanation:", "large residuals:")
"""How the notes begin that say so."""
DOES_NOT_BEGIN = "start:"
"""How the note begins that a record does not begin where it was declared to."""
MOVED_BY_START = "moved_by_start"
"""What an estimate keeps of it: by how many standard errors an unknown moves if the start is estimated."""
LARGE, FAR = 3.0, 10.0
"""Root mean squares, in units of the declared noise, from which on a note says so, and the status too."""
BEYOND = 2.5
"""The same over the median of simulated records, where none of these has errors as large."""


def with_explanation(estimate: Estimate, method: Estimator, *, disturbed: bool) -> Estimate:
    """The estimate with a first note, and another status, where its residuals are far larger than the noise.

    disturbed : whether the model is, which decides what may help
    """
    disturbed_sizes = _sizes_among_simulated(estimate)
    worst = disturbed_sizes or residual_sizes(estimate)
    far = BEYOND if disturbed_sizes else FAR
    if not worst or max(worst.values()) <= (BEYOND if disturbed_sizes else LARGE):
        return estimate
    output = max(worst, key=lambda n: worst[n])
    if disturbed_sizes:
        told = (
            f"the errors of {output} are {worst[output]:.3g} times as large (root mean square) as in records simulated "
            f"from the fitted model, and larger than in any of them"
        )
        small = "disturbances or a noise that are declared too small"
    else:
        told = f"the residuals of {output} are {worst[output]:.3g} times the declared noise (root mean square)"
        small = "a noise that is declared too small"
    if worst[output] <= far:
        note = f"large residuals: {told}: the noise is larger than declared, or the model is not complete."
        return replace(estimate, notes=(note, *estimate.notes))
    ways = ", ".join(["gr.multistart(…)", "another guess=", *method.ways_out(disturbed)])
    note = (
        f"not an explanation: {told}: a local minimum far from the data, a wrong model, or {small}; estimates and "
        f"standard errors mean nothing then. Try {ways}, or leave the noise open (noise=None)."
    )
    status = estimate.status
    if estimate.converged:
        status = status.replace("converged:", "converged, but NOT to an explanation of the data:", 1)
    return replace(estimate, status=status, notes=(note, *estimate.notes))


def _sizes_among_simulated(estimate: Estimate) -> dict[str, float]:
    """Root mean square of the errors of each output over that in simulated records, where it is above all of them."""
    head = "unexplained("
    return {key[len(head) : -1].partition("@")[0]: v for key, v in estimate.extra.items() if key.startswith(head)}


def residual_sizes(estimate: Estimate) -> dict[str, float]:
    """Root mean square of the standardized residuals of each output whose noise was declared."""
    if "disturbed_residuals" in estimate.extra:
        return {}
    names = [s.output for c in estimate.cases for s in c.samples for _ in s.values]
    r = np.asarray(estimate.evaluation.residuals[: len(names)], dtype=float)
    if len(r) < len(names):
        return {}
    of = np.array(names)
    known = [n for n in dict.fromkeys(names) if n not in estimate.noise]
    return {n: float(np.sqrt(np.mean(r[of == n] ** 2))) for n in known}
