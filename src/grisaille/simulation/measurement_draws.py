"""Measurements drawn by a law around their predictions: its quantile at Φ(z), where z is that of normal noise.

So one seed gives the same draws whatever the law: what ``gr.laws.Rounded(step=, of=gr.Normal(std=))`` gives is what
normal noise gives, rounded. Antithetic draws are the quantiles at 1 − Φ(z).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grisaille.errors import DataError
from grisaille.laws import Law

Floats = NDArray[np.float64]
LARGEST = 1.0 - 2.0**-53
"""The largest probability below one: quantiles at one are infinite."""


def draw_by_law(law: Law, z: Floats, output: str, times: Floats) -> Floats:
    """Return draws (N,) of a filled law at standard normals (N,); NaN where there is no prediction.

    times : instants, which are repeated for every realization
    """
    from scipy.special import ndtr

    _refuse_no_limits(law, output, times)
    location = np.broadcast_to(np.asarray(law.arguments[law.location_path], dtype=float), z.shape)
    with np.errstate(all="ignore"):
        drawn = np.asarray(law.quantile(np.minimum(ndtr(z), LARGEST)), dtype=float)
        has_density = np.asarray(law.log_density(drawn)) > -np.inf
    is_predicted = np.isfinite(location)
    _refuse_no_law(law, is_predicted & ~(np.isfinite(drawn) & has_density), output, times)
    return np.where(is_predicted, drawn, np.nan)


def _refuse_no_limits(law: Law, output: str, times: Floats) -> None:
    """Refuse limits, steps and numbers of trials with which there is no law."""
    broken = law.refused_arguments()
    if broken is not None:
        k, why = broken
        raise DataError(
            f"Measurements of output '{output}' cannot be drawn: at t = {times[k % len(times)]:g} {why}, and so there "
            f"is no law {type(law).__name__}. Mend the column or the formula that this number comes from."
        )


def _refuse_no_law(law: Law, is_bad: NDArray[np.bool_], output: str, times: Floats) -> None:
    """Refuse a prediction, or another argument, with which there is no law."""
    if not is_bad.any():
        return
    k = int(np.flatnonzero(is_bad)[0])
    values = {path: np.broadcast_to(v, is_bad.shape)[k] for path, v in law.arguments.items() if v is not None}
    location = values.pop(law.location_path)
    others = ", ".join(f"{path} = {value:g}" for path, value in values.items())
    run = f" in realization {k // len(times)}" if len(is_bad) > len(times) else ""
    raise DataError(
        f"Measurements of output '{output}' cannot be drawn: at t = {times[k % len(times)]:g}{run} its "
        f"{law.location_path.rpartition('.')[2]} is {location:.6g}{f' ({others})' if others else ''}, with which "
        f"there is no law {type(law).__name__} ({int(is_bad.sum())} such samples). Keep the prediction where the law "
        f"has values, e.g. by gr.log of it as the state, or give the output another distribution."
    )
