"""From a parsed text to the content of a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from grisaille.model.content import Assertion, Content, WrittenEquation
from grisaille.model.expression import Call, Condition, Constant, Expression, Name, postorder, same
from grisaille.model.flat import FlatOutput, FlatVariable
from grisaille.model.rewriting import Rewriter
from grisaille.model.whens import OF_EVENTS, always
from grisaille.modelica import events, tree
from grisaille.modelica.algorithms.assigned import kept_in, scalars_meant, targets_of
from grisaille.modelica.algorithms.loops import rewrite_breaks
from grisaille.modelica.algorithms.side_effects import without_side_effects
from grisaille.modelica.discrete_time import discrete
from grisaille.modelica.discrete_time.delays import with_rows
from grisaille.modelica.discrete_time.discrete import DiscreteDefinition
from grisaille.modelica.entries import Entries
from grisaille.modelica.evaluation import in_doubt
from grisaille.modelica.events import EventCollector, is_moment, is_momentary, outside_pre, pairs_of, replaced
from grisaille.modelica.functions import SILENT_FUNCTIONS, is_warning, message_of, results_for
from grisaille.modelica.library import FunctionLibrary
from grisaille.modelica.model import ModelNames
from grisaille.modelica.realness import is_real
from grisaille.modelica.refusals import ModelicaSource, Refusals, Refused
from grisaille.modelica.sections import Sections, Single
from grisaille.modelica.starts.equal_variables import choose_starts
from grisaille.modelica.starts.preferred import begin_at_preferred
from grisaille.modelica.unreachable import Unreachable
from grisaille.modelica.values import Enumerated, Unfit, Value, formula, is_number

_SUBSCRIPTS = re.compile(r"\[[^\]]*\]")


def lower(classes: list[tree.Class], made: tree.Class, source: ModelicaSource) -> Content:
    """Return the content of the model ``made``; everything that is refused is refused at once."""
    return _ModelLowering(classes, made, source).content()


class _ModelLowering:
    def __init__(self, classes: list[tree.Class], made: tree.Class, source: ModelicaSource) -> None:
        self.source = source
        self.refusals = Refusals(source)
        self.library = FunctionLibrary(classes)
        for package in (c for c in classes if c.kind == "package"):
            self.library.enter_local(package)
        self.library.enter_local(made)
        told: list[tuple[int, str]] = []
        made = without_side_effects(made, self.library.classes, lambda at, words: told.append((at, words)))
        self.made = made = with_rows(made, self.library.enumerations)
        self._package_constants(classes)
        self.names = ModelNames(self.library, made, self.refusals)
        for at, words in told:
            self.names.remarks.add(at, words)
        self.evaluator = self.names.evaluator
        self.sections = Sections(self.evaluator, self._is_settled, self.refusals)
        self.entries = Entries(self.names, self.sections)
        self.sections.scalars = self.entries.scalars
        self.events = EventCollector(self.names, self.sections)
        self.set_at_events: set[str] = set()
        self.set_from_here: dict[int, set[str]] = {}
        """For a ``when`` of an algorithm, by its identity, what it and those after it set."""
        self._changing: set[str] | None = None
        self._asked: set[str] | None = None
        """Names of everything that is no constant and no parameter, with and without subscripts."""
        self.laws: list[WrittenEquation] = []
        self.initial: list[WrittenEquation] = []
        self.checks: list[Assertion] = []
        self.library.solver, self.library.remark = self._root, self.names.remarks.add
        self.library.require = self._require

    def _package_constants(self, classes: list[tree.Class]) -> None:
        for package in (c for c in classes if c.kind == "package"):
            for component in package.components:
                if component.value is not None:
                    self._try(component.at, lambda c=component, p=package: self._constant(c, p))

    def _constant(self, component: tree.Declared, package: tree.Class) -> None:
        assert component.value is not None
        value = self.library.evaluator.value(component.value, {})
        self.library.constants |= {component.name: value, f"{package.name}.{component.name}": value}

    def content(self) -> Content:
        """Return everything together."""
        singles = [*self.sections.unroll([*self.names.bindings, *self.made.equations], {})]
        singles = [self.entries.when(s) if isinstance(s.node, tree.When) else s for s in singles]
        statements: list[tree.When] = []
        for written in self.made.algorithms:
            at = written[0].at if written else 0
            section = self._try(at, lambda s=written: self.entries.statements(rewrite_breaks(s), {})) or []
            statements += self._whens_of(section)
            plain_statements = [s for s in section if not isinstance(s, tree.When)]
            for node in tree.walk(*plain_statements):
                if isinstance(node, tree.Do) and node.call.name != "assert":
                    self.refusals.add(Refused(node.at, f"'{node.call.name}' in an algorithm section is not supported"))
            singles += self._outcomes(plain_statements)
        self.refusals.check()
        whens = [s for s in singles if isinstance(s.node, tree.When)]
        plain = [s for s in singles if isinstance(s.node, tree.Equal)]
        plain = [entry for s in plain for entry in self.entries.apart(s)]
        everything = [*(s.node for s in singles if not isinstance(s.node, tree.Equal)), *(s.node for s in plain)]
        self._remark_the_end()
        self._declare_events([*(s.node for s in whens), *statements], [*everything, *statements])
        continuous = self._define_discrete(plain)
        for single in whens:
            with in_doubt():
                self._try(single.node.at, lambda s=single: self.events.lower(s))
        for statement in statements:
            unset = self.set_from_here[id(statement)]
            self._try(statement.at, lambda s=statement, n=unset: self.events.lower_statement(s, n))
        for single in continuous:
            self._try(single.node.at, lambda s=single: self._equation(s))
        for single in singles:
            if isinstance(single.node, tree.Do):
                self._try(single.node.at, lambda s=single: self._call(s))
        for name in self.names.unknown_parameters:
            self.laws.append(WrittenEquation(Call("der", (Name(name),), 1), Constant(0.0), f"the parameter {name}"))
        with in_doubt():
            self._initial()
            self._initial_derivatives()
        self.refusals.check()
        choose_starts(self.names, self.laws)
        begin_at_preferred(self.names, self.laws)
        return self._finished()

    def _whens_of(self, section: list[tree.Node]) -> list[tree.When]:
        """Return those of an algorithm, the last first: of two that set one variable at one instant the later one
        counts.

        Each is lowered by itself; refused where the statements around it would see or show something else.
        """
        found: list[tree.When] = []
        for k, when in enumerate(section):
            if not isinstance(when, tree.When):
                continue
            after = [s for s in section[k + 1 :] if not isinstance(s, tree.When)]
            later, own = set(targets_of(self.names, after)), self._assigned_in(when)
            read = {n for node in _read_now(when) for n in scalars_meant(self.names, node)}
            if again := next((n for n in read if n in later), None):
                self.refusals.add(
                    Refused(
                        when.at, f"'{again}' is assigned after this 'when', which asks for it: write its last value"
                    )
                )
            for before in found:
                shared = [n for n in self._assigned_in(before) if n in own]
                if shared and (not set(self._assigned_in(before)) <= set(own) or not read.isdisjoint(shared)):
                    told = f"'{shared[0]}' is set by another 'when' of this algorithm, too, which may happen at once"
                    self.refusals.add(Refused(when.at, told))
            found.append(when)
        unset: set[str] = set()
        for when in reversed(found):
            unset = unset | set(self._assigned_in(when))
            self.set_from_here[id(when)] = unset
        return found[::-1]

    def _assigned_in(self, when: tree.Node) -> list[str]:
        """Return scalars that a ``when`` gives values, by equations or by statements."""
        assert isinstance(when, tree.When)
        inside = [n for _, body in when.branches for n in body]
        found: list[str] = []
        for node in tree.walk(*inside):
            if isinstance(node, tree.Equal):
                sides = node.left.items if isinstance(node.left, tree.Several) else [node.left]
                found += [n for s in sides if isinstance(s, tree.Reference) for n in self.names.scalars(s.path)]
        return [*found, *targets_of(self.names, inside)]

    def _outcomes(self, section: list[tree.Node]) -> list[Single]:
        """Return an algorithm section as one equation for each variable that it assigns."""
        found: list[Single] = []
        for target in targets_of(self.names, section):
            at = section[0].at
            reference = tree.Reference(at, (tree.Part(target),))
            found.append(Single(tree.Equal(at, reference, tree.Outcome(at, section, target)), {}))
        return found

    def _remark_the_end(self) -> None:
        """What depends on ``terminal()`` is told: nothing happens at the end of a run."""
        for node in [*self.made.equations, *(s for section in self.made.algorithms for s in section)]:
            inside = list(tree.walk(node))
            asks = any(isinstance(n, tree.Calling) and n.name == "terminal" for n in inside)
            if asks and any(isinstance(n, tree.Equal | tree.Assign) for n in inside):
                self.names.remarks.add(node.at, "terminal() is never true: nothing is set at the end of a run")

    def _declare_events(self, whens: list[tree.Node], everything: list[tree.Node]) -> None:
        """Variables that events set or remember are no formulas and no unknowns."""
        for when in whens:
            targets = self._assigned_in(when)
            self.set_at_events.update(targets)
            self._try(when.at, lambda w=when, t=targets: self.events.declare(t, w.at))
        more = [*self.made.initial_equations, *(s for section in self.made.initial_algorithms for s in section)]
        kept = [n for node in everything if isinstance(node, tree.Equal) and isinstance(node.right, tree.Outcome)
                for n in kept_in(self.names, node.right.section) if n in self.names.discrete
        ]  # fmt: skip
        asked = [*self.events.remembered([*everything, *more]), *kept]
        remembered = [n for n in dict.fromkeys(asked) if n not in self.events.discretes]
        self._try(0, lambda: self.events.declare(remembered, 0))

    def _try(self, at: int, act: Any) -> Any:
        try:
            return act()
        except Unfit as unfit:
            self.refusals.add(Refused(at, str(unfit)))
        except Refused as refused:
            self.refusals.add(refused)
        return None

    def _is_settled(self, condition: tree.Node) -> bool:
        """Return whether a condition holds constants and parameters only."""
        names = self.names
        if events.is_eventful(condition):
            return False
        if self._changing is None:
            variables = {*names.variables, *names.inputs, *names.discrete, "time"}
            self._changing = variables | {_SUBSCRIPTS.sub("", name) for name in variables}
        return not any(path in self._changing for path in tree.references(condition))

    # --- variables that change at events ---

    def _define_discrete(self, singles: list[Single]) -> list[Single]:
        """Return formulas of discrete variables; the other equations are given back."""
        continuous, candidates = [], []
        for single in singles:
            choices = self._choices(single)
            if choices:
                candidates.append(choices)
            else:
                continuous.append(single)
        found, rest = discrete.assign(candidates)
        for choices in rest:
            names = " and ".join(f"'{c.name}'" for c in choices)
            self.refusals.add(Refused(choices[0].at, f"the equation of {names} is one too many"))
        order = self._try(0, lambda: discrete.in_order(found, self._discrete_uses)) or []
        order = sorted(order, key=lambda name: name in self.events.discretes)  # what is remembered comes last
        for name in order:
            self._try(found[name].at, lambda n=name: self._define(found[n]))
        return continuous

    def _discrete_uses(self, node: tree.Node) -> list[str]:
        known = self.events.discretes
        own = set(targets_of(self.names, node.section)) if isinstance(node, tree.Outcome) else set()
        found: list[str] = []
        for path in dict.fromkeys(outside_pre(node)):
            found += [n for n in self.names.scalars(path) if n in self.names.discrete]
        return [path for path in dict.fromkeys(found) if path not in known and path not in own]

    def _choices(self, single: Single) -> list[DiscreteDefinition]:
        node = single.node
        assert isinstance(node, tree.Equal)
        if isinstance(node.left, tree.Several):
            return []
        pairs = ((node.left, node.right), (node.right, node.left))
        if any(isinstance(side, tree.Reference) and side.path in self.names.variables for side, _ in pairs):
            return []  # a Real that an Integer gives
        return [
            DiscreteDefinition(side.path, other, single.local, node.at)
            for side, other in pairs
            if isinstance(side, tree.Reference) and side.path in self.names.discrete
            and side.path not in self.set_at_events
            and (self.names.discrete[side.path].base == "Real" or not is_real(other, self.names.variables.__contains__))
        ]  # fmt: skip

    def _define(self, definition: DiscreteDefinition) -> None:
        value = self.evaluator.value(definition.node, definition.local)
        if definition.name in self.events.discretes:
            self.events.watch(definition.name, value, definition.at)
        else:
            self.names.formulas[definition.name] = value

    # --- equations ---

    def _equation(self, single: Single) -> None:
        node = single.node
        assert isinstance(node, tree.Equal)
        for a, b in self._sides(node, single):
            law = self._law(node.at, *self._lasting(node.at, formula(a), formula(b)))
            self.laws += [] if law is None else [law]

    def _lasting(self, at: int, left: Expression, right: Expression) -> tuple[Expression, Expression]:
        """Return what ``edge``, ``change`` and clocks give a Real that nobody reads: between events they do not
        hold.
        """
        name = left.path if isinstance(left, Name) else ""
        if not is_momentary(right) or name not in self.names.variables or _SUBSCRIPTS.sub("", name) in self._read():
            return left, right
        words = f"'{name}' has another value at single instants, which no row of a run shows"
        self.names.remarks.add(at, words)
        return left, replaced(right, lambda node: always(False) if is_moment(node) else None)

    def _read(self) -> set[str]:
        """Return names whose values are asked for anywhere."""
        if self._asked is None:
            statements = [s for section in self.made.algorithms for s in section]
            nodes = tree.walk(*self.made.equations, *self.names.bindings, *statements)
            asked = [*self.made.initial_equations, *(s for part in self.made.initial_algorithms for s in part)]
            for node in nodes:
                if isinstance(node, tree.Equal):
                    asked += [node.right] if isinstance(node.left, tree.Reference) else [node.left, node.right]
                elif isinstance(node, tree.Assign):
                    asked.append(node.value)
                elif isinstance(node, tree.If | tree.When):
                    asked += [condition for condition, _ in node.branches if condition is not None]
                elif isinstance(node, tree.While | tree.Do):
                    asked.append(node.condition if isinstance(node, tree.While) else node.call)
            self._asked = {path for node in asked for path in tree.references(node)}
        return self._asked

    def _sides(self, node: tree.Equal, single: Single) -> list[tuple[Value, Value]]:
        """Return the scalar equations that an equation of arrays, records or several results stands for."""
        if not isinstance(node.left, tree.Several):
            right = self.evaluator.value(node.right, single.local)
            return pairs_of(self.evaluator.value(node.left, single.local), right)
        found = []
        right = self.evaluator.results(node.right, single.local)
        for target, result in zip(node.left.items, results_for(node.left, right), strict=False):
            if target is not None:
                found += pairs_of(self.evaluator.value(target, single.local), result)
        return found

    def _law(self, at: int, a: Expression, b: Expression) -> WrittenEquation | None:
        if isinstance(a, Constant) and isinstance(b, Constant):
            if abs(a.value - b.value) > 1e-12 * max(1.0, abs(a.value)):
                raise Refused(at, f"the equation says {a.value:g} = {b.value:g}")
            return None
        if same(a, b):
            return None
        return WrittenEquation(a, b, self.source.place(at))

    def _call(self, single: Single) -> None:
        node = single.node
        assert isinstance(node, tree.Do)
        call = node.call
        if call.name != "assert":
            self._told(node, single)
            return
        holds = self.evaluator.truth(call.arguments[0], single.local)
        message, severe = message_of(self.evaluator, call, single.local), not is_warning(call)
        if holds is False and severe:
            raise Refused(node.at, f"an assertion fails: {message}")
        if self.names.number(holds) is False:
            self.names.remarks.add(node.at, f"an assertion fails: {message}")
        if isinstance(holds, Expression) and not _is_beyond_rows(holds):
            self.checks.append(Assertion(holds, message, severe, self.source.place(node.at)))

    def _root(self, function: Callable[[Value], Value], low: Value, high: Value, at: int) -> Name:
        """Return an unknown between two bounds at which a function is zero."""
        name = f"root {sum(n.startswith('root ') for n in self.names.variables) + 1}"
        start = Constant((low + high) / 2) if is_number(low) and is_number(high) else None
        self.names.variables[name] = FlatVariable(name, start, "", f"the root that {self.source.place(at)} asks for")
        self.laws.append(WrittenEquation(formula(function(Name(name))), Constant(0.0), self.source.place(at)))
        return Name(name)

    def _require(self, holds: Any, message: str, at: int) -> None:
        """An assertion that a function of the library makes of its arguments."""
        if self.names.number(holds) is False:
            raise Refused(at, message)
        self.checks.append(Assertion(holds, message, True, self.source.place(at)))

    def _first_check(self, node: tree.Do, single: Single) -> None:
        """An assertion of the first instant: of parameters alone it is told at once, else it is not checked."""
        holds = self.names.number(self.evaluator.truth(node.call.arguments[0], single.local))
        if holds is False:
            message = message_of(self.evaluator, node.call, single.local)
            self.names.remarks.add(node.at, f"an assertion of the first instant fails: {message}")
        elif isinstance(holds, Expression):
            self.names.remarks.add(node.at, "an assertion of the first instant is not checked")

    def _told(self, node: tree.Do, single: Single) -> None:
        """A function without results among the equations: it can only check its arguments or print."""
        call = node.call
        made = self.library.classes.get(call.name)
        if call.name in SILENT_FUNCTIONS:
            self.names.remarks.add(node.at, f"'{call.name}' prints nothing")
        elif made is not None and made.external is None and not any("output" in c.prefixes for c in made.components):
            self.evaluator.value(call, single.local)
        else:
            raise Refused(node.at, f"'{call.name}' among the equations is not supported")

    # --- starts ---

    def _initial(self) -> None:
        singles = [*self.sections.unroll(self.made.initial_equations, {})]
        singles += [single for section in self.made.initial_algorithms for single in self._outcomes(section)]
        for single in singles:
            self._try(single.node.at, lambda s=single: self._initial_equation(s))
        self.events.settle_starts()
        for name, (value, at) in self.names.found.items():
            self.initial.append(WrittenEquation(Name(name), value, self.source.place(at)))

    def _initial_derivatives(self) -> None:
        """``der(x)`` in initial equations only, of an x that is no state: an unknown of its own, which index reduction
        determines."""
        known = {name for law in self.laws for name in _differentiated(law)}
        new = {name: f"der({name})" for law in self.initial for name in _differentiated(law) if name not in known}
        for name, text in new.items():
            self.names.variables[text] = FlatVariable(text, None, "", f"the derivative of {name}")
            place = f"the initial equations, which contain {text}"
            self.laws.append(WrittenEquation(Name(text), Call("der", (Name(name),), 1), place))

        def put(node: Expression) -> Expression | None:
            name = derived(node)
            return Name(new[name]) if name in new else None

        if new:
            put_in = Rewriter(put)
            self.initial = [WrittenEquation(put_in(law.left), put_in(law.right), law.source) for law in self.initial]

    def _initial_equation(self, single: Single) -> None:
        node = single.node
        if isinstance(node, tree.Do) and node.call.name == "assert":
            self._first_check(node, single)
            return
        if not isinstance(node, tree.Equal):
            raise Refused(node.at, "this initial equation is not supported")
        if isinstance(node.left, tree.Reference) and node.left.path in self.names.fixed:
            return  # settled by it
        for a, b in self._sides(node, single):
            if self._begin(a, b, node.at) or self._begin(b, a, node.at):
                continue
            if not self._demand(a, b) and not self._demand(b, a):
                law = self._law(node.at, formula(a), formula(b))
                self.initial += [] if law is None else [law]

    def _begin(self, a: Value, b: Value, at: int) -> bool:
        """Return ``n = value`` or ``pre(n) = value`` of a discrete variable."""
        side = a.arguments[0] if isinstance(a, Condition) else a
        if isinstance(side, Call) and side.operation == "pre":
            side = side.arguments[0]
        return isinstance(side, Name) and self.events.begin(side.path, b, at)

    def _demand(self, a: Value, b: Value) -> bool:
        names = self.names
        if not isinstance(a, Name) or a.path not in names.variables:
            return False
        expression = formula(b)
        leaves = {leaf.path for leaf in _names(expression)}
        if leaves - set(names.parameters):
            return False
        variable = names.variables[a.path]
        if variable.fixed and variable.start is not None and not self._is_one_number(variable.start, expression):
            return False  # two demands: both hold, or the start problem names them
        names.variables[a.path] = replace(variable, start=expression, fixed=True)
        return True

    def _is_one_number(self, one: Expression, other: Expression) -> bool:
        a, b = self.names.number(one), self.names.number(other)
        return bool(a == b) if is_number(a) and is_number(b) else same(one, other)

    # --- the end ---

    def _finished(self) -> Content:
        names = self.names
        quantities: dict[str, Expression] = {}
        self.events.uses_first = names.uses_first
        whens = self._try(0, lambda: self.events.occasions(self.source.place)) or ()
        for name, value in names.formulas.items():
            if isinstance(value, str) or name in self.events.discretes:
                continue
            if is_momentary(value):
                quantities[name] = Constant(0.0)  # true at single instants, which no time of a run is
                continue
            expression = self._try(names.discrete[name].declared.at, lambda v=value: formula(v))
            if expression is not None:
                quantities[name] = expression
        content = Content(
            name=self.made.name,
            description=self.made.words,
            parameters={n: p for n, p in names.parameters.items() if n not in names.settled_reals},
            variables=names.variables,
            inputs=names.inputs,
            outputs={
                n: FlatOutput(n, Name(n), None, names.variables[n].unit) for n in names.outputs if n in names.variables
            },
            quantities=quantities,
            equations=tuple(self.laws),
            initial=tuple(self.initial),
            settled=self._settled(),
            discretes=self.events.discretes,
            whens=whens,
            checks=tuple(self.checks),
            starts_are_guesses=True,
        )
        self.refusals.check()
        names.remarks.note_accepted(self.source)
        content = content.mapped(Unreachable(names.parameters.__contains__))
        return content.mapped(self._inserting()) if names.settled_reals else content

    def _settled(self) -> dict[str, str]:
        """Return parameters that were fixed while the text was read, with their values as texts."""
        names = self.names
        fixed = {n: _shown(v) for n, v in names.fixed.items() if v is not None}
        return {**fixed, **{n: _shown(names._number(n)) for n in names.settled_reals}}

    def _inserting(self) -> Rewriter:
        """Return puts the numbers of parameters that were fixed in their places."""
        numbers = {n: Constant(float(self.names._number(n))) for n in self.names.settled_reals}
        return Rewriter(lambda node: numbers.get(node.path) if isinstance(node, Name) else None)


def _read_now(node: tree.Node) -> Iterator[tree.Reference]:
    """Yield references whose present value is asked for: not those of ``pre``, nor what is assigned."""
    assigned = {id(n.target) for n in tree.walk(node) if isinstance(n, tree.Assign)}
    before = [n for n in tree.walk(node) if isinstance(n, tree.Calling) and n.name == "pre"]
    left_out = {id(inner) for call in before for inner in tree.walk(*call.arguments)} | assigned
    yield from (n for n in tree.walk(node) if isinstance(n, tree.Reference) and id(n) not in left_out)


def derived(node: Expression) -> str:
    """Return ``"x"`` for ``der(x)``; empty for anything else."""
    if not isinstance(node, Call) or node.operation != "der" or node.data not in (None, 1):
        return ""
    return node.arguments[0].path if isinstance(node.arguments[0], Name) else ""


def _differentiated(law: WrittenEquation) -> list[str]:
    return [name for node in postorder((law.left, law.right)) if (name := derived(node))]


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.name if isinstance(value, Enumerated) else f"{value:g}" if is_number(value) else str(value)[:60]


def _names(expression: Expression) -> list[Name]:
    return [node for node in postorder((expression,)) if isinstance(node, Name)]


def _is_beyond_rows(condition: Expression) -> bool:
    """Return whether a condition asks for more than the values at one instant."""
    beyond = {*OF_EVENTS, "der", "delay"}
    return any(isinstance(node, Call) and node.operation in beyond for node in postorder((condition,)))
