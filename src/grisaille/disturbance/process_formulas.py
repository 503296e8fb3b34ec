"""Transitions and starts of a process as formulas of its parameters, with exact derivatives.

What would make them jump is taken from the same process in numbers, and kept: the number of doublings, the zero columns
of factors, the units in which stationary covariances are solved for. ``nominal`` is that process, at the parameters
where an estimation starts; formulas are accurate until its poles have grown fourfold.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.disturbance.discretization import discretize, discretize_symbolic, frozen_doublings
from grisaille.disturbance.factorization import factorize, factorize_symbolic, nonzero_pivots
from grisaille.disturbance.process import Process
from grisaille.disturbance.stationarity import balancing_units, cross_covariance_symbolic


def transition_symbolic(process: Process, nominal: Process, h: ca.SX | float, step: float) -> tuple[ca.SX, ca.SX]:
    """Return F and chol(Q) of a step h; ``step`` is h in numbers."""
    F, Q = discretize_symbolic(process.A, process.intensity, h, frozen_doublings(nominal.A, step))
    return F, factorize_symbolic(Q, nonzero_pivots(factorize(discretize(nominal.A, nominal.intensity, step)[1])))


def start_root_symbolic(process: Process, nominal: Process) -> ca.SX:
    """Return chol(P) of the start; that it exists is checked at ``nominal``, elsewhere by ``refuse_unstable``."""
    kept = nonzero_pivots(factorize(nominal.start_covariance()))
    return factorize_symbolic(start_covariance_symbolic(process, nominal), kept)


def start_covariance_symbolic(process: Process, nominal: Process) -> ca.SX:
    """Return covariance of the states at the first instant, with zero rows for what starts at zero."""
    P, W, edges = ca.SX(process.order, process.order), process.intensity, np.cumsum([0, *process.blocks])
    units = balancing_units(nominal.A)
    chosen = [slice(int(edges[i]), int(edges[i + 1])) for i, s in enumerate(process.starts) if s == "stationary"]
    for i, one in enumerate(chosen):
        for other in chosen[: i + 1]:
            if W[one, other].nnz():
                A1, A2 = process.A[one, one], process.A[other, other]
                P[one, other] = cross_covariance_symbolic(A1, A2, W[one, other], units[one], units[other])
                P[other, one] = P[one, other].T
    return P
