"""Limits that samples have of their own, such as ``<0.1``, in the law of their output."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grisaille.bound_experiment.data_matrix import Floats, OutputSamples
from grisaille.laws import Law
from grisaille.laws.censored import censored_path


def limits_in(law: Law, samples: OutputSamples, arguments: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the limits of samples, where some have one of their own: those in place of the law's.

    What lies beyond a sample's own limit is all that is known of it: a limit of the law on the other side that is
    not beyond has no say there.

    arguments : of the law by path, with a number for each sample
    """
    path, own = censored_path(law), dict(own_limits(samples))
    if not own:
        return {}
    low, high = (np.asarray(arguments.get(f"{path}{side}", np.nan)) for side in ("below", "above"))
    is_low, is_high = (np.isfinite(own.get(side, np.nan)) for side in ("below", "above"))
    low, high = np.where(is_low, own.get("below", np.nan), low), np.where(is_high, own.get("above", np.nan), high)
    with np.errstate(invalid="ignore"):
        crossed = low >= high
    low, high = np.where(crossed & is_high, np.nan, low), np.where(crossed & is_low, np.nan, high)
    shape = samples.values.shape
    return {f"{path}below": np.broadcast_to(low, shape), f"{path}above": np.broadcast_to(high, shape)}


def own_limits(samples: OutputSamples) -> list[tuple[str, Floats]]:
    """Return the sides on which some samples have a limit, with these limits; NaN for samples without."""
    return [(side, own) for side in ("below", "above") if (own := getattr(samples, side)) is not None]
