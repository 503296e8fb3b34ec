"""Marking what is known, disturbed and measured in a model whose equations are given.

A variable that becomes an input no longer needs the equation that gave it; a disturbance is added to what an equation
gives. The equation *of* a variable is one in which it stands alone on a side. Where several do, formulas go before
equalities of two names, and of those that remain the first without which the others still determine everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws import Normal
from grisaille.model.checking import check_value
from grisaille.model.content import Content, WrittenEquation
from grisaille.model.declarations import Disturbance, Input
from grisaille.model.expression import Call, Expression, Name, as_expression, postorder
from grisaille.model.flat import FlatDisturbance, FlatInput, FlatOutput, FlatVariable
from grisaille.model.measurement.distributions import check_distribution, mapped_law
from grisaille.model.names import suggestion
from grisaille.model.rewriting import Rewriter

if TYPE_CHECKING:
    from grisaille.model.expression import FormulaLike
    from grisaille.model.spectra import Spectrum


def mark_inputs(content: Content, inputs: Mapping[str, float | Input | None]) -> Content:
    """Return variables as inputs: by name None, a default, or a ``gr.Input``."""
    _need_mapping(content, "with_inputs", inputs, '{"torque.tau": None}')
    new = content.copy()
    for name, given in inputs.items():
        if name in new.inputs:
            variable: Any = new.inputs[name]
        else:
            variable = _variable(new, name, "with_inputs")
            new.equations = _without(new, name)
            del new.variables[name]
            new.initial = tuple(law for law in new.initial if not _alone(law, name))
        new.inputs[name] = _input(content.name, name, variable, given)
    return new


def mark_disturbance(content: Content, name: str, spectrum: Spectrum, scale: FormulaLike, label: str | None) -> Content:
    """Return a disturbance that is added to a variable in its equation, or to its derivative: ``x`` or ``der(x)``."""
    state = _differentiated(name)
    variable = _variable(content, state or name, "with_disturbance")
    label = f"{state or name}.disturbance" if label is None else label
    if not isinstance(label, str) or not label:
        raise ModelError(
            f"{content.name}.with_disturbance: label is {label!r}; give a name as a text, or leave it out."
        )
    if content.kind(label):
        raise ModelError(f"{content.name} has a member '{label}' already: give the disturbance another label=….")
    Disturbance(spectrum, scale=scale).check(f"{content.name}.{label}")
    new = content.copy()
    if state or _is_given_by_rate(content, name):
        law = _rate_equation(content, state or name, is_asked=bool(state))
        disturbed = _with_disturbed_rate(law, state or name, Name(label))
        unit = f"{variable.unit}/s" if variable.unit else ""
        words = f"added to der({state or name}): {disturbed.left} = {disturbed.right}"
    else:
        law = _candidates(content, name)[0]
        disturbed, unit, words = _disturbed(law, name, Name(label)), variable.unit, f"disturbance of {name}"
    new.disturbances[label] = FlatDisturbance(label, spectrum, as_expression(scale), unit=unit, description=words)
    new.equations = tuple(disturbed if e is law else e for e in content.equations)
    return new


def mark_outputs(
    content: Content, outputs: Mapping[str, Expression | str], noise: Any, distribution: Any = None
) -> Content:
    """Return outputs by label: names of members, or formulas of them; the name of an output itself leaves what it
    is.
    """
    _need_mapping(content, "with_outputs", outputs, '{"angle": "load.phi"}')
    new = content.copy()
    for what, by_label in (("noise", noise), ("distribution", distribution)):
        strange = [n for n in by_label if n not in outputs] if isinstance(by_label, Mapping) else []
        if strange:
            raise ModelError(f"{content.name}.with_outputs: {what}= names {strange[0]!r}, which is not among outputs=.")
    for label, given in outputs.items():
        level = noise.get(label) if isinstance(noise, Mapping) else noise
        law = distribution.get(label) if isinstance(distribution, Mapping) else distribution
        if law is not None:
            law = _checked_law(f"{content.name}.{label}", law, level)
            level, law = (law.std, None) if isinstance(law, Normal) else (None, law)
        check_value(f"{content.name}.{label}", "noise", level)
        if isinstance(level, int | float) and not level >= 0:
            raise ModelError(
                f"{content.name}.with_outputs: the noise of '{label}' is {level}; it must not be negative."
            )
        rate = _differentiated(given)
        if rate in content.variables:
            definition: Expression = Call("der", (Name(rate),), 1)
        elif isinstance(given, str):
            if not content.kind(given):
                raise ModelError(f"{content.name} has no member '{given}'. {suggestion(given, content.names())}")
            definition = Name(given)
        else:
            check_value(f"{content.name}.{label}", "definition", given)
            definition = as_expression(given)
        if content.kind(label) and label not in content.outputs and label != given:
            raise ModelError(f"{content.name} has a member '{label}' already: choose another label for the output.")
        source: FlatOutput | FlatVariable | None = None
        if isinstance(given, str):
            source = content.outputs.get(given) if given == label else content.variables.get(given)
            source = source or content.variables.get(given)
        if isinstance(source, FlatOutput):
            definition = source.definition
        unit, words = (source.unit, source.description) if source is not None else ("", "")
        scatter = None if level is None else as_expression(level)
        new.outputs[label] = FlatOutput(label, definition, scatter, unit, words, distribution=law)
    return new


def _checked_law(name: str, law: Any, noise: Any) -> Any:
    """Return a law of measurements with formulas for its numbers."""
    check_distribution(name, law, noise)
    return mapped_law(law, as_expression)


def _need_mapping(content: Content, method: str, given: object, example: str) -> None:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ModelError(f"{content.name}.{method} takes a dict by name, such as {example}, got {given!r}.")


def _variable(content: Content, name: str, method: str) -> FlatVariable:
    if not isinstance(name, str) or name not in content.variables:
        known = content.kind(name) if isinstance(name, str) else ""
        what = f"'{name}' is a {known}, not a variable" if known else f"there is no variable '{name}'"
        raise ModelError(f"{content.name}.{method}: {what}. {suggestion(str(name), content.variables)}")
    return content.variables[name]


def _input(owner: str, name: str, variable: FlatVariable, given: Any) -> FlatInput:
    if isinstance(given, Input):
        given.check(f"{owner}.{name}")
        fields = given.fields
        default = None if fields["default"] is None else float(fields["default"])
        return FlatInput(name, default, fields["unit"] or variable.unit, fields["description"] or variable.description)
    if given is not None:
        check_value(f"{owner}.{name}", "default", given)
        if isinstance(given, Expression):
            raise ModelError(f"{owner}.{name}: the default of an input must be a number, got the formula `{given}`.")
    return FlatInput(name, None if given is None else float(given), variable.unit, variable.description)


# --- the equation of a variable ---


def _without(content: Content, name: str) -> tuple[WrittenEquation, ...]:
    """Return the equations without the one that gave ``name``."""
    candidates = _candidates(content, name)
    for law in candidates:
        rest = tuple(e for e in content.equations if e is not law)
        if len(candidates) == 1 or _determines(content, rest, name):
            return rest
    raise ModelError(
        f"{content.name}: '{name}' cannot become an input: without any one of the equations that give it, the "
        f"others no longer determine every variable. Choose the variable at which the signal enters."
    )


def _candidates(content: Content, name: str) -> list[WrittenEquation]:
    found = [law for law in content.equations if _alone(law, name)]
    if not found:
        raise ModelError(
            f"{content.name}: no equation gives '{name}' alone on a side, so it is not clear where a signal would "
            f"enter. Choose a variable that an equation gives, such as a force, a flow or the output of a source."
        )
    return sorted(found, key=lambda law: (_is_equality(law), not _is(law.left, name)))


def _alone(law: WrittenEquation, name: str) -> bool:
    for side, other in ((law.left, law.right), (law.right, law.left)):
        if _is(side, name) and not any(isinstance(n, Name) and n.path == name for n in postorder((other,))):
            return True
    return False


def _is(side: Expression, name: str) -> bool:
    if isinstance(side, Call) and side.operation == "neg":
        side = side.arguments[0]
    return isinstance(side, Name) and side.path == name


def _is_equality(law: WrittenEquation) -> bool:
    return all(isinstance(side, Name) for side in (law.left, law.right))


def _disturbed(law: WrittenEquation, name: str, signal: Expression) -> WrittenEquation:
    side, other = (law.left, law.right) if _is(law.left, name) else (law.right, law.left)
    sign = "sub" if isinstance(side, Call) else "add"
    moved = Call(sign, (other, signal))
    return replace(law, left=law.left, right=moved) if side is law.left else replace(law, left=moved)


# --- the equation of a derivative ---


def _differentiated(name: Any) -> str:
    """Return ``"x"`` for ``"der(x)"``; empty for anything else."""
    is_derivative = isinstance(name, str) and name.startswith("der(") and name.endswith(")")
    return name[len("der(") : -1].strip() if is_derivative else ""


def _is_rate(node: Expression, name: str) -> bool:
    """Return whether a formula is the first derivative of a variable."""
    if not isinstance(node, Call) or node.operation != "der" or node.data not in (None, 1):
        return False
    inner = node.arguments[0]
    return isinstance(inner, Name) and inner.path == name


def _having_rate(content: Content, name: str) -> list[WrittenEquation]:
    """Return equations with the derivative of a variable in them."""
    return [e for e in content.equations if any(_is_rate(node, name) for node in postorder((e.left, e.right)))]


def _only_names_rate(law: WrittenEquation, name: str) -> bool:
    """Return ``w = der(x)``."""
    sides = ((law.left, law.right), (law.right, law.left))
    return any(_is_rate(side, name) and isinstance(other, Name) for side, other in sides)


def _is_given_by_rate(content: Content, name: str) -> bool:
    """Return whether an equation says how a variable changes, or none gives it alone on a side."""
    says = any(not _only_names_rate(law, name) for law in _having_rate(content, name))
    return says or not any(_alone(law, name) for law in content.equations)


def _rate_equation(content: Content, name: str, *, is_asked: bool) -> WrittenEquation:
    """Return the equation that has ``der(x)``; one that only names it, ``w = der(x)``, where ``der(x)`` is asked
    for.
    """
    having = _having_rate(content, name)
    named = [law for law in having if _is_rate(law.left, name) or _is_rate(law.right, name)]
    naming = [law for law in named if _only_names_rate(law, name)]
    found = [law for law in named if law not in naming] or [law for law in having if law not in naming]
    if is_asked and not found:
        found = naming
    if len(found) == 1:
        return found[0]
    if found:
        shown = "; ".join(f"{law.left} = {law.right}" for law in found[:4])
        raise ModelError(
            f"{content.name}: {len(found)} equations have der({name}), so it is not clear where a signal would enter: "
            f"{shown}. Choose a variable that one of them gives, such as a force or a flow."
        )
    hint = f" '{name}' is differentiated: 'der({name})' adds to its rate." if naming else ""
    raise ModelError(
        f"{content.name}: no equation gives '{name}' alone on a side, so it is not clear where a signal would "
        f"enter. Choose a variable that an equation gives, such as a force, a flow or the output of a source.{hint}"
    )


def _with_disturbed_rate(law: WrittenEquation, name: str, signal: Expression) -> WrittenEquation:
    """Return ``der(x) = f + w``; where the derivative is inside a formula it is ``der(x) - w`` there."""
    if _is_rate(law.left, name):
        return replace(law, right=Call("add", (law.right, signal)))
    if _is_rate(law.right, name):
        return replace(law, left=Call("add", (law.left, signal)))
    put = Rewriter(lambda node: Call("sub", (node, signal)) if _is_rate(node, name) else None)
    return replace(law, left=put(law.left), right=put(law.right))


def _determines(content: Content, laws: tuple[WrittenEquation, ...], known: str) -> bool:
    """Return whether every variable but the known one can be matched with an equation that contains it."""
    from scipy.sparse import csr_array  # only here
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if content.joints or content.bindings:
        return True  # equations of connections are not written yet
    places = {name: k for k, name in enumerate(n for n in content.variables if n != known)}
    rows, columns = [], []
    for i, law in enumerate(laws):
        for path in {n.path for n in postorder((law.left, law.right)) if isinstance(n, Name)}:
            if path in places:
                rows.append(i)
                columns.append(places[path])
    incidence = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(laws), len(places)))
    return bool((maximum_bipartite_matching(incidence, perm_type="row") >= 0).all())
