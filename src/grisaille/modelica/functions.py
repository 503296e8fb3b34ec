"""Functions with algorithm sections: run on values, so that a call becomes formulas of its arguments.

Loops are unrolled; where a condition is only known during a simulation both branches are run and their results joined
by ``where``, and what follows a conditional ``return`` or ``break`` takes effect only where it was not reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from grisaille.model.expression import Expression
from grisaille.modelica import tree
from grisaille.modelica.builtins import filled
from grisaille.modelica.evaluation import Evaluator, Local, Outside, in_doubt, is_in_doubt, placed_in, unquoted
from grisaille.modelica.limits import STATEMENT, spend
from grisaille.modelica.refusals import Refused
from grisaille.modelica.values import UNSET_VALUE, RecordValue, Unfit, Value, both, choose, describe, either, negated

MAX_STATEMENTS = 300_000
"""Statements that one call may run, loops unrolled."""
MAX_REPETITIONS = 100
"""Times that a ``while`` may be repeated whose condition is only known during a simulation."""
SILENT_FUNCTIONS = ("Modelica.Utilities.Streams.print",)
"""Functions that only tell something."""
_RETURNED, _BROKEN = " returned", " broken"


class Algorithm:
    """Runs statements on local values.

    remembers : variables keep the value they had where no branch gives them one (those of a model), which is refused;
        elsewhere a variable without a value may be anything
    require : adds an assertion to the model that is read, of what is computed in any case
    """

    def __init__(
        self, evaluator: Evaluator, *, remembers: bool = False, require: Callable[[Any, str, int], None] | None = None
    ) -> None:
        self.evaluator, self.remembers, self.require = evaluator, remembers, require
        self._steps = 0
        self._doubts = 0
        """Conditions around the statement that only a simulation decides."""

    def run(self, statements: list[tree.Node], local: Local) -> None:
        """Changes ``local`` as the statements say."""
        for statement in statements:
            stopped = either(local.get(_RETURNED, False), local.get(_BROKEN, False))
            if stopped is True:
                return
            self._steps += 1
            spend(STATEMENT)
            if self._steps > MAX_STATEMENTS:
                raise Refused(
                    statement.at, f"more than {MAX_STATEMENTS} statements would be run: the loops are too long"
                )
            try:
                self._conditional(statement, local, negated(stopped))
            except Unfit as unfit:
                raise Refused(statement.at, str(unfit)) from None

    def _conditional(self, statement: tree.Node, local: Local, active: Value) -> None:
        if active is True:
            self._statement(statement, local)
            return
        taken = dict(local)
        with self._doubting():
            self._statement(statement, taken)
        self._join(local, active, taken, dict(local))

    @contextmanager
    def _doubting(self) -> Iterator[None]:
        self._doubts += 1
        try:
            with in_doubt():
                yield
        finally:
            self._doubts -= 1

    def _statement(self, statement: tree.Node, local: Local) -> None:
        if isinstance(statement, tree.Assign):
            self._assign(statement, local)
        elif isinstance(statement, tree.If):
            self._if(statement.branches, local)
        elif isinstance(statement, tree.For):
            self._for(statement, 0, local)
            local.pop(_BROKEN, None)
        elif isinstance(statement, tree.While):
            self._while(statement, local)
            local.pop(_BROKEN, None)
        elif isinstance(statement, tree.Leave):
            local[_RETURNED if statement.word == "return" else _BROKEN] = True
        elif isinstance(statement, tree.Do):
            self._do(statement, local)
        else:
            raise Refused(statement.at, "'when' cannot stand in a function")

    def _do(self, statement: tree.Do, local: Local) -> None:
        call = statement.call
        if call.name in SILENT_FUNCTIONS:
            return
        if call.name == "Modelica.Utilities.Streams.error":
            if not self._doubts:
                raise Unfit(f"the text gives up: {message_of(self.evaluator, call, local, 0)}")
            return
        if call.name != "assert":
            self.evaluator.value(call, local)
            return
        failed = self.evaluator.truth(call.arguments[0], local) is False and not self._doubts
        if failed and not is_warning(call):
            raise Unfit(f"an assertion fails: {message_of(self.evaluator, call, local)}")

    def _assign(self, statement: tree.Assign, local: Local) -> None:
        if isinstance(statement.target, tree.Several):
            results = results_for(statement.target, self.evaluator.results(statement.value, local))
            for target, result in zip(statement.target.items, results, strict=False):
                if target is not None:
                    self.set(target, result, local)
            return
        self.set(statement.target, self.evaluator.value(statement.value, local), local)

    def set(self, target: tree.Node, value: Value, local: Local) -> None:
        """``target := value``."""
        if not isinstance(target, tree.Reference):
            raise Refused(target.at, "only a variable can be assigned")
        target = placed_in(unquoted(target), local)
        first = target.parts[0]
        if first.name not in local:
            raise Refused(target.at, f"'{target.path}' is assigned but not declared in the function")
        links: list[Any] = []
        for k, part in enumerate(target.parts):
            if k:
                links.append(part.name)
            if part.subscripts:
                links.append(part.subscripts)
        local[first.name] = self._placed(local[first.name], links, value, local)

    def _placed(self, old: Value, links: list[str | tuple[tree.Node, ...]], value: Value, local: Local) -> Value:
        """Return a copy of ``old`` with the entry that ``links`` lead to replaced."""
        if not links:
            return _fitted(old, value)
        link, rest = links[0], links[1:]
        if isinstance(link, str):
            if not isinstance(old, RecordValue) or link not in old:
                raise Unfit(f"{describe(old)} has no field '{link}'")
            return RecordValue(old.kind, {**old, link: self._placed(old[link], rest, value, local)})
        if not isinstance(old, np.ndarray) or len(link) > old.ndim:
            raise Unfit(f"{describe(old)} cannot take {len(link)} subscripts")
        positions = [self.evaluator.positions(s, old.shape[k], local) for k, s in enumerate(link)]
        new = old.copy()
        if all(isinstance(p, int) for p in positions):
            index = tuple(positions)
            new[index] = self._placed(old[index], rest, value, local)
            return new
        if any(isinstance(p, Expression) for p in positions):
            return self._placed_somewhere(old, positions, rest, value, local)
        wanted = [p if isinstance(p, list) else [p] for p in positions]
        shape = [len(p) for p in wanted] + list(old.shape[len(wanted) :])
        if not isinstance(value, np.ndarray) or value.size != np.prod(shape, dtype=int):
            raise Unfit(f"{describe(value)} is assigned to entries of the shape {tuple(shape)}")
        given = value.reshape(shape)
        for index in np.ndindex(*(len(p) for p in wanted)):
            place = tuple(p[i] for p, i in zip(wanted, index, strict=True))
            new[place] = self._placed(old[place], rest, given[index], local)
        return new

    def _placed_somewhere(self, old: Any, positions: list[Any], rest: list[Any], value: Any, local: Local) -> Any:
        """Return an entry whose place is only known during a simulation: every one may be meant."""
        from grisaille.modelica.values import relation  # only here

        ranges = [p for p in positions if isinstance(p, list)]
        if ranges and (not isinstance(value, np.ndarray) or value.shape[: len(ranges)] != tuple(map(len, ranges))):
            raise Unfit(f"{describe(value)} is assigned to {' x '.join(str(len(p)) for p in ranges)} entries")
        new = old.copy()
        for index in np.ndindex(*old.shape[: len(positions)]):
            meant: Any = True
            given = value
            for p, k in zip(positions, index, strict=True):
                if isinstance(p, Expression):
                    meant = both(meant, relation("==", p, k + 1))
                elif isinstance(p, list) and k in p:
                    given = given[p.index(k)]
                elif p != k:
                    meant = False
            if meant is not False:
                new[index] = choose(meant, self._placed(old[index], rest, given, local), old[index])
        return new

    def _if(self, branches: list[tuple[tree.Node | None, list[tree.Node]]], local: Local) -> None:
        outcomes: list[tuple[Any, Local]] = []
        last = dict(local)
        for condition, body in branches:
            decided = True if condition is None else self.evaluator.truth(condition, local)
            if decided is False:
                continue
            taken = dict(local)
            if decided is True and not outcomes:
                self.run(body, taken)
            else:
                with self._doubting():
                    self.run(body, taken)
            if decided is True:
                last = taken
                break
            outcomes.append((decided, taken))
        for decided, taken in reversed(outcomes):
            self._join(last, decided, taken, dict(last))
        local.update(last)

    def _join(self, local: Local, condition: Value, yes: Local, no: Local) -> None:
        for name in {**yes, **no}:
            a = yes.get(name, False if name[0] == " " else UNSET_VALUE)
            b = no.get(name, False if name[0] == " " else UNSET_VALUE)
            if self.remembers and _is_half_set(a, b):
                raise Unfit(
                    f"'{name}' gets a value in some branches of an algorithm only, and keeps its old one elsewhere"
                )
            local[name] = a if a is b else choose(condition, a, b)

    def _for(self, statement: tree.For, depth: int, local: Local) -> None:
        if depth == len(statement.iterators):
            self.run(statement.body, local)
            return
        name, over = statement.iterators[depth]
        hidden = local.get(name, UNSET_VALUE)
        for item in self.evaluator.range(over, local):
            spend(1)
            local[name] = item
            self._for(statement, depth + 1, local)
            if either(local.get(_RETURNED, False), local.get(_BROKEN, False)) is True:
                break
        local.pop(name, None)
        if hidden is not UNSET_VALUE:
            local[name] = hidden

    def _while(self, statement: tree.While, local: Local) -> None:
        """Repeats while the condition holds; where only a simulation decides, as often as it can hold.

        Each repetition is run as if all before it had taken place, so that a counter in the condition ends the loop.
        So does an array in the condition that has no further entries, where going on is an error of the model, and an
        index that counts through an array from a place which only a simulation knows.
        """
        worlds: list[tuple[Any, Local]] = []
        now = dict(local)
        most = _entries_counted(statement, local)
        while True:
            stopped = either(now.get(_RETURNED, False), now.get(_BROKEN, False))
            try:
                truth = False if stopped is True else self.evaluator.truth(statement.condition, now)
            except Outside as outside:
                if not worlds:
                    raise
                self._demand_an_end(statement, [going for going, _ in worlds], str(outside))
                break
            going = both(negated(stopped), truth) if truth is not False else False
            if going is False:
                break
            if going is not True:
                if len(worlds) == most:
                    break
                worlds.append((going, now))
            if len(worlds) > MAX_REPETITIONS:
                self._settled_while(statement, local)
                return
            if worlds:
                now = {**now, _RETURNED: False, _BROKEN: False}  # as it is where the loop goes on
                with self._doubting():
                    self.run(statement.body, now)
            else:
                self.run(statement.body, now)
            self._steps += 1
            if self._steps > MAX_STATEMENTS:
                raise Refused(statement.at, "'while' does not end")
        for going, world in reversed(worlds):
            joined = dict(world)
            self._join(joined, going, now, world)
            now = joined
        local.update(now)

    def _demand_an_end(self, statement: tree.While, goings: list[Value], why: str) -> None:
        """The repetitions must not all take place, where the loop itself takes place."""
        if self.require is None or is_in_doubt():
            raise Refused(statement.at, f"{why}, where this 'while' goes on as long as it can")
        everywhere: Any = True
        for going in goings:
            everywhere = both(everywhere, going)
        self.require(negated(everywhere), f"a 'while' goes on beyond its array: {why}", statement.at)

    def _settled_while(self, statement: tree.While, local: Local) -> None:
        """A loop that parameters alone decide: they are fixed, as those are that decide a size."""
        while True:
            stopped = either(local.get(_RETURNED, False), local.get(_BROKEN, False))
            truth = self.evaluator.truth(statement.condition, local)
            going = self.evaluator.settled_truth(both(negated(stopped), truth))
            if going is False:
                return
            if going is not True:
                raise Refused(
                    statement.at,
                    f"'while' may be repeated more than {MAX_REPETITIONS} times: its condition is only known during a "
                    "simulation. Add a counter to it, 'while … and n < 20 loop', or write 'for' with a 'break'",
                )
            self.run(statement.body, local)
            if self._steps > MAX_STATEMENTS:
                raise Refused(statement.at, "'while' does not end")


def _entries_counted(statement: tree.While, local: Local) -> int:
    """Return how often a loop can be repeated whose condition looks at an entry, the next one each time; -1 if any
    number.
    """
    counting = {n for n in map(_counted, statement.body) if n}
    found = [-1]
    for node in tree.walk(statement.condition):
        if not isinstance(node, tree.Reference) or len(node.parts) != 1:
            continue
        array = local.get(unquoted(node).parts[0].name)
        for k, subscript in enumerate(node.parts[0].subscripts):
            if isinstance(subscript, tree.Reference) and unquoted(subscript).path in counting:
                found.append(array.shape[k] if isinstance(array, np.ndarray) and k < array.ndim else -1)
    return max(found)


def _counted(statement: tree.Node) -> str:
    """Return the variable that ``n := n + 1`` counts up."""
    if not isinstance(statement, tree.Assign) or not isinstance(statement.target, tree.Reference):
        return ""
    value, name = statement.value, unquoted(statement.target).path
    if not isinstance(value, tree.Chain) or not isinstance(value.first, tree.Reference) or len(value.rest) != 1:
        return ""
    operator, step = value.rest[0]
    is_one = operator == "+" and isinstance(step, tree.Literal) and step.value == 1
    return name if is_one and unquoted(value.first).path == name else ""


def _is_half_set(a: Value | None, b: Value | None) -> bool:
    """Return whether one of two values has a scalar where the other has none."""
    if isinstance(a, RecordValue) and isinstance(b, RecordValue):
        return any(_is_half_set(a[name], b.get(name)) for name in a)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape:
        return any(_is_half_set(x, y) for x, y in zip(a.flat, b.flat, strict=True))
    return (a is UNSET_VALUE) != (b is UNSET_VALUE)


def results_for(targets: tree.Several, value: Value) -> tuple[Value, ...]:
    """Return the results of a call, at least as many as are asked for."""
    results = value if isinstance(value, tuple) else (value,)
    if len(results) < len(targets.items):
        raise Refused(targets.at, f"{len(targets.items)} results are asked for, but the call gives {len(results)}")
    return results


def _fitted(old: Value, value: Value) -> Value:
    if isinstance(value, np.ndarray) and isinstance(old, np.ndarray) and old.size and old.shape != value.shape:
        raise Unfit(f"{describe(value)} is assigned to {describe(old)}")
    return value


def is_warning(call: tree.Calling) -> bool:
    """Return whether an assertion has the level of a warning."""
    level = call.arguments[2] if len(call.arguments) > 2 else call.named.get("level")
    return isinstance(level, tree.Reference) and level.path.endswith("warning")


def message_of(evaluator: Evaluator, call: tree.Calling, local: Local, place: int = 1) -> str:
    """Return the message of an assertion, with … for what is only known during a simulation; it stands at ``place``."""
    text = call.arguments[place] if len(call.arguments) > place else call.named.get("message")
    parts = [text.first, *(part for _, part in text.rest)] if isinstance(text, tree.Chain) else [text]
    return "".join(_worded(evaluator, part, local) for part in parts if part is not None).strip()


def _worded(evaluator: Evaluator, part: tree.Node, local: Local) -> str:
    try:
        return str(evaluator.value(part, local))
    except (Unfit, Refused):
        return "…"


def blank(sizes: tuple[int, ...], inner: Value) -> Value:
    """Return a local variable without a value, or an array of them."""
    return filled(inner, *sizes) if sizes else inner
