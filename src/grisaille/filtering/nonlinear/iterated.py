"""The iterated extended filter: the measurement is linearised where the update puts the mean, again and again.

    x_{i+1} = x + K_i (y − h(x_i) − H_i (x − x_i)),        K_i = P H_iᵀ (H_i P H_iᵀ + R_i)⁻¹,   x_0 = x

are Gauss–Newton steps to the maximum of the posterior density; P ← (I − KH) P (I − KH)ᵀ + K R Kᵀ with the last H. The
likelihood takes innovation and covariance at the predicted mean. Their number is fixed, so that derivatives exist;
for a linear measurement the first step is the last.

Reference: A. H. Jazwinski, Stochastic Processes and Filtering Theory (1970), section 8.3.
"""

from __future__ import annotations

import casadi as ca

from grisaille.filtering.algebraic_model import AlgebraicModel, solve_algebraic
from grisaille.filtering.measurement import (
    Update,
    UpdateResult,
    UpdateSymbols,
    joseph,
    masked_measurement,
    solve_symmetric,
)

UPDATE_ITERATIONS = 5


def iterated_update(closed: AlgebraicModel) -> Update:
    """Return the update of the iterated filter."""

    def update(a: UpdateSymbols, x: ca.SX, P: ca.SX, z: ca.SX) -> UpdateResult:
        h, H, R, z = masked_measurement(closed, a, x, z)
        e, S = a.mask * a.y - h, ca.mtimes([H, P, H.T]) + R
        point, innovation, covariance = x, e, S
        for i in range(UPDATE_ITERATIONS):
            if i:
                h, H, R, z = masked_measurement(closed, a, point, z)
                innovation = a.mask * a.y - h - ca.mtimes(H, x - point)
                covariance = ca.mtimes([H, P, H.T]) + R
            K = solve_symmetric(covariance, ca.mtimes(H, P)).T
            point = x + ca.mtimes(K, innovation)
            z = solve_algebraic(closed, a.t, point, z, a.u, a.q)
        return UpdateResult(point, joseph(P, K, H, R), e, S, z)

    return update
