"""Disturbances that linearisation cannot see: one that enters as w² has no gain at w = 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import casadi as ca
import numpy as np

from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError

NOTHING = 1e-12
"""Of the gain where the disturbance is not zero: rounding."""


def hidden_disturbance(model: StochasticModel) -> str:
    """The name of a disturbance without a linear effect where it is zero, or nothing."""
    xw = model.X[model.nx :]
    places: dict[str, list[int]] = {}
    for k, full in enumerate(model.names[model.nx :]):
        places.setdefault(full.rpartition("[")[0], []).append(k)
    own = {name: ca.vertcat(*(xw[k] for k in mine)) for name, mine in places.items()}
    seen = ca.vertcat(model.drift[: model.nx], model.measured, model.residual)
    return next(hidden_among(seen, own, xw, [model.t, model.X, model.z, model.u, model.q]), "")


def hidden_among(seen: ca.SX, own: Mapping[str, ca.SX], every: ca.SX, arguments: Sequence[ca.SX]) -> Iterator[str]:
    """Names whose symbols (``own``) formulas contain without a slope where ``every`` symbol is zero."""
    for name, symbols in own.items():
        if not ca.depends_on(seen, symbols):
            continue
        gain = ca.densify(ca.jacobian(seen, symbols))
        if not ca.depends_on(gain, every) and gain.nnz() and not gain.is_zero():
            continue
        at_zero = ca.substitute([gain], [every], [ca.SX.zeros(every.numel())])[0]
        if _vanishes(ca.Function("gain", list(arguments), [at_zero, gain])):
            yield name


def refuse_hidden_disturbances(model: StochasticModel, so: str = "an extended Kalman filter cannot see it") -> None:
    """For whatever linearises where disturbances are zero; ``so`` says what follows."""
    refuse_hidden(hidden_disturbance(model), so)


def refuse_hidden(name: str, so: str, otherwise: str = "") -> None:
    """Refuse the disturbance of a name, if there is one; ``otherwise`` is what else can be done."""
    if name:
        raise EstimationError(
            f"The disturbance {name} has no linear effect where it is zero (it enters as {name}**2 or alike), so {so}. "
            f"Use gr.SimulatedPEM(), which simulates it{', ' if otherwise else ''}{otherwise}."
        )


def _vanishes(function: ca.Function) -> bool:
    """Whether the gain at zero is nothing beside that elsewhere, whatever the units."""
    random = np.random.default_rng(11)
    for _ in range(5):
        values = [random.uniform(0.3, 1.7, function.size_in(i)) for i in range(function.n_in())]
        at_zero, elsewhere = (np.array(f.full()) for f in function(*values))
        size = np.abs(elsewhere[np.isfinite(elsewhere)]).max(initial=0.0)
        if np.any(np.abs(at_zero[np.isfinite(at_zero)]) > NOTHING * size):
            return False
    return True
