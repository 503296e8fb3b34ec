"""``when`` in a flat model: conditions and actions in flat names, and what is wrong with them.

In formulas that hold at all times ``pre(n)`` of a discrete variable is the variable itself; other operations of events
(``clock``, ``pre`` of what is continuous) have no meaning there and are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from grisaille.errors import ModelError
from grisaille.model.content import Content, WhenBranch, WhenClause, WrittenAction
from grisaille.model.expression import Call, Expression, Name, postorder
from grisaille.model.flat import FlatAction, FlatClause, FlatEquation, FlatParameter, FlatWhen
from grisaille.model.notation.text import render
from grisaille.model.rewriting import Rewriter
from grisaille.model.whens import OF_EVENTS


def flat_whens(content: Content, insert: Rewriter) -> tuple[FlatWhen, ...]:
    """Return every ``when`` in flat names."""
    whens = tuple(_when(content, w, insert) for w in content.whens)
    _refuse_shared_targets(content, whens)
    assigned = {a.target for w in whens for c in w.clauses for a in c.actions}
    for name in content.discretes:
        if name not in assigned:
            raise ModelError(
                f"{content.name}: '{name}' is a gr.Discrete, but no gr.when gives it a value: write "
                f"gr.when(condition, {name} == …) among the equations, or declare it as gr.Parameter if it is constant."
            )
    return whens


def start_parameters(content: Content, insert: Callable[[Expression], Expression]) -> dict[str, FlatParameter]:
    """Return discrete variables as constants at their start."""
    return {n: FlatParameter(n, insert(d.start), d.unit, d.description) for n, d in content.discretes.items()}


def is_of_events(formula: Expression, discretes: Iterable[str]) -> bool:
    """Return whether a formula has a meaning at events only."""
    known = set(discretes)
    return any(
        isinstance(node, Call) and node.operation in OF_EVENTS and not _is_pre_of(node, known)
        for node in postorder((formula,))
    )


def at_all_times(content: Content) -> Rewriter:
    """Replace ``pre(n)`` of a discrete variable by the variable itself, and refuse what only events know."""
    known = set(content.discretes)

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Call):
            return None
        if _is_pre_of(node, known):
            return node.arguments[0]
        if node.operation == "pre":
            raise ModelError(
                f"{content.name}: `{node}` stands outside gr.when. Of a continuous variable pre(…) is the value just "
                f"before an event and has a meaning inside gr.when only; between events it is "
                f"`{node.arguments[0]}` itself."
            )
        if node.operation in OF_EVENTS:
            raise ModelError(
                f"{content.name}: `{node}` is a moment, not a condition that holds for a while: it has a meaning as "
                f"the condition of gr.when only. Let a gr.Discrete remember what happened, and use that."
            )
        if node.operation == "der" and isinstance(node.arguments[0], Name) and node.arguments[0].path in known:
            raise ModelError(
                f"{content.name}: `{node}` is refused: '{node.arguments[0]}' is a gr.Discrete, constant between events."
            )
        return None

    return Rewriter(change)


def refuse_discrete_equations(content: Content, equations: Iterable[FlatEquation]) -> None:
    """Refuse equations that could only determine a discrete variable."""
    for equation in equations:
        names = {n.path for n in postorder((equation.left, equation.right)) if isinstance(n, Name)}
        inside = sorted(names & set(content.discretes))
        if inside and names <= {"time", *content.discretes, *content.parameters}:
            raise ModelError(
                f"{content.name}: the equation `{equation.text}` ({equation.source}) contains no unknown but the "
                f"discrete variable '{inside[0]}', which gets its values at events: write it inside a when, "
                f"gr.when(condition, {equation.text})."
            )


def _is_pre_of(node: Call, known: set[str]) -> bool:
    if node.operation != "pre":
        return False
    argument = node.arguments[0]
    return isinstance(argument, Name) and argument.path in known


def _when(content: Content, occasion: WhenClause, insert: Rewriter) -> FlatWhen:
    clauses = tuple(_clause(content, occasion, b, insert) for b in occasion.branches)
    return FlatWhen(clauses, occasion.source)


def _clause(content: Content, occasion: WhenClause, branch: WhenBranch, insert: Rewriter) -> FlatClause:
    text = render(branch.condition)
    actions = tuple(_action(content, occasion, text, a, insert) for a in branch.actions)
    targets = [a.target for a in actions]
    for target in targets:
        if targets.count(target) > 1:
            raise ModelError(
                f"{content.name}: gr.when({text}, …) ({occasion.source}) gives '{target}' two values at once."
            )
    return FlatClause(insert(branch.condition), actions, text)


def _action(content: Content, occasion: WhenClause, text: str, action: WrittenAction, insert: Rewriter) -> FlatAction:
    target, value = action.target, insert(action.value)
    where = f"{content.name}: gr.when({text}, …) ({occasion.source})"
    if not isinstance(target, Name):
        raise ModelError(f"{where}: `{target}` is not one of its members.")
    if action.kind == "assign":
        if target.path not in content.discretes:
            raise ModelError(f"{where}: '{target}' is no gr.Discrete and cannot be given a value there.")
        return FlatAction("assign", target.path, value)
    if target.path not in content.variables:
        kind = content.kind(target.path)
        raise ModelError(
            f"{where}: gr.reinit sets a state, but '{target}' is {'an' if kind[:1] in 'aeiou' else 'a'} {kind}."
        )
    return FlatAction("reinit", target.path, value)


def _refuse_shared_targets(content: Content, whens: Iterable[FlatWhen]) -> None:
    first: dict[str, FlatWhen] = {}
    for w in whens:
        for name in dict.fromkeys(a.target for c in w.clauses for a in c.actions if a.kind == "assign"):
            if name in first:
                one, other = first[name].clauses[0].text, w.clauses[0].text
                raise ModelError(
                    f"{content.name}: '{name}' gets values from two events, gr.when({one}, …) ({first[name].source}) "
                    f"and gr.when({other}, …) ({w.source}). Write them as one, with an order: "
                    f"gr.when({one}, {name} == …).otherwise({other}, {name} == …)."
                )
            first[name] = w
