"""A fit as a Modelica model that extends the original."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import EstimationError
from grisaille.model.content import Content, ModelicaOrigin
from grisaille.modelica.fitted.writing import FIRST_LINE, FittedValues, Modifier, extension
from grisaille.writing import write_whole

if TYPE_CHECKING:
    from grisaille.bound_experiment.unknown import Unknown
    from grisaille.estimation.fitted import Fitted


def write_modelica(fit: Fitted, path: str | os.PathLike[str], name: str | None, experiment: str | None) -> Path:
    """Write the file, and return its path."""
    content = fit.initial_model._content
    if content.origin is None:
        raise EstimationError(
            f"{content.name} was not read from Modelica, so there is nothing that a Modelica model could extend. "
            "fit.save(…) keeps the fit, print(fit.model) shows its equations."
        )
    target, name = Path(path), name if name is not None else Path(path).stem
    _check_target(target, name, content.origin)
    text = extension(name, content.origin, _modifiers(fit, experiment), _values(fit), _head(fit, experiment))
    return write_whole(target, text.encode("utf-8"), "The fitted model")


def _check_target(target: Path, name: str, origin: ModelicaOrigin) -> None:
    if target.suffix != ".mo":
        raise EstimationError(f"path is {str(target)!r}; a Modelica file ends in .mo.")
    if not name.isidentifier() or not name.isascii():
        raise EstimationError(f"The model would be called {name!r}, which is no plain name of Modelica; give name=….")
    if name == origin.name or name == origin.name.rpartition(".")[2]:
        raise EstimationError(
            f"The model would be called '{name}' as the one that it extends: choose another file name, or give name=…, "
            f"such as name='{name}Fitted'."
        )
    if target.is_file() and not target.read_bytes().startswith(FIRST_LINE.encode()):
        raise EstimationError(
            f"{str(target)!r} exists and was not written by to_modelica; it is left as it is. Choose another file name."
        )


def _modifiers(fit: Fitted, experiment: str | None) -> list[Modifier]:
    """Return estimates first, then what else differs from the original."""
    content = fit.model._content
    origin = fit.initial_model._content.origin
    assert origin is not None
    found = {
        (target, is_start): Modifier(target, value, is_start, remark)
        for unknown, value, remark in _chosen(fit, experiment)
        for target, is_start in [_target(unknown, content)]
    }
    for changed in origin.changed:
        is_start = changed.startswith("start(") and changed.endswith(")")
        target = changed[6:-1] if is_start else changed
        value = _number(fit.model.start.get(target) if is_start else _parameter_value(fit, target))
        if (target, is_start) not in found and value is not None:
            found[target, is_start] = Modifier(target, value, is_start, "set before the fit")
    return list(found.values())


def _target(unknown: Unknown, content: Content) -> tuple[str, bool]:
    return unknown.target, unknown.kind == "start" or unknown.target in content.discretes


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _parameter_value(fit: Fitted, name: str) -> object:
    table = fit.model.parameters
    return table[name].value if name in table else None


def _chosen(fit: Fitted, experiment: str | None) -> list[tuple[Unknown, float, str]]:
    """Return estimated parameters and starts that the model has: shared ones, and those of the experiment that is
    named.
    """
    if experiment is not None:
        fit.find_experiment(experiment)
    runs = [experiment] if experiment is not None else list(fit.experiment_names) if len(fit.experiments) == 1 else []
    return [
        (u, v, remark)
        for u, v, remark in _unknown_remarks(fit)
        if u.kind in ("parameter", "start") and (u.experiment is None or u.experiment in runs)
    ]


def _unknown_remarks(fit: Fitted) -> list[tuple[Unknown, float, str]]:
    """Return every unknown with its estimate and its standard error in words."""
    found = []
    for (unknown, value), error in zip(fit._pairs(), fit.std_errors, strict=True):
        told = f"standard error {error:.3g}" if np.isfinite(error) else "standard error not known"
        found.append((unknown, value, f"{told} {unknown.unit}".strip()))
    return found


def _values(fit: Fitted) -> FittedValues:
    variables = fit.model._content.variables
    starts: Mapping[str, float | str] = fit.model.start
    return FittedValues(
        {n: v for n, p in fit.model.parameters.items() if (v := _number(p.value)) is not None},
        {n: (float(v), variables[n].fixed) for n, v in starts.items() if n in variables and not isinstance(v, str)},
    )


def _head(fit: Fitted, experiment: str | None) -> list[str]:
    """Return where the values come from, and what Modelica does not hold."""
    content = fit.initial_model._content
    origin = content.origin
    assert origin is not None
    lines = [f"Original: {origin.name}" + (f", {origin.file}" if origin.file else "")]
    lines.append(f"Estimator: {type(fit.method).__name__}; {fit.status}")
    lines.append(f"Model: fingerprint {fit.initial_model.fingerprint[:16]}")
    lines += [f"Experiment {e.name or ''}: fingerprint {e.fingerprint[:16]}" for e in fit.experiments]
    lines += [f"Caution: {words}" for words in ([] if fit.converged else ["not converged"]) + list(fit.doubts)]
    chosen = {id(u) for u, _, _ in _chosen(fit, experiment)}
    lines += [
        f"Not in the model: {u.name} = {v!r}, {told}" for u, v, told in _unknown_remarks(fit) if id(u) not in chosen
    ]
    if content.inputs:
        lines.append(f"Inputs in the fit: {', '.join(content.inputs)}")
    if content.outputs:
        lines.append(f"Measured in the fit: {', '.join(f'{n} = {o.definition}' for n, o in content.outputs.items())}")
    lines += [f"Disturbance in the fit: {name}" for name in content.disturbances]
    return lines
