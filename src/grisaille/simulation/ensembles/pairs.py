"""Covariances between outputs of an ensemble, from the variances of their sums.

    cov(y_i, y_j) = ½ a_i a_j [ var(y_i/a_i + y_j/a_j) − var(y_i)/a_i² − var(y_j)/a_j² ],

which holds for the statistics of any sample as well, and for their derivatives: the kernels need to know variances
only. The units a make both summands alike, so that little is lost by cancellation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from grisaille.structure.reduction import Structure


def pair_names(outputs: Sequence[str]) -> dict[tuple[int, int], str]:
    """Return the sums that are observed, by the places of their summands."""
    return {(i, j): f"({outputs[i]})+({outputs[j]})" for i in range(len(outputs)) for j in range(i)}


def with_sums(structure: Structure, outputs: Sequence[str], units: Mapping[str, float]) -> Structure:
    """Return the structure with the sums of all pairs of outputs, each in its unit, among what is observed."""
    system = structure.system
    y = {n: system.observed[system.observed_names.index(n)] / units.get(n, 1.0) for n in outputs}
    pairs = pair_names(outputs)
    if not pairs:
        return structure
    sums = [y[outputs[i]] + y[outputs[j]] for i, j in pairs]
    changed = replace(
        system, observed=ca.vertcat(system.observed, *sums), observed_names=(*system.observed_names, *pairs.values())
    )
    return replace(structure, system=changed)


def covariances(variance: np.ndarray, sums: Mapping[tuple[int, int], np.ndarray], units: Sequence[float]) -> np.ndarray:
    """Return (times, q, q, …) from variances (times, q, …) and the variances (times, …) of the sums."""
    q = variance.shape[1]
    found = np.zeros((len(variance), q, *variance.shape[1:]))
    for i in range(q):
        found[:, i, i] = variance[:, i]
    for (i, j), total in sums.items():
        a, b = units[i], units[j]
        found[:, i, j] = found[:, j, i] = 0.5 * (a * b * total - (b / a) * variance[:, i] - (a / b) * variance[:, j])
    return found
