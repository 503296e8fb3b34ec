"""Flattens the content of a model: connections become equations, and named formulas are inserted.

Texts of equations keep the names of formulas, as the user wrote them; ``left`` and ``right`` hold the formulas
themselves, so that only parameters, variables, inputs, disturbances and time remain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grisaille.cache import Cache
from grisaille.errors import ModelError
from grisaille.model.classes import Model, content_key
from grisaille.model.content import Content, WrittenEquation
from grisaille.model.expression import Call, Constant, Expression, Name, is_open, postorder
from grisaille.model.flat import FlatEquation, FlatModel, FlatVariable
from grisaille.model.flattening.connections import bind_signals, merge_connectors
from grisaille.model.flattening.when_clauses import (
    at_all_times,
    flat_whens,
    is_of_events,
    refuse_discrete_equations,
    start_parameters,
)
from grisaille.model.measurement.distributions import law_formulas, mapped_law
from grisaille.model.measurement.noise_covariances import refuse_other_laws, with_level_names
from grisaille.model.names import suggestion
from grisaille.model.notation.text import render
from grisaille.model.parameter_information import FormulaLoop, order_formulas
from grisaille.model.rewriting import Rewriter
from grisaille.model.whens import OF_EVENTS

if TYPE_CHECKING:
    from grisaille.model.flat import FlatParameter


def flatten(model: Any) -> FlatModel:
    """Return the equations and symbols of ``model``, a :class:`Model`; equal models share it."""
    if not isinstance(model, Model):
        hint = f" Call the class: {model.__name__}()." if isinstance(model, type) else ""
        raise ModelError(f"A model is needed, got {type(model).__name__}.{hint}")
    flat: FlatModel = model._cached("flat", lambda: _shared(model))
    return flat


def _shared(model: Model) -> FlatModel:
    """Return the flat model that all models of this content share."""
    try:
        key = content_key(model)
    except ModelError:
        return _flatten(model._content)  # which refuses members of other models by name
    return _known.get(key, lambda: _flatten(model._content))


_known: Cache[FlatModel] = Cache(32)
"""By content: equal models share one."""


def _flatten(content: Content) -> FlatModel:
    eventful = _check_closed(content)
    bindings = bind_signals(content)
    content, loops = _break_loops(_with_bindings(content, bindings))
    written = _inserting(_formulas(content))
    insert: Rewriter | _Chain = written
    if eventful or content.discretes:
        always = at_all_times(content)
        insert = _Chain(written, always)
    equations = [_equation(law, insert) for law in (*content.equations, *loops)]
    equations += merge_connectors(content)
    refuse_discrete_equations(content, equations)
    _refuse_discrete_levels(content, insert)
    refuse_other_laws(content.name, content.outputs, content.noise_covariance)
    _check_equations(content, equations)
    return FlatModel(
        name=content.name,
        description=content.description,
        parameters={**_parameters(content, insert), **start_parameters(content, insert)},
        variables={n: replace(v, start=_optional(v.start, insert)) for n, v in content.variables.items()},
        inputs=content.inputs,
        disturbances={
            n: replace(
                d,
                spectrum=d.spectrum.mapped(insert),
                scale=_optional(d.scale, insert),
                correlation=tuple((other, insert(e)) for other, e in d.correlation or ()) or None,
            )
            for n, d in content.disturbances.items()
        },
        outputs={
            n: replace(
                o,
                definition=insert(o.definition),
                noise=_optional(o.noise, insert),
                distribution=o.distribution and mapped_law(o.distribution, insert),
            )
            for n, o in content.outputs.items()
        },
        quantities={
            n: insert(Name(n)) for n in content.quantities if not is_of_events(written(Name(n)), content.discretes)
        },
        equations=tuple(equations),
        discretes={n: replace(d, start=insert(d.start)) for n, d in content.discretes.items()},
        whens=flat_whens(content, written),
        noise_covariance={pair: insert(with_level_names(e)) for pair, e in content.noise_covariance.items()},
        hints=tuple(dict.fromkeys(content.hints)),
        initial=tuple(_equation(law, insert) for law in content.initial),
    )


def _refuse_discrete_levels(content: Content, insert: Rewriter | _Chain) -> None:
    """Refuse noise and spectra of discrete variables: they hold for a whole run, events change discrete variables."""
    levels = {f"the noise of '{n}'": o.noise for n, o in content.outputs.items()}
    levels |= {f"the {path} of '{n}'": e for n, o in content.outputs.items() for path, e in law_formulas(o).items()}
    levels |= {f"the scale of '{n}'": d.scale for n, d in content.disturbances.items()}
    levels |= {
        f"the noise covariance of {', '.join(pair)}": with_level_names(e)
        for pair, e in content.noise_covariance.items()
    }
    for what, formula in levels.items():
        used = postorder((insert(formula),)) if formula is not None and content.discretes else ()
        for node in used:
            if isinstance(node, Name) and node.path in content.discretes:
                raise ModelError(
                    f"{content.name}: {what} contains the discrete variable '{node.path}', which events change, and it "
                    f"must hold for a whole run: give a number or a formula of parameters."
                )


def _check_closed(content: Content) -> bool:
    """Refuse leaves that are no members of this model; return whether formulas contain what only events know."""
    eventful = False
    known = {"time", *content.parameters, *content.variables, *content.inputs, *content.disturbances}
    known |= {*content.outputs, *content.quantities, *content.discretes}
    for node in postorder(content.formulas()):
        if isinstance(node, Call):
            eventful = eventful or node.operation in OF_EVENTS
        if isinstance(node, Name) and node.path not in known:
            raise ModelError(
                f"{content.name} uses '{node.path}', which does not exist (any more). {suggestion(node.path, known)}"
            )
        if is_open(node):
            raise ModelError(
                f"{content.name} uses `{node}`, which is not one of its members. A component bound to members of an "
                "enclosing model can only be used inside that model; members of a parent class are written "
                "`Parent.x` or `self.x`."
            )
    return eventful


def _with_bindings(content: Content, bindings: dict[str, Expression]) -> Content:
    """Return driven inputs as named formulas, outputs that a connection defines as well."""
    new = content.copy()
    for name, formula in bindings.items():
        if name in new.inputs:
            del new.inputs[name]
            new.quantities[name] = formula
        else:
            del new.variables[name]
            new.outputs[name] = replace(new.outputs[name], definition=formula)
    return new


def _formulas(content: Content) -> dict[str, Expression]:
    defined = {n: o.definition for n, o in content.outputs.items() if n not in content.variables}
    return {**content.quantities, **defined}


def _break_loops(content: Content) -> tuple[Content, list[WrittenEquation]]:
    """Return a formula that uses itself through connections becomes an unknown with an equation."""
    content, loops = content.copy(), []
    while True:
        formulas = _formulas(content)
        try:
            order_formulas(formulas, list(formulas))
        except FormulaLoop as loop:
            loops.append(WrittenEquation(Name(loop.name), formulas[loop.name], f"algebraic loop through {loop.name}"))
            _make_unknown(content, loop.name)
        else:
            return content, loops


def _make_unknown(content: Content, name: str) -> None:
    content.quantities.pop(name, None)
    unit = content.outputs[name].unit if name in content.outputs else ""
    content.variables[name] = FlatVariable(name, unit=unit)
    if name in content.outputs:
        content.outputs[name] = replace(content.outputs[name], definition=Name(name))


def _inserting(formulas: Mapping[str, Expression]) -> Rewriter:
    """Return what replaces the name of a formula by the formula."""
    done: dict[str, Expression] = {}
    insert = Rewriter(lambda node: done.get(node.path) if isinstance(node, Name) else None)
    for name in order_formulas(formulas, list(formulas)):
        done[name] = insert(formulas[name])
    return insert


class _Chain:
    """One rewriter after another."""

    def __init__(self, first: Rewriter, then: Rewriter) -> None:
        self.first, self.then = first, then

    def __call__(self, root: Expression) -> Expression:
        return self.then(self.first(root))


def _equation(law: WrittenEquation, insert: Callable[[Expression], Expression]) -> FlatEquation:
    text = f"{render(law.left)} == {render(law.right)}"
    return FlatEquation(insert(law.left), insert(law.right), text, law.source)


def _optional(expression: Expression | None, insert: Callable[[Expression], Expression]) -> Expression | None:
    return None if expression is None else insert(expression)


def _parameters(content: Content, insert: Callable[[Expression], Expression]) -> dict[str, FlatParameter]:
    parameters = {n: replace(p, value=_optional(p.value, insert)) for n, p in content.parameters.items()}
    formulas = {n: p.value for n, p in parameters.items() if isinstance(p.value, Call | Name)}
    order_formulas(formulas, list(formulas))
    for name, formula in formulas.items():
        for leaf in postorder((formula,)):
            if isinstance(leaf, Name) and leaf.path not in parameters:
                raise ModelError(
                    f"{content.name}: the value of the parameter '{name}' is `{formula}`, which contains "
                    f"'{leaf.path}'; only parameters are constant. Declare it as gr.Variable or as a formula instead."
                )
    return parameters


def _check_equations(content: Content, equations: list[FlatEquation]) -> None:
    if content.variables and not equations:
        unknowns = ", ".join(list(content.variables)[:6]) + (", …" if len(content.variables) > 6 else "")
        count = f"{len(content.variables)} variable{'s' if len(content.variables) > 1 else ''}"
        raise ModelError(
            f"{content.name} has {count} ({unknowns}) but no equations: write them as a "
            "list `equations = [...]` in the class body, or as a method `def equations(self)` that yields them."
        )
    for equation in equations:
        if isinstance(equation.left, Constant) and isinstance(equation.right, Constant):
            raise ModelError(f"The equation `{equation.text}` ({equation.source}) contains numbers only.")
