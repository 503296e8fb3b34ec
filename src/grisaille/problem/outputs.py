"""``[outputs.y]`` of ``problem.toml``: how measurements scatter, in place of what the model says.

    [outputs.pop]
    distribution = { kind = "negativebinomial", size = "r" }

Numbers of a law are numbers, or names of the model: parameters, which may be estimated, inputs, such as a column of
limits, and variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError
from grisaille.laws import Law
from grisaille.laws.law import is_ours
from grisaille.model.expression import Name
from grisaille.model.flat import FlatModel
from grisaille.model.names import suggestion
from grisaille.problem.folder_findings import Findings
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    from grisaille.model.classes import Model

LAW_KINDS: dict[str, type[Law]] = {n.lower(): kind for n, kind in Law.known.items() if is_ours(kind)}


def with_laws(model: Model, tables: Mapping[str, Any], findings: Findings) -> Model:
    """Return the model with the noise and the laws of the file."""
    for output, table in tables.items():
        with findings.catching(("outputs", output)):
            flat = structure_of(model).model
            if output not in flat.outputs:
                raise DataError(f"'{output}' is not an output of {flat.name}. {suggestion(output, flat.outputs)}")
            if len(table) != 1:
                said = "both noise and distribution" if table else "neither noise nor distribution"
                raise DataError(
                    f"has {said}: noise = 0.1 is normal noise, distribution any other law; give one of them."
                )
            given = {key: _given(value, flat) for key, value in table.items()}
            model = model.with_outputs({output: output}, **given)
    return model


def _given(value: Any, flat: FlatModel) -> Any:
    return make_law(value, flat) if isinstance(value, Mapping) else _argument(value, flat)


def make_law(table: Mapping[str, Any], flat: FlatModel) -> Law:
    """Return the law that a table describes, its location left open."""
    kind: Any = LAW_KINDS[table["kind"]]
    known = {f.name: f for f in fields(kind) if f.name != kind.location}
    given = {key: value for key, value in table.items() if key != "kind"}
    needed = [n for n, f in known.items() if f.default is MISSING or n == "of"]
    if set(needed) - set(given) or set(given) - set(known):
        example = "".join(f", {name} = …" for name in known)
        raise DataError(
            f"a {table['kind']} distribution has {' and '.join(known) or 'no numbers'}, got "
            f'{", ".join(given) or "none"}: {{ kind = "{table["kind"]}"{example} }}.'
        )
    made: Law = kind(**{n: _given(value, flat) for n, value in given.items()})
    return made


def _argument(value: Any, flat: FlatModel) -> Any:
    """Return a number, or a name of the model as a formula."""
    if not isinstance(value, str):
        return value
    names = [*flat.parameters, *flat.inputs, *flat.variables]
    if value not in names:
        raise DataError(
            f"'{value}' is not a parameter, an input or a variable of {flat.name}. {suggestion(value, names)} Formulas "
            f"stand in the model's own file."
        )
    return Name(value)
