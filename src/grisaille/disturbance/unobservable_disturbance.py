"""Disturbances that linearisation cannot see: one that enters as w² has no gain at w = 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.errors import EstimationError

if TYPE_CHECKING:
    from grisaille.disturbance.stochastic_model import StochasticModel

GAIN_ROUNDING = 1e-12
"""Of the gain where the disturbance is not zero: rounding."""


def hidden_disturbance(model: StochasticModel) -> str:
    """Return the name of a disturbance without a linear effect where it is zero, or nothing."""
    xw = model.X[model.nx :]
    seen = ca.vertcat(model.drift[: model.nx], model.measured, model.residual)
    places: dict[str, list[int]] = {}
    for k, full in enumerate(model.names[model.nx :]):
        places.setdefault(full.rpartition("[")[0], []).append(k)
    for name, mine in places.items():
        own = ca.vertcat(*(xw[k] for k in mine))
        if not ca.depends_on(seen, own):
            continue
        gain = ca.densify(ca.jacobian(seen, own))
        at_zero = ca.substitute([gain], [xw], [ca.SX.zeros(xw.numel())])[0]
        if _vanishes(ca.Function("gain", [model.t, model.X, model.z, model.u, model.q], [at_zero, gain])):
            return name
    return ""


def refuse_hidden_disturbances(model: StochasticModel, so: str = "an extended Kalman filter cannot see it") -> None:
    """For whatever linearises where disturbances are zero; ``so`` says what follows."""
    if model.hidden:
        raise EstimationError(
            f"The disturbance {model.hidden} has no linear effect where it is zero (it enters as {model.hidden}**2 or "
            f"alike), so {so}. Use gr.SimulatedPEM(), which simulates it."
        )


def _vanishes(function: ca.Function) -> bool:
    """Return whether the gain at zero is nothing beside that elsewhere, whatever the units."""
    random = np.random.default_rng(11)
    for _ in range(5):
        values = [random.uniform(0.3, 1.7, function.size_in(i)) for i in range(function.n_in())]
        at_zero, elsewhere = (np.array(f.full()) for f in function(*values))
        size = np.abs(elsewhere[np.isfinite(elsewhere)]).max(initial=0.0)
        if np.any(np.abs(at_zero[np.isfinite(at_zero)]) > GAIN_ROUNDING * size):
            return False
    return True
