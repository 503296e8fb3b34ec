"""Which trajectories a name in an option stands for.

A state by its own name, or by that of a variable equal to it; a vector or a disturbance by its name, which stands for
all its states. The states of a disturbance are those of its filter: w = C x_w.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grisaille.disturbance.stochastic_model import StochasticModel, plant_states
from grisaille.errors import EstimationError
from grisaille.model.names import suggestion

MANY = 8
"""States that a message lists; of more it gives the nearest."""


def states_named(model: StochasticModel, name: str, option: str) -> list[int]:
    """The places of the states that a name stands for."""
    if name in model.names:
        return [model.names.index(name)]
    merged = plant_states(model)
    if name in merged:
        return [merged[name]]
    found = [k for k, state in enumerate(model.names) if state.startswith(f"{name}[")]
    if not found:
        raise EstimationError(_refusal(model, name, option))
    return found


def by_state(model: StochasticModel, given: Any, option: str, default: Any) -> tuple[Any, ...]:
    """An option for every state: one for all, or ``{name: …}`` with a default for those that are not named."""
    if not isinstance(given, Mapping):
        return (given,) * model.n
    chosen = [default] * model.n
    # what names fewer states is meant more exactly, and comes last
    named = {name: states_named(model, name, option) for name in given}
    for name in sorted(named, key=lambda n: -len(named[n])):
        for k in named[name]:
            chosen[k] = given[name]
    return tuple(chosen)


def known_names(model: StochasticModel) -> list[str]:
    """States as a user calls them: those of a disturbance by its name."""
    own = list(model.names[: model.nx])
    return [*own, *dict.fromkeys(state.rpartition("[")[0] for state in model.names[model.nx :])]


def _refusal(model: StochasticModel, name: str, option: str) -> str:
    flat, states = model.structure.model, known_names(model)
    what = "which is not a state"
    if name in flat.disturbances:
        what = "a disturbance that is white noise and has no trajectory"
    elif name in model.observed_names:
        what = "which is a formula of the states and has no trajectory of its own"
    elif name in model.quantities:
        what = "which is a parameter"
    return (
        f"{option}= names '{name}', {what}. "
        + (f"The states of {flat.name} are {', '.join(states)}." if len(states) <= MANY else suggestion(name, states))
    )  # fmt: skip
