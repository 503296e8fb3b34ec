"""Reads the result of a class's ``noise_covariance`` as formulas of pairs of outputs.

{("y1", "y2"): 0.01}              a number or a formula
"full"                            of all outputs unknown: a parameter ``correlation(a, b)`` of every pair
{("a", "b", "c"): "full"}         of some outputs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from grisaille.errors import ModelError
from grisaille.model.content import Content
from grisaille.model.expression import Constant, Expression, as_expression
from grisaille.model.flat import FlatParameter
from grisaille.model.flattening.scope import Scope
from grisaille.model.measurement.noise_covariances import CORRELATION, Pair, full_covariance

FULL_COVARIANCE = "full"


@dataclass
class Covariances:
    """The noise covariances of the outputs of a class, with the unknown correlations among them."""

    formulas: dict[Pair, Expression] = field(default_factory=dict)
    correlations: dict[str, FlatParameter] = field(default_factory=dict)


def returned_covariances(cls: type, instance: Any) -> Any:
    """Return what the method of a class returns: a table, or ``"full"``."""
    method = instance.noise_covariance
    given = method() if callable(method) else None
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str) and given == FULL_COVARIANCE:
        return given
    raise ModelError(
        f'{cls.__name__}.noise_covariance must be a method that returns a dict such as {{("y1", "y2"): 0.1}} or '
        f'{{("y1", "y2"): "full"}}, or "full" for all outputs, got '
        f"{method if given is None and not callable(method) else given!r}."
    )


def read_covariances(scope: Scope, content: Content, given: Any) -> Covariances:
    """Return formulas in the names of a content."""
    found = Covariances()
    for pair, value in _pairs(scope, content, given):
        if pair in found.formulas or pair[::-1] in found.formulas:
            raise ModelError(f"{scope.owner}.noise_covariance gives the covariance of {' and '.join(pair)} twice.")
        if value is not FULL_COVARIANCE:
            found.formulas[pair] = scope.resolve(value)
            continue
        name = f"{CORRELATION}{pair[0]}, {pair[1]})"
        said = f"correlation of the noise of {pair[0]} and {pair[1]}"
        found.formulas[pair] = full_covariance(name, pair)
        found.correlations[name] = FlatParameter(name, Constant(0.0), description=said, bounds=(-1.0, 1.0))
    return found


def _pairs(scope: Scope, content: Content, given: Any) -> Iterator[tuple[Pair, Any]]:
    """Give every pair of outputs with ``FULL_COVARIANCE`` or its covariance."""
    if given == FULL_COVARIANCE:
        yield from ((pair, FULL_COVARIANCE) for pair in combinations(content.outputs, 2))
        return
    for key, value in given.items():
        is_full = isinstance(value, str) and value == FULL_COVARIANCE
        names = [_output(scope, content, item) for item in key] if isinstance(key, tuple) else []
        if len(names) < 2 or (len(names) > 2 and not is_full):
            raise ModelError(
                f'{scope.owner}.noise_covariance: keys are pairs of outputs ("y1", "y2"), or several with the value '
                f'"full", got {key!r}.'
            )
        if isinstance(value, str) and not is_full:
            raise ModelError(
                f"{scope.owner}.noise_covariance of {', '.join(names)} is {value!r}: give a number, a formula, or "
                f'"full".'
            )
        twice = next((n for n in names if names.count(n) > 1), "")
        if twice:
            raise ModelError(
                f"{scope.owner}.noise_covariance names '{twice}' with itself: its variance is the square of its noise, "
                f"{twice} = gr.Output(…, noise=…)."
            )
        yield from ((pair, FULL_COVARIANCE if is_full else as_expression(value)) for pair in combinations(names, 2))


def _output(scope: Scope, content: Content, item: Any) -> str:
    name = item if isinstance(item, str) else scope.name_of(item)
    if name not in content.outputs:
        raise ModelError(
            f"{scope.owner}.noise_covariance: '{name}' is not an output; outputs are "
            f"{', '.join(content.outputs) or 'none'}."
        )
    return str(name)
