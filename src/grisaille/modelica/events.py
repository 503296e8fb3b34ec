"""What changes at events only: ``when``, ``pre``, ``edge``, ``change``, ``sample``, ``reinit``, ``initial()``.

Variables that a ``when`` assigns become discrete variables of the model, and the ``when`` one of its events, with a
branch for each condition. A variable that an ordinary equation gives, and whose value before an event is asked for
(``pre(b)``), is remembered: it is a discrete variable that an event sets whenever its formula gives another value,

    whenever (b's formula is not b):  b := formula,

until nothing changes any more, ``pre`` meanwhile being what was before: the iteration that Modelica prescribes.
``initial()`` is such a variable, true until the first events are over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.content import WhenBranch, WhenClause, WrittenAction
from grisaille.model.delays import delay
from grisaille.model.expression import Call, Condition, Constant, Expression, Name, postorder
from grisaille.model.flat import FlatDiscrete
from grisaille.model.whens import OF_EVENTS, whenever
from grisaille.modelica import tree
from grisaille.modelica.algorithms.assigned import AssignedNames, entered_names, untouched
from grisaille.modelica.assembling import mapped
from grisaille.modelica.discrete_time import discrete
from grisaille.modelica.evaluation import LAZY_FUNCTIONS, Evaluator, Local, unquoted
from grisaille.modelica.functions import Algorithm, results_for
from grisaille.modelica.model import FIRST_CONDITION as IS_FIRST, ModelNames
from grisaille.modelica.refusals import Refused
from grisaille.modelica.sections import Sections, Single
from grisaille.modelica.values import (
    RecordValue,
    Unfit,
    Value,
    array,
    before,
    both,
    describe,
    either,
    formula,
    is_number,
    is_plain,
    negated,
    relation,
    truth,
)

FIRST_EVENTS = "initial()"
"""The discrete variable that is 1 until the first events are over."""
EVENT_OPERATORS = ("pre", "edge", "change", "sample", "initial", "reinit")
_REFUSED = ("spatialDistribution",)


class EventCollector:
    """Events of one model, as they are found."""

    def __init__(self, names: ModelNames, sections: Sections) -> None:
        self.names, self.evaluator, self.sections = names, names.evaluator, sections
        self.discretes: dict[str, FlatDiscrete] = {}
        self.bases: dict[str, str] = {}
        self.demanded: dict[str, Any] = {}
        """Numbers at which discrete variables have to begin: of starts with ``fixed = true``, of initial equations."""
        self.branches: list[tuple[list[tuple[Condition, list[WrittenAction]]], int]] = []
        """Branches of each ``when`` with its place."""
        self.firsts: dict[str, tuple[Expression, int]] = {}
        """What discrete variables are at the first instant, where that is no number."""
        self.uses_first = False

    # --- which variables change at events ---

    def declare(self, targets: Iterable[str], at: int) -> None:
        """Variables that events set."""
        for name in targets:
            if name in self.discretes:
                continue
            scalar = self.names.discrete.get(name)
            if scalar is not None:
                start, base = scalar.attributes.get("start"), scalar.base
                is_demanded = self.names.settled(scalar.attributes.get("fixed", False)) is True
                unit = scalar.attributes.get("unit", "")
                words = scalar.declared.words
            elif name in self.names.variables:
                variable = self.names.variables.pop(name)
                start, base, unit, words = variable.start, "Real", variable.unit, variable.description
                is_demanded = variable.fixed
            else:
                raise Refused(at, f"'{name}' gets a value at events but is not a variable")
            default = 1.0 if base in self.names.library.enumerations else 0.0
            first = Constant(default) if start is None else formula(start)
            self.discretes[name] = FlatDiscrete(name, first, unit if isinstance(unit, str) else "", words)
            self.bases[name] = base
            if is_demanded:
                self.demanded[name] = self.names.number(first)
            if scalar is not None:
                self.names.formulas[name] = typed(Name(name), base)

    def remembered(self, nodes: Iterable[tree.Node]) -> list[str]:
        """Return variables of which a value before an event is asked for."""
        found: dict[str, None] = {}
        everything = list(tree.walk(*nodes))
        targets = [node.target for node in everything if isinstance(node, tree.Assign)]
        assigned = {target.path for target in targets if isinstance(target, tree.Reference)}
        for node in everything:
            if not isinstance(node, tree.Calling):
                continue
            # what statements set has no edges of its own
            asked = node.name == "edge" and not assigned.isdisjoint(tree.references(*node.arguments))
            if asked or node.name in ("pre", "change"):
                paths = [path for path in tree.references(*node.arguments) if self.names.is_known(path)]
                scalars = [name for path in paths for name in self.names.scalars(path)]
                found |= {name: None for name in scalars if name in self.names.discrete}
        return list(found)

    # --- events ---

    def lower(self, single: Single) -> None:
        """One when-equation."""
        node = single.node
        assert isinstance(node, tree.When)
        self._whens(node, lambda body: self._actions(body, single.local), single.local)

    def lower_statement(self, node: tree.When, unset: set[str]) -> None:
        """One ``when`` of an algorithm section; ``unset``: what is set here or later, and so has its value before."""

        def before(formula: Expression) -> Any:
            return replaced(formula, lambda n: _before(n, unset))

        def act(body: list[tree.Node]) -> list[WrittenAction]:
            return [replace(a, value=before(a.value)) for a in self._assigned(body)]

        count = len(self.branches)
        self._whens(node, act, {})
        self.branches[count:] = [([(before(c), a) for c, a in b], at) for b, at in self.branches[count:]]

    def _whens(self, node: tree.When, act: Any, local: Local) -> None:
        branches = []
        for condition, body in node.branches:
            conditions = self._conditions(condition, local)
            if any(decided is False for decided in conditions):
                self._tell_of_end(condition, body)
            if all(decided is False for decided in conditions):
                continue
            actions = act(body)
            for decided in conditions:
                if not isinstance(decided, bool) and actions:
                    branches.append((decided, actions))
        if branches:
            self.branches.append((branches, node.at))

    def _tell_of_end(self, condition: tree.Node, body: list[tree.Node]) -> None:
        """``when terminal()`` that would reinitialise a state; what it would set is remarked where it is declared."""
        asks = any(isinstance(n, tree.Calling) and n.name == "terminal" for n in tree.walk(condition))
        if asks and any(isinstance(node, tree.Do) and node.call.name == "reinit" for node in body):
            words = "'when terminal()' is not carried out: the last row of a run shows what holds before its end"
            self.names.remarks.add(condition.at, words)

    def _conditions(self, node: tree.Node, local: Local) -> list[Any]:
        value = self.evaluator.value(node, local)
        items = [truth(item) for item in (value.flat if isinstance(value, np.ndarray) else [value])]
        return [
            item if isinstance(item, bool) else replaced(replaced(item, _moment), self._without_floor) for item in items
        ]

    def _actions(self, body: list[tree.Node], local: Local) -> list[WrittenAction]:
        actions: list[WrittenAction] = []
        for single in self.sections.unroll(body, local):
            node = single.node
            if isinstance(node, tree.Equal):
                if isinstance(node.left, tree.Several):
                    value = self.evaluator.results(node.right, single.local)
                    for side, result in zip(node.left.items, results_for(node.left, value), strict=False):
                        actions += [] if side is None else self._set(side, result, single.local)
                else:
                    actions += self._set(node.left, self.evaluator.value(node.right, single.local), single.local)
            elif isinstance(node, tree.Do):
                actions += self._done(node.call, single.local)
            else:
                raise Refused(node.at, "'when' inside 'when' is not supported")
        return actions

    def _set(self, target: tree.Node, value: Value, local: Local) -> list[WrittenAction]:
        named = self._names_of(target)
        pairs = [] if named is None else pairs_of(named, value)
        if pairs and all(name in self.discretes for name, _ in pairs):
            return [WrittenAction("assign", Name(name), formula(item)) for name, item in pairs]
        raise Refused(target.at, "an equation inside 'when' gives one variable its value: write it alone on the left")

    def _names_of(self, target: tree.Node) -> Any:
        """Return the names of the scalars of a target, arranged as these are."""
        if isinstance(target, tree.Braces):
            items = [self._names_of(item) for item in target.items]
            return None if any(item is None for item in items) else array(items)
        if not isinstance(target, tree.Reference) or not self.names.is_known(target.path):
            return None
        return mapped(target.path, self.names.structure(target.path), lambda name, _: name)

    def _done(self, call: tree.Calling, local: Local) -> list[WrittenAction]:
        if call.name == "reinit":
            targets = self.evaluator.value(call.arguments[0], local)
            pairs = pairs_of(targets, self.evaluator.value(call.arguments[1], local))
            if wrong := next((target for target, _ in pairs if not isinstance(target, Name)), None):
                raise Refused(call.at, f"reinit needs a variable, got {describe(wrong)}")
            return [WrittenAction("reinit", target, formula(value)) for target, value in pairs]
        if call.name == "terminate":
            self.names.remarks.add(call.at, "'terminate' does not end a run: give the times that are wanted")
        if call.name in ("assert", "terminate", "print", "Modelica.Utilities.Streams.print"):
            return []
        raise Refused(call.at, f"'{call.name}' inside 'when' is not supported")

    def _assigned(self, body: list[tree.Node]) -> list[WrittenAction]:
        """Return statements of a ``when``: run on the values before the event; ``reinit`` takes those at its place."""
        assigned = AssignedNames(self.names, body)
        reinits: list[WrittenAction] = []
        rest: list[tree.Node] = []
        local = assigned.entered(lambda n: typed(Call("pre", (Name(n),)), self.bases.get(n, "Real")))
        for statement in body:
            if isinstance(statement, tree.Do) and statement.call.name in ("reinit", "terminate", "print"):
                Algorithm(self.evaluator).run(rest, local)
                reinits, rest = [*reinits, *self._done(statement.call, local)], []
            else:
                rest.append(statement)
        Algorithm(self.evaluator).run(rest, local)
        return [WrittenAction("assign", Name(n), formula(v)) for n, v in assigned.left(local).items()] + reinits

    def watch(self, name: str, value: Value, at: int) -> None:
        """A remembered variable: set whenever its formula gives another value."""
        base, now = self.bases[name], Name(name)
        if base == "Boolean":
            is_so = truth(value)
            held = typed(now, base)
            differs = either(both(is_so, negated(held)), both(negated(is_so), held))
        else:
            gap = Call("sub", (formula(value), now))
            half = Constant(0.5 if base != "Real" else 0.0)
            differs = either(Condition("gt", (gap, half)), Condition("lt", (gap, Call("neg", (half,)))))
        self.branches.append(([(whenever(differs), [WrittenAction("assign", now, formula(value))])], at))

    def _without_floor(self, node: Expression) -> Expression | None:
        """Return ``floor(e) > n`` with a whole n is e ≥ n + 1: one relation instead of one inside another."""
        if not isinstance(node, Condition) or node.operation != "gt":
            return None
        left, right = node.arguments
        is_floor = isinstance(left, Call) and left.operation == "floor"
        is_whole = isinstance(right, Name) and self.bases.get(right.path) == "Integer"
        if not isinstance(left, Call) or not is_floor or not is_whole:
            return None
        return Condition("ge", (left.arguments[0], Call("add", (right, Constant(1.0)))))

    def begin(self, name: str, value: Value, at: int) -> bool:
        """Return an initial equation of a discrete variable."""
        if name not in self.discretes:
            return False
        first = formula(value)
        self._demand(name, self.names.number(first), at)
        self.firsts[name] = (first, at)
        return True

    def _demand(self, name: str, number: Value | None, at: int) -> None:
        """Refuse a number at which a discrete variable begins beside another one."""
        other = self.demanded.setdefault(name, number)
        if is_number(number) and is_number(other) and number != other:
            raise Refused(
                at,
                f"'{name}' begins at {describe(number)} here, and at {describe(other)} by its declaration "
                "(fixed = true) or another initial equation: leave one of them out",
            )

    def settle_starts(self) -> None:
        """Starts that are numbers, formulas of parameters, or what others begin with (``pre(a) = pre(b)``)."""
        while True:
            known = {n for n in self.firsts if self._is_start(self._of_starts(self.firsts[n][0]))}
            for name in known:
                expression, _ = self.firsts.pop(name)
                self.discretes[name] = replace(self.discretes[name], start=self._of_starts(expression))
            if not known:
                return

    def _is_start(self, expression: Expression) -> bool:
        return all(not isinstance(n, Name) or n.path in self.names.parameters for n in postorder((expression,)))

    def _of_starts(self, expression: Expression) -> Expression:
        """With the start in place of the value before, of discrete variables whose start is settled."""

        def change(node: Expression) -> Expression | None:
            inner = node.arguments[0] if isinstance(node, Call) and node.operation == "pre" else None
            settled = isinstance(inner, Name) and inner.path in self.discretes and inner.path not in self.firsts
            return self.discretes[inner.path].start if settled else None  # type: ignore[union-attr]

        return replaced(expression, change)

    def occasions(self, place: Any) -> tuple[WhenClause, ...]:
        """Return all events; those that set one variable are one, in their order."""
        if self.uses_first:
            self.discretes[FIRST_EVENTS] = FlatDiscrete(
                FIRST_EVENTS, Constant(1.0), "", "until the first events are over"
            )
            done = [WrittenAction("assign", Name(FIRST_EVENTS), Constant(0.0))]
            self.branches.append(([(Condition("initial", ()), done)], 0))
        set_somewhere = {a.target.path for branches, _ in self.branches for _, actions in branches for a in actions
                         if isinstance(a.target, Name)}  # fmt: skip
        for name in self.discretes:
            if name not in set_somewhere:  # its conditions are false for ever
                stays = [WrittenAction("assign", Name(name), Call("pre", (Name(name),)))]
                self.branches.append(([(Condition("initial", ()), stays)], 0))
        groups = discrete.taken_apart(_joined(self.branches))
        found = []
        for branches, at in groups:
            targets = {a.target.path for _, actions in branches for a in actions if isinstance(a.target, Name)}
            begun = [(n, e) for n, (e, _) in self.firsts.items() if n in targets]
            if begun:
                first = [WrittenAction("assign", Name(n), e) for n, e in begun]
                own: list[WrittenAction] = next(
                    (actions for condition, actions in branches if _is_of_start(condition)), []
                )
                names = {n for n, _ in begun}
                first += [a for a in own if not isinstance(a.target, Name) or a.target.path not in names]
                branches = [(Condition("initial", ()), first), *branches]
            found.append(WhenClause(tuple(WhenBranch(c, tuple(actions)) for c, actions in branches), place(at)))
        return tuple(found)


def pairs_of(left: Any, right: Any) -> list[tuple[Any, Any]]:
    """Return scalars of two arrays or records, side by side."""
    if isinstance(left, RecordValue) and isinstance(right, RecordValue):
        return [pair for name in left for pair in pairs_of(left[name], right.get(name))]
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        if np.shape(left) != np.shape(right):
            raise Unfit(f"the sides of an equation are {describe(left)} and {describe(right)}")
        return [pair for a, b in zip(left.flat, right.flat, strict=True) for pair in pairs_of(a, b)]
    return [(left, right)]


def _before(node: Expression, unset: set[str]) -> Expression | None:
    """Return the value before of what is set later; what compares with it says so itself."""
    if isinstance(node, Name) and node.path in unset:
        return Call("pre", (node,))
    return node if isinstance(node, Call) and node.operation in ("pre", "edge", "change") else None


def _is_of_start(condition: Expression) -> bool:
    return any(isinstance(n, Condition) and n.operation == "initial" for n in postorder((condition,)))


def _joined(groups: list[tuple[list[Any], int]]) -> list[tuple[list[Any], int]]:
    """Return groups of branches, those with a common target put together."""
    owner: dict[str, int] = {}
    found: list[tuple[list[Any], int]] = []
    for branches, at in groups:
        targets = {a.target.path for _, actions in branches for a in actions if a.kind == "assign"}
        known = {owner[t] for t in targets if t in owner}
        if known:
            k = min(known)
            found[k][0].extend(branches)
        else:
            k = len(found)
            found.append((list(branches), at))
        owner |= {t: k for t in targets}
    return found


def replaced(root: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Return the formula with nodes changed from the top down: below a changed node nothing is looked at."""
    done: dict[int, Expression] = {}
    stack = [(root, False)]
    while stack:
        node, finished = stack.pop()
        if id(node) in done:
            continue
        new = None if finished else change(node)
        if new is not None or not isinstance(node, Call):
            done[id(node)] = new if new is not None else node
        elif finished:
            arguments = tuple(done[id(a)] for a in node.arguments)
            is_same = all(a is b for a, b in zip(arguments, node.arguments, strict=True))
            done[id(node)] = node if is_same else node.rebuilt(arguments)
        else:
            stack.append((node, True))
            stack.extend((a, False) for a in node.arguments)
    return done[id(root)]


def _moment(node: Expression) -> Expression | None:
    """Return ``initial()`` as the condition of a ``when``; ``not initial()`` holds as soon as the first pass is
    over.
    """
    if isinstance(node, Condition) and node.operation == "not":
        return node
    return Condition("initial", ()) if node is IS_FIRST else None


def typed(value: Expression, base: str) -> Value:
    """Return a discrete variable as what it is declared: a condition for a Boolean."""
    return Condition("gt", (value, Constant(0.5))) if base == "Boolean" else value


def is_eventful(node: tree.Node) -> bool:
    """Return whether a function of events is called below."""
    return any(isinstance(n, tree.Calling) and n.name in EVENT_OPERATORS for n in tree.walk(node))


def is_momentary(value: Value) -> bool:
    """Return whether a formula is true at single instants only (a clock, an edge)."""
    return isinstance(value, Expression) and any(map(is_moment, postorder((value,))))


def is_moment(node: Expression) -> bool:
    """Return whether it is a clock, an edge, a change or the first instant."""
    return isinstance(node, Call) and node.operation in OF_EVENTS and node.operation != "pre"


def outside_pre(*roots: tree.Node) -> list[str]:
    """Return names that are used with their present value."""
    found: list[str] = []
    stack = list(roots)
    while stack:
        node = stack.pop()
        if isinstance(node, tree.Calling) and node.name == "pre":
            continue
        if isinstance(node, tree.Reference):
            node = unquoted(node)
            path = ""
            for part in node.parts:
                path = f"{path}.{part.name}" if path else part.name
                found.append(path)
        stack.extend(tree.children(node))
    return found


# --- functions of events ---


def _pre(evaluator: Evaluator, node: tree.Calling, local: Local) -> Value:
    return before(evaluator.value(node.arguments[0], untouched(local)))


def _edge(evaluator: Evaluator, node: tree.Calling, local: Local) -> Value:
    value = truth(evaluator.value(node.arguments[0], local))
    if _is_assigned(node, local):
        return both(value, negated(truth(_pre(evaluator, node, local))))
    return False if isinstance(value, bool) else Condition("edge", (value,))


def _change(evaluator: Evaluator, node: tree.Calling, local: Local) -> Value:
    value = evaluator.value(node.arguments[0], local)
    if _is_assigned(node, local):
        return relation("<>", value, _pre(evaluator, node, local))
    if is_plain(value):
        return False
    inner = value.arguments[0] if isinstance(value, Condition) else value
    if not isinstance(inner, Name):
        raise Unfit(f"change of the formula `{value}` is not supported: give it a variable of its own")
    return Condition("change", (inner,))


def _is_assigned(node: tree.Calling, local: Local) -> bool:
    """Return whether a statement before may have set what an edge or a change is asked of."""
    return not entered_names(local).isdisjoint(tree.references(node.arguments[0]))


def _sample(evaluator: Evaluator, node: tree.Calling, local: Local) -> Value:
    start, period = (formula(evaluator.value(argument, local)) for argument in node.arguments[:2])
    return Condition("clock", (period, evaluator.names.at_start(start)))


def _delay(evaluator: Evaluator, node: tree.Calling, local: Local) -> Value:
    value, dead = (evaluator.value(argument, local) for argument in node.arguments[:2])
    if is_plain(value):
        return value
    argument, dead_time = formula(value), formula(dead)
    named = [n.path for n in postorder((dead_time,)) if isinstance(n, Name)]
    if named and all(name in getattr(evaluator.names, "parameters", ()) for name in named):
        return Call("delay", (argument, dead_time))
    try:
        return delay(argument, dead_time)
    except ModelError as error:
        raise Unfit(str(error)) from None


def _initial(evaluator: Evaluator, node: tree.Calling, local: Local) -> Value:
    return evaluator.names.first()


def _misplaced(_evaluator: Evaluator, node: tree.Calling, _local: Local) -> NoReturn:
    raise Refused(node.at, f"'{node.name}' is supported directly inside 'when' only, not inside 'if' or a loop there")


def _refuse(_evaluator: Evaluator, node: tree.Calling, _local: Local) -> NoReturn:
    raise Refused(node.at, f"'{node.name}' is not supported")


LAZY_FUNCTIONS |= {
    "pre": _pre,
    "edge": _edge,
    "change": _change,
    "sample": _sample,
    "initial": _initial,
    "reinit": _misplaced,
}
LAZY_FUNCTIONS["delay"] = _delay
LAZY_FUNCTIONS |= dict.fromkeys(_REFUSED, _refuse)
