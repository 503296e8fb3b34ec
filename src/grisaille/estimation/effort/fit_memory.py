"""How much memory a fit takes, asked for before its problem is posed.

What grows is the Jacobian, measurements × unknowns: with unknown starts of many experiments both grow with their
number. Filters hold derivatives of each record by the unknowns that move it, and add up what all records say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.memory import BYTES_PER_DOUBLE, SMALL_BYTES, require_memory

if TYPE_CHECKING:
    from grisaille.estimation.estimator import Estimator
    from grisaille.estimation.fit_request import FitRequest

JACOBIAN_COPIES = 3
"""Copies of the Jacobian that a search holds: at the best point, at the next one, and scaled."""
BYTES_PER_INSTANT = 800
"""Bytes of an instant of a record beside derivatives: signals, their pieces, states, predictions and residuals."""

FILTER_BYTES_PER_INSTANT = 1500
"""The same for filters."""


def require_fit(method: Estimator, question: FitRequest) -> None:
    """Refuse a fit that does not fit into memory."""
    size = method.effort.bytes_needed(question)
    if size <= SMALL_BYTES:
        return
    n, count = len(question.unknowns), sum(measurements(question))
    local = sum(u.kind == "start" for u in question.unknowns)
    fewer = f" ({local} of the unknowns are starts of experiments)" if local > n // 2 else ""
    require_memory(
        size,
        f"A fit of {n} unknowns{fewer} to {count} measurements in {len(question.data)} "
        f"experiment{'' if len(question.data) == 1 else 's'} by gr.{type(method).__name__}",
        lambda available: (
            f"About {int(count * available / size)} measurements would fit. Fit a part of the records, "
            f"experiment.resample(…) or experiment.split(…), or fewer unknowns."
        ),
    )


def measurements(question: FitRequest) -> list[int]:
    """Return the number of measurements of each experiment."""
    return [sum(int(np.isfinite(o.values).sum()) for o in e.outputs.values()) for e in question.data]


def bytes_of_least_squares(question: FitRequest) -> float:
    """Return the bytes of the derivatives of residuals by all unknowns."""
    instants = sum(len(trial.times) for trial, _ in question.trials)
    return (
        JACOBIAN_COPIES * BYTES_PER_DOUBLE * sum(measurements(question)) * len(question.unknowns)
        + BYTES_PER_INSTANT * instants
    )


def bytes_of_filters(question: FitRequest) -> float:
    """Return the bytes of innovations and states of each record by its own unknowns."""
    system, outputs = question.structure.system, len(question.outputs)
    return sum(
        len(trial.times)
        * (FILTER_BYTES_PER_INSTANT + JACOBIAN_COPIES * BYTES_PER_DOUBLE * (1 + len(mine)) * (outputs + system.nx))
        for trial, mine in question.trials
    )
