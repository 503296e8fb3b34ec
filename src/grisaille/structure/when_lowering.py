"""``when`` in symbols: conditions, what they remember, new values of states and discrete variables.

While equations are lowered every formula of a ``when`` becomes a hidden observed quantity, so that index reduction
writes it out in states like any other. What events know and equations do not are symbols of their own:

    was     what a discrete variable or the condition of ``edge`` was when the last iteration of an event ended
    pulse   1 at the instant of a clock's tick or at the start of a run, else 0
    fired   1 for the clauses whose actions are taken in a pass

A discrete variable n that some clauses c give values V_c becomes

    n⁺ = V_c where clause c has fired, n elsewhere,      V_c of the new values of others, of was_n for pre(n),

which is written out in an order in which no value is needed before it is known. The formulas of actions are those of
the equations: what follows from a discrete variable follows from its new value, states are those before the event.
Unknowns that would have to be solved for in between are refused (``structure/event_dependencies.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import casadi as ca

from grisaille.errors import ModelError, StructureError
from grisaille.model.expression import Call, Name, postorder
from grisaille.model.flat import FlatModel
from grisaille.model.lowering.lowering import Differentiate, Leaf, lower
from grisaille.model.notation.text import render
from grisaille.model.ordering import strong_components
from grisaille.structure.delays.delay import Delays
from grisaille.structure.event_dependencies import ImplicitDependence, carried_in
from grisaille.structure.jumping.together import is_circle, named_by_each_other, solve_together, words_of_circle
from grisaille.structure.switching_pieces import is_affine
from grisaille.structure.system import Reactions, Tick
from grisaille.structure.time_switches import Switches

Carried = Mapping[str, Sequence[tuple[str, ca.SX]]]
"""For each discrete variable that events set the unknowns that change with it."""
HIDDEN_PREFIX = "\0"
"""First letter of the names of formulas that users do not see."""


@dataclass(frozen=True, eq=False)
class EventAction:
    """One action: the clause it belongs to, what it sets, and the hidden formula of the new value."""

    clause: int
    kind: str
    target: str
    formula: str


@dataclass(frozen=True, eq=False)
class WhenClauses:
    """The events of one model over its symbols; formulas stand among the observed ones, under hidden names."""

    texts: tuple[str, ...]
    """Condition of each clause."""
    group: tuple[int, ...]
    """Which ``when`` each clause belongs to."""
    lasting: tuple[bool, ...]
    """Clauses that fire in every pass in which their condition holds."""
    deeds: tuple[EventAction, ...]
    conditions: tuple[str, ...]
    memory: tuple[tuple[ca.SX, str], ...]
    """(was, hidden formula)"""
    before: tuple[tuple[ca.SX, str], ...]
    """(symbol, hidden formula) of pre(…) of what is continuous."""
    ticks: tuple[Tick, ...]


def lower_whens(
    model: FlatModel, parameters: Mapping[str, ca.SX], leaf: Leaf, der: Differentiate, switches: Switches,
    delays: Delays,
) -> tuple[WhenClauses | None, dict[str, ca.SX]]:  # fmt: skip
    """Return the events, and their hidden formulas; nothing where a model has none."""
    if not model.whens:
        return None, {}
    return _WhenLowering(model, parameters, leaf, der, switches, delays).run()


class _WhenLowering:
    def __init__(
        self, model: FlatModel, parameters: Mapping[str, ca.SX], leaf: Leaf, der: Differentiate, switches: Switches,
        delays: Delays,
    ) -> None:  # fmt: skip
        self.model, self.parameters, self.leaf, self.der = model, parameters, leaf, der
        self.switches, self.delays = switches, delays
        self.hidden: dict[str, ca.SX] = {}
        self.was = {n: ca.SX.sym("was") for n in model.discretes}
        self.memory = [(s, self._hide(f"memory {n}", parameters[n])) for n, s in self.was.items()]
        self.before: list[tuple[ca.SX, str]] = []
        self.ticks: dict[str, Tick] = {}

    def run(self) -> tuple[WhenClauses, dict[str, ca.SX]]:
        texts: list[str] = []
        group: list[int] = []
        lasting: list[bool] = []
        deeds: list[EventAction] = []
        conditions: list[str] = []
        for number, occasion in enumerate(self.model.whens):
            for clause in occasion.clauses:
                k = len(texts)
                texts.append(clause.text)
                group.append(number)
                lasting.append(isinstance(clause.condition, Call) and clause.condition.operation == "whenever")
                conditions.append(self._hide(f"condition {k}", self._lowered(clause.condition, self._in_condition)))
                for action in clause.actions:
                    value = self._lowered(action.value, self._in_action)
                    deeds.append(EventAction(k, action.kind, action.target, self._hide(f"value {len(deeds)}", value)))
        found = WhenClauses(
            tuple(texts), tuple(group), tuple(lasting), tuple(deeds), tuple(conditions), tuple(self.memory),
            tuple(self.before), tuple(self.ticks.values()),
        )  # fmt: skip
        return found, self.hidden

    def _hide(self, name: str, formula: ca.SX) -> str:
        self.hidden[HIDDEN_PREFIX + name] = formula
        return HIDDEN_PREFIX + name

    def _lowered(self, formula: object, inspect: Callable[[Call, list[ca.SX], ca.SX], ca.SX]) -> ca.SX:
        return lower([formula], self.leaf, self.der, inspect)[0]  # type: ignore[list-item]

    def _in_condition(self, node: Call, arguments: list[ca.SX], value: ca.SX) -> ca.SX:
        if node.operation == "pre" and not self._is_discrete(node):
            raise ModelError(
                f"{self.model.name}: `{render(node)}` stands in the condition of a gr.when; pre(…) of a continuous "
                f"variable has a meaning in actions only. Leave pre out: at the event both are the same."
            )
        return self._of_events(node, arguments, value)

    def _in_action(self, node: Call, arguments: list[ca.SX], value: ca.SX) -> ca.SX:
        if node.operation == "pre" and not self._is_discrete(node):
            symbol = ca.SX.sym("before")
            self.before.append((symbol, self._hide(f"before {len(self.before)}", arguments[0])))
            return symbol
        return self._of_events(node, arguments, value)

    def _is_discrete(self, node: Call) -> bool:
        argument = node.arguments[0]
        return isinstance(argument, Name) and argument.path in self.was

    def _of_events(self, node: Call, arguments: list[ca.SX], value: ca.SX) -> ca.SX:
        if node.operation in ("pre", "change"):
            argument = node.arguments[0]
            if not (isinstance(argument, Name) and argument.path in self.was):
                raise ModelError(f"{self.model.name}: `{render(node)}` is taken of a gr.Discrete only.")
            was = self.was[argument.path]
            return was if node.operation == "pre" else ca.logic_not(arguments[0] == was)
        if node.operation == "edge":
            was = ca.SX.sym("was")
            self.memory.append((was, self._hide(f"memory {len(self.memory)}", arguments[0])))
            return ca.logic_and(arguments[0], ca.logic_not(was))
        if node.operation in ("clock", "initial"):
            return self._pulse(node, arguments)
        if node.operation == "delay":
            return self.delays.lowered(node, *arguments)
        return value

    def _pulse(self, node: Call, arguments: list[ca.SX]) -> ca.SX:
        text = render(node)
        if text not in self.ticks:
            pulse = ca.SX.sym("pulse")
            if node.operation == "initial":
                self.ticks[text] = Tick(text, pulse, "", ca.SX(1), ca.SX(0), ca.SX(0))
            else:
                self._refuse_moving(node)
                period, start = arguments
                signal = self.switches.counter(text, ca.floor((self.leaf("time") - start) / period))
                instant = start + self.switches.symbol(signal) * period
                self.ticks[text] = Tick(text, pulse, signal, period, start, instant)
        return self.ticks[text].pulse

    def _refuse_moving(self, node: Call) -> None:
        constant = set(self.model.parameters) - set(self.model.discretes)
        for leaf in postorder(node.arguments):
            if isinstance(leaf, Name) and leaf.path not in constant:
                raise ModelError(
                    f"{self.model.name}: `{render(node)}` ticks at instants that are known before a run: its period "
                    f"and start may contain numbers and parameters, but '{leaf.path}' is none."
                )


def collect_reactions(
    whens: WhenClauses,
    model: FlatModel,
    parameters: Mapping[str, ca.SX],
    closed: Mapping[str, ca.SX],
    solved: ImplicitDependence,
    levels: Sequence[int],
    places: Mapping[str, int],
    written: Collection[str],
) -> Reactions:
    """Return the events in states.

    closed : every observed formula, hidden ones too, over states, implicit unknowns, signals and parameters
    levels : of the hidden constraints
    places : of switch signals in u
    written : names that the user's equations differentiate
    """
    fired = ca.SX.sym("fired", len(whens.texts))
    known = list(model.discretes)
    was = {n: symbol for n, (symbol, _) in zip(known, whens.memory, strict=False)}
    x, as_it_was = solved.x, [(parameters[n], was[n]) for n in known]
    before = [(s, _inserted(closed[f], as_it_was)) for s, f in whens.before]
    carried = {n: solved.carried_by(parameters[n]) for n in {d.target for d in whens.deeds if d.kind == "assign"}}
    ranks = _ranks(whens, closed, parameters, carried)
    clashes = _clashes(whens, model, closed, carried, ranks)
    deeds = [(d, _inserted(closed[d.formula], before)) for d in whens.deeds]
    assigned = [n for n in known if any(d.target == n for d, _ in deeds)]
    new = _new_values(model, assigned, deeds, parameters, fired, whens)
    targets: list[int] = []
    values: list[ca.SX] = []
    resets: list[list[int]] = [[] for _ in whens.texts]
    for deed, value in deeds:
        if deed.kind != "reinit":
            continue
        place, wanted = _state_of(deed, whens, model, closed[deed.target], x, solved.state_names, value, written)
        wanted = _with_new(wanted, deed, deeds, new, parameters, whens.group)
        resets[deed.clause].append(place)
        if place not in targets:
            targets.append(place)
            values.append(x[place])
        k = targets.index(place)
        values[k] = ca.if_else(fired[deed.clause], wanted, values[k])
    order = list(parameters)
    for name in assigned:
        targets.append(int(x.numel()) + order.index(name))
        values.append(new[name])
    return Reactions(
        texts=whens.texts,
        group=whens.group,
        lasting=whens.lasting,
        conditions=ca.vertcat(*(closed[c] for c in whens.conditions)),
        memory=ca.vertcat(*(closed[f] for _, f in whens.memory)) if whens.memory else ca.SX(0, 1),
        was=ca.vertcat(*(s for s, _ in whens.memory)) if whens.memory else ca.SX(0, 1),
        fired=fired,
        ticks=whens.ticks,
        counters=tuple(places.get(t.signal, -1) for t in whens.ticks),
        values=ca.vertcat(*values),
        targets=tuple(targets),
        resets=tuple(map(tuple, resets)),
        yields=tuple(_yielding(x, list(zip(levels, ca.vertsplit(solved.constraints), strict=True)))),
        clashes=tuple(clashes),
        ranks=ranks,
        begins=tuple(
            w or _asks_for_start(c, closed, whens) for w, c in zip(whens.lasting, whens.conditions, strict=True)
        ),
        remembered=tuple(order.index(n) for n in known),
    )


def _ranks(
    whens: WhenClauses, closed: Mapping[str, ca.SX], parameters: Mapping[str, ca.SX], carried: Carried
) -> tuple[int, ...]:
    """For each clause how many others must be decided before it, at most: those that set what its condition or its
    values contain, or what the conditions of its ``when`` before its own contain, directly, through others or through
    unknowns that are solved for. Where clauses need each other they have one rank."""
    setters: dict[int, set[int]] = {}
    for deed in whens.deeds:
        if deed.kind == "assign":
            for symbol in (parameters[deed.target], *(s for _, s in carried[deed.target])):
                setters.setdefault(symbol.element_hash(), set()).add(deed.clause)
    inner = [(symbol, closed[name]) for symbol, name in whens.before]
    decides: list[set[int]] = []
    needs: list[set[int]] = []
    for clause, condition in enumerate(whens.conditions):
        own = _setters_in(closed[condition], setters)
        earlier = clause > 0 and whens.group[clause - 1] == whens.group[clause]
        decides.append(own | decides[-1] if earlier else own)
        values = [closed[d.formula] for d in whens.deeds if d.clause == clause]
        needed = _setters_in(_inserted(ca.vertcat(*values), inner), setters) if values else set()
        needs.append((decides[-1] | needed) - {clause})
    ranks = [0] * len(needs)
    for members in strong_components(needs):
        below = {v for w in members for v in needs[w]} - set(members)
        for w in members:
            ranks[w] = max((ranks[v] + 1 for v in below), default=0)
    return tuple(ranks)


def _setters_in(formula: ca.SX, setters: Mapping[int, set[int]]) -> set[int]:
    """Return the clauses that set what stands in a formula."""
    inside = (s.element_hash() for s in ca.symvar(formula))
    return {clause for symbol in inside for clause in setters.get(symbol, ())}


def _asks_for_start(condition: str, closed: Mapping[str, ca.SX], whens: WhenClauses) -> bool:
    """Return whether a condition contains the pulse at the start of a run."""
    return any(not tick.signal and ca.depends_on(closed[condition], tick.pulse) for tick in whens.ticks)


def _clashes(
    whens: WhenClauses, model: FlatModel, closed: Mapping[str, ca.SX], carried: Carried, ranks: Sequence[int]
) -> Iterator[tuple[int, int, str, str]]:
    """(clause, other clause, unknown, discrete variable): the first needs the unknown, which changes with the discrete
    variable that the other one sets, and is not decided after it, so that they must not fire at once; refused where
    they are the same clause."""
    for deed in whens.deeds:
        for other in whens.deeds:
            c, o = deed.clause, other.clause
            if whens.lasting[c] or whens.lasting[o] or ranks[c] > ranks[o]:
                continue  # they fire one after the other
            if other.kind != "assign" or (c != o and whens.group[c] == whens.group[o]):
                continue
            unknown = carried_in(closed[deed.formula], carried[other.target])
            if unknown and c == o:
                action = f"gr.reinit({deed.target}, …)" if deed.kind == "reinit" else f"{deed.target} == …"
                raise StructureError(
                    f"{model.name}: gr.when({whens.texts[c]}, {action}) needs {unknown} with the new value of "
                    f"'{other.target}', which is set at the same instant, and {unknown} is solved for only after it. "
                    f"Write gr.pre(…) around the variable whose value before the event is meant, or solve the "
                    f"equation for {unknown} and write that formula in its place."
                )
            if unknown:
                yield c, o, unknown, other.target


def _inserted(formula: ca.SX, pairs: Sequence[tuple[ca.SX, ca.SX]]) -> ca.SX:
    if not pairs:
        return formula
    return ca.substitute(formula, ca.vertcat(*(s for s, _ in pairs)), ca.vertcat(*(f for _, f in pairs)))


def _new_values(
    model: FlatModel,
    assigned: Sequence[str],
    deeds: Sequence[tuple[EventAction, ca.SX]],
    parameters: Mapping[str, ca.SX],
    fired: ca.SX,
    whens: WhenClauses,
) -> dict[str, ca.SX]:
    """Return discrete variable → its value after a pass. Clauses that last are repeated until nothing changes any more:
    the values of others in them are those that they have.
    """
    needs = {
        (k, name): [] if whens.lasting[deed.clause] else list(_others(deed, value, deeds, parameters, whens.group))
        for k, (deed, value) in enumerate(deeds) for name in assigned
        if deed.target == name and deed.kind == "assign"
    }  # fmt: skip
    place = {name: k for k, name in enumerate(assigned)}
    uses: list[set[int]] = [set() for _ in assigned]
    for (_, name), others in needs.items():
        uses[place[name]] |= {place[other] for other in others}
    done: dict[str, ca.SX] = {}
    for members in strong_components(uses):
        names = [assigned[k] for k in sorted(members)]
        circular = is_circle(members, uses)
        named = named_by_each_other(model, names) if circular else []
        if any(is_circle(part, named) for part in strong_components(named)):
            raise StructureError(words_of_circle(model, names))  # what a formula itself names is mostly meant before
        unknown = {name: ca.SX.sym(name) for name in names} if circular else {}
        found = []
        for name in names:
            new = parameters[name]
            for (k, target), others in needs.items():
                if target == name:
                    deed, value = deeds[k]
                    pairs = [(parameters[other], {**done, **unknown}[other]) for other in others]
                    new = ca.if_else(fired[deed.clause], _inserted(value, pairs), new)
            found.append(new)
        done |= solve_together(model, unknown, found, fired) if circular else {names[0]: found[0]}
    return {name: done[name] for name in assigned}


def _others(
    deed: EventAction,
    value: ca.SX,
    deeds: Sequence[tuple[EventAction, ca.SX]],
    parameters: Mapping[str, ca.SX],
    group: Sequence[int],
) -> Iterator[str]:
    """Yield discrete variables in a value that may get a new one in the same pass."""
    for name in dict.fromkeys(d.target for d, _ in deeds if d.kind == "assign"):
        clauses = {d.clause for d, _ in deeds if d.kind == "assign" and d.target == name}
        together = any(c == deed.clause or group[c] != group[deed.clause] for c in clauses)
        if together and ca.depends_on(value, parameters[name]):
            yield name


def _with_new(
    value: ca.SX,
    deed: EventAction,
    deeds: Sequence[tuple[EventAction, ca.SX]],
    new: Mapping[str, ca.SX],
    parameters: Mapping[str, ca.SX],
    group: Sequence[int],
) -> ca.SX:
    return _inserted(value, [(parameters[n], new[n]) for n in _others(deed, value, deeds, parameters, group)])


def _state_of(
    deed: EventAction,
    whens: WhenClauses,
    model: FlatModel,
    formula: ca.SX,
    x: ca.SX,
    names: Sequence[str],
    value: ca.SX,
    written: Collection[str],
) -> tuple[int, ca.SX]:
    """Return the entry of x that a variable is, up to a factor and an offset, and what it must become."""
    inside = [k for k in range(x.numel()) if ca.depends_on(formula, x[k])]
    where = f"{model.name}: gr.when({whens.texts[deed.clause]}, gr.reinit({deed.target}, …))"
    if len(inside) == 1:
        symbol = x[inside[0]]
        slope = ca.jacobian(formula, symbol)
        if slope.is_constant() and float(slope) != 0 and is_affine(formula, symbol):
            rest = ca.substitute(formula, symbol, ca.SX(0))
            is_same = abs(float(slope)) == 1 and rest.is_zero()
            if not ca.symvar(rest) and (deed.target in written or is_same):
                return inside[0], (value - rest) / slope
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    of = f" It follows from {', '.join(names[k] for k in inside[:6])}: set those." if inside else ""
    raise StructureError(
        f"{where}: '{deed.target}' is no state, its value follows from the equations at every instant and cannot be "
        f"set.{of} The states are {shown or 'none'}. A quantity that changes at events only is a gr.Discrete."
    )


def _yielding(x: ca.SX, constraints: Sequence[tuple[int, ca.SX]]) -> Iterator[int]:
    """For every state the lowest level of the constraints that contain it: positions 0, velocities 1, …"""
    for k in range(x.numel()):
        yield min((level for level, formula in constraints if ca.depends_on(formula, x[k])), default=0)
