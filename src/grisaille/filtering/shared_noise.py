"""Whether R, the covariance of measurement noise, is one, where outputs share noise.

Innovations may have a definite covariance S = H P Hᵀ + R although R is not one. Such a point is no model, and a search
must not end there. R is taken at the start: correlations are the same at all instants, and so is R of levels and
covariances that are numbers or parameters. Where covariances are formulas of states, inputs or time, S decides later.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.filtering.filter import FilterPoint

EIGENVALUE_ROUNDING = 1e-10
"""Eigenvalues of a correlation matrix above minus this are zero."""


def is_shared(model: StochasticModel) -> bool:
    """Return whether some outputs of a model have correlated noise."""
    return bool(not ca.sparsify(model.variance).sparsity().is_diag())


def covariance_failure(model: StochasticModel, t: float, u: np.ndarray, at: FilterPoint) -> str:
    """Say that R is no covariance; empty where it is one."""
    function = model.cached_value(
        "variance at a point",
        lambda: ca.Function("variance", [model.t, model.X, model.z, model.u, model.q], [ca.densify(model.variance)]),
    )
    x, z = np.zeros(model.n), at.start.z[0]
    x[: model.nx] = at.start.x[0]
    R = np.array(function(t, x, z, u, at.q).full())
    size = np.sqrt(np.maximum(np.diag(R), 0.0))
    flat = size == 0
    size = np.where(flat, 1.0, size)
    C = R / np.outer(size, size)
    C[flat, flat] = 1.0
    if np.isfinite(C).all() and np.linalg.eigvalsh(C)[0] >= -EIGENVALUE_ROUNDING:
        return ""
    tied = [n for k, n in enumerate(model.outputs) if np.count_nonzero(R[k]) > 1]
    return f"the covariance of the noise of {', '.join(tied or model.outputs)} is not positive definite"
