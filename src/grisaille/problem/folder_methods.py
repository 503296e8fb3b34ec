"""Estimators by name with options from a file or a command line."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError
from grisaille.model.names import suggestion
from grisaille.problem.estimators import estimators
from grisaille.problem.schema import problem_schema
from grisaille.problem.schema_deviations import deviations

if TYPE_CHECKING:
    pass


def make_method(name: str, options: dict[str, Any], seed: int | None) -> Any:
    """Return the estimator of a name; the problem's seed is its seed unless it has one of its own.

    What an estimator refuses about its options is raised in its own words. Folders that ask for interpreted models,
    which no longer exist, are read as if they did not.
    """
    estimator = estimators()[name]
    if options.get("compiled") is False:
        options = {**options, "compiled": None}
    if seed is not None and "seed" in {f.name for f in dataclasses.fields(estimator)}:
        options = {"seed": seed, **options}
    try:
        return estimator(**options)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} does not take these options: {error}.") from None


def changed_method(method: Any, name: str | None, options: dict[str, Any], seed: int | None) -> Any:
    """Return a method with another name or other options; the given one without either."""
    if name is None and not options:
        return method
    current = "auto" if isinstance(method, str) else type(method).__name__
    chosen = name or current
    known = estimators()
    if chosen == "auto":
        if options:
            raise DataError(f"--option needs an estimator: add --method, one of {', '.join(known)}.")
        return "auto"
    if chosen not in known:
        raise DataError(f"There is no estimator {chosen!r}. {suggestion(chosen, ['auto', *known])}")
    schema = problem_schema()
    for place, message in deviations({"name": chosen, **options}, schema["$defs"][chosen], schema):
        raise DataError(f"--option {'.'.join(map(str, place))} {message}")
    kept = {f.name: getattr(method, f.name) for f in dataclasses.fields(method)} if chosen == current else {}
    return make_method(chosen, {**kept, **options}, None if kept else seed)
