"""Laws as plain data, and back: what files of fits and experiments keep, and as a call that makes the same law.

A law is kept by its name and its numbers. A file that names a law which is not defined is refused: nothing stands in
for it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError, ModelError
from grisaille.laws.joint import JointLaw, MultivariateNormal, SmoothCurve, Smoothness
from grisaille.laws.law import Law
from grisaille.laws.law_arguments import is_formula

if TYPE_CHECKING:
    from grisaille.laws import Prior

JOINT_LAWS: dict[str, type] = {c.__name__: c for c in (MultivariateNormal, SmoothCurve, Smoothness)}
AT_THE_TOP = (
    "Beta", "Gamma", "HalfCauchy", "HalfNormal", "LogNormal", "MultivariateNormal", "Normal", "Smoothness", "Uniform",
)  # fmt: skip
"""Laws that are ``gr.Name``; the others are ``gr.laws.Name``."""


def is_prior(value: object) -> bool:
    """Return whether a value can be a prior: a law of one number, or one of the joint laws."""
    return isinstance(value, Law | JointLaw | Smoothness)


def refuse_no_prior(where: str, value: object) -> None:
    """Refuse what is no prior, in one sentence for all who take one."""
    if not is_prior(value):
        raise ModelError(
            f"{where}: prior must be a law such as gr.Normal(mean, std), gr.LogNormal(median, log_std) or "
            f"gr.HalfNormal(scale), for the values of a table gr.Smoothness(scale), or one of your own that derives "
            f"from gr.laws.Law, got {value!r}."
        )
    if isinstance(value, Law):
        value.refuse_open()
        _refuse_measured(where, value)


def is_for_measurements(kind: type[Law]) -> bool:
    """Return whether all laws of a class are those of measurements only: of counts, or with atoms."""
    return kind.is_discrete is True or kind.has_atoms is True


def _refuse_measured(where: str, law: Law) -> None:
    """Refuse laws that measurements can have and unknowns cannot."""
    if law.is_discrete or law.has_atoms:
        kind = "a law of counts" if law.is_discrete else "a law of values that have been recorded"
        raise ModelError(
            f"{where}: {call_text(law)} is {kind}, for the distribution= of an output. A prior needs a continuous law, "
            f"such as gr.Normal(mean, std) or gr.Gamma(mean, shape)."
        )
    formulas = [path for path, value in law.arguments.items() if is_formula(value)]
    if formulas:
        raise ModelError(
            f"{where}: '{formulas[0]}' of the prior {call_text(law)} is a formula of the model. The numbers of a prior "
            f"are fixed before the fit: give a number."
        )


def class_of(name: str) -> type | None:
    """Return the class of a law by its name; None where none of that name has been defined."""
    return JOINT_LAWS.get(name) or Law.known.get(name)


def to_data(prior: Prior) -> list[Any]:
    """Return [name, fields] of a prior, laws inside it likewise."""
    return [
        type(prior).__name__,
        {f.name: to_data(v) if is_prior(v := getattr(prior, f.name)) else v for f in fields(prior)},
    ]


def from_data(data: Any) -> Any:
    """Return the prior that ``to_data`` has described."""
    name, given = data
    found = class_of(name)
    if found is None:
        raise DataError(
            f"The law {name} is not known here: import the module that defines it first. Known are "
            f"{', '.join(sorted({**JOINT_LAWS, **Law.known}))}."
        )
    inside = {k: from_data(v) if _is_law(v) else v for k, v in given.items()}
    return found(**inside)


def _is_law(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict)


def call_text(prior: Prior) -> str:
    """Return the call that makes a prior, as in ``gr.Normal(mean=1.0, std=0.1)``."""
    name = type(prior).__name__
    listed = ((f.name, getattr(prior, f.name)) for f in fields(prior))
    given = ", ".join(f"{n}={call_text(v) if is_prior(v) else repr(v)}" for n, v in listed)
    if not type(prior).__module__.startswith("grisaille."):
        return f"{name}({given})"
    return f"gr.{'' if name in AT_THE_TOP else 'laws.'}{name}({given})"
