"""Does an experiment suit a model? Names exist and mean what they are used for, inputs are complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from grisaille.errors import DataError
from grisaille.experiment.censored_cells import compared_marks
from grisaille.experiment.experiment_content import ALL_STATES, ExperimentContent, compared_rows
from grisaille.experiment.experiment_summary import held_gaps
from grisaille.experiment.signal_checks import naming_experiment
from grisaille.experiment.times.time_units import time_remarks
from grisaille.laws.censored import censored_path
from grisaille.model.expression import Call, postorder
from grisaille.model.flat import FlatModel
from grisaille.model.names import suggestion


def match_model(record: ExperimentContent, flat: FlatModel) -> tuple[str, ...]:
    """Return remarks on what can be used but deserves a look; what cannot be used is refused."""
    with naming_experiment(record.name):
        _check_names("inputs", record.inputs, "an input", flat.inputs, flat)
        _check_names("outputs", record.outputs, "an output", flat.outputs, flat)
        _check_names("constants", record.constants, "a parameter", flat.parameters, flat)
        starting = {**flat.variables, **flat.discretes}
        _check_names("start", [n for n in record.start if n != ALL_STATES], "a variable", starting, flat)
        _check_inputs_complete(record, flat)
        _check_rows(record, flat)
        _check_bounds(record, flat)
        _check_marks(record, flat)
    remarks = (*_unmeasured(record, flat), *_unit_remarks(record, flat), *time_remarks(record, flat))
    return (*remarks, *held_gaps(record))


def _check_names(what: str, given: Iterable[str], kind: str, known: Mapping[str, object], flat: FlatModel) -> None:
    for name in given:
        if name not in known:
            hint = _other_kind(name, flat) or _entries(name, known) or suggestion(name, known)
            raise DataError(f"{what}= names '{name}', which is not {kind} of {flat.name}. {hint}")


def _entries(name: str, known: Iterable[str]) -> str:
    """Return what to write for a vector as a whole."""
    entries = [n for n in known if n.startswith(f"{name}[")]
    return (
        f"It is a vector: name its entries, {', '.join(map(repr, entries[:3]))}{', …' * (len(entries) > 3)}."
        if entries
        else ""
    )


def _other_kind(name: str, flat: FlatModel) -> str:
    """Return what to do with a name that the model has, but as something else."""
    advice: dict[str, Mapping[str, Any]] = {
        f"'{name}' is a discrete variable: give its start in start={{'{name}': …}}.": flat.discretes,
        f"'{name}' is a parameter: set it with constants={{'{name}': …}}.": flat.parameters,
        f"'{name}' is an input: give it in inputs=.": flat.inputs,
        f"'{name}' is an output: give it in outputs=.": flat.outputs,
        f"'{name}' is a variable: declare what is measured, y = gr.Output({name}), and give y.": flat.variables,
        f"'{name}' is a disturbance: it is not known; declare a gr.Input for what is.": flat.disturbances,
        f"'{name}' is a formula of the model or driven by one: declare it as gr.Output to measure it.": flat.quantities,
    }
    return next((text for text, table in advice.items() if name in table), "")


def _check_inputs_complete(record: ExperimentContent, flat: FlatModel) -> None:
    missing = [n for n, i in flat.inputs.items() if i.default is None and n not in record.inputs]
    if missing:
        names = ", ".join(f"'{n}'" for n in missing)
        raise DataError(
            f"{flat.name} needs the input{'s' if len(missing) > 1 else ''} {names}, which the experiment does not "
            f"give: add inputs={{'{missing[0]}': …}} (a number will do), or declare gr.Input(default=…)."
        )


def _check_rows(record: ExperimentContent, flat: FlatModel) -> None:
    if not record.is_static:
        return
    formulas = [side for e in flat.equations for side in (e.left, e.right)]
    formulas += [o.definition for o in flat.outputs.values()]
    used = {node.operation for node in postorder(formulas) if isinstance(node, Call)} & {"der", "delay"}
    if used:
        what = "derivatives" if "der" in used else "delays"
        raise DataError(
            f"the experiment has no times, so its rows are independent samples, but {flat.name} has {what}. "
            f"Give time=, as in Experiment(time, …) or from_csv(…, time='t')."
        )


def _check_marks(record: ExperimentContent, flat: FlatModel) -> None:
    """Samples that are known by a limit alone need a law that knows what a limit is."""
    for name in record.marks:
        marked, law = compared_marks(record, name), flat.outputs[name].distribution
        if not marked.any() or censored_path(law) is not None:
            continue
        k = int(np.flatnonzero(marked)[0])
        limit = record.outputs[name].values[compared_rows(record, name)[k]]
        count, inner = int((marked != 0).sum()), "gr.Normal(std=…)"
        inner = inner if law is None else f"gr.laws.{type(law).__name__}(…)"
        many = f"{'are' if count > 1 else 'is'} known by a limit alone"
        raise DataError(
            f"{count} sample{'s' * (count > 1)} of output '{name}' {many}, such as "
            f"'{'<' if marked[k] < 0 else '>'}{limit:g}', and {flat.name} takes them to be measured values. "
            f"Declare {name} = gr.Output(…, distribution=gr.laws.Censored(of={inner})), which counts them with the "
            f"probability of what lies beyond, or make them NaN, which leaves them out."
        )


def _check_bounds(record: ExperimentContent, flat: FlatModel) -> None:
    for name, value in record.start.items():
        bounds = flat.variables[name].bounds if name in flat.variables else None
        if isinstance(value, float) and bounds is not None and not bounds[0] <= value <= bounds[1]:
            raise DataError(
                f"start of '{name}' is {value:g}, outside the bounds ({bounds[0]:g}, {bounds[1]:g}) that {flat.name} "
                f"declares. Correct one of them."
            )


def _unmeasured(record: ExperimentContent, flat: FlatModel) -> list[str]:
    return [f"Output {name} of {flat.name} is not in the data." for name in flat.outputs if name not in record.outputs]


def _unit_remarks(record: ExperimentContent, flat: FlatModel) -> list[str]:
    declared = {n: s.unit for table in (flat.inputs, flat.outputs) for n, s in table.items() if s.unit}
    return [
        f"{name} is in {unit} in the data and in {declared[name]} in {flat.name}; nothing is converted."
        for name, unit in record.units.items()
        if declared.get(name, unit).replace(" ", "") != unit.replace(" ", "")
    ]
