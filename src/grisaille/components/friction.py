"""Friction by elastic bristles, the LuGre model, for forces and for torques.

::

    dz/dt      = v − |v| z / g(v)
    σ₀ g(v)    = F_C + (F_S − F_C) exp(−(v / v_S)²)
    f          = σ₀ z + σ₁ dz/dt + b v

In steady sliding dz/dt = 0, so f = sign(v) σ₀ g(v) + b v, Stribeck's curve. Near standstill the bristles are a stiff
spring, which makes the model stiff: let ``method="auto"`` choose the implicit integrator.

Reference: C. Canudas de Wit, H. Olsson, K. J. Åström, P. Lischinsky, A new model for control of systems with friction,
IEEE Transactions on Automatic Control 40 (1995) 419–425.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grisaille.model.functions import exp

if TYPE_CHECKING:
    from grisaille.model.expression import Expression


def lugre(
    v: Expression,
    z: Expression,
    sigma0: Expression | float,
    sigma1: Expression | float,
    b: Expression | float,
    sliding: Expression | float,
    static: Expression | float,
    stribeck: Expression | float,
) -> tuple[Expression, Expression]:
    """(dz/dt, friction force) as formulas of the sliding velocity v and the deflection z."""
    load = sliding + (static - sliding) * exp(-((v / stribeck) ** 2))
    rate = v - sigma0 * abs(v) / load * z
    return rate, sigma0 * z + sigma1 * rate + b * v
