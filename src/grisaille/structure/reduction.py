"""Index reduction from end to end: flat model → ``Structure``.

Passes, in order: lower to symbols, eliminate aliases, check that a perfect matching exists, find the offsets, replace
equations whose derivatives cancel, differentiate, eliminate explicit states, solve the leading system block by block,
collect the reduced system. All hidden constraints are kept; no choice of coordinates is made that could turn singular.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import casadi as ca

from grisaille.cache import Cache
from grisaille.errors import StructureError
from grisaille.model.flat import FlatModel
from grisaille.structure.aliases import eliminate_aliases
from grisaille.structure.bipartite_matching import decompose
from grisaille.structure.blocks import Block, BlockUnknown, Leading, SolvedBlocks, solve_blocks, substitute_sequence
from grisaille.structure.constants import insert_constants
from grisaille.structure.differentiability import differentiate, in_names
from grisaille.structure.equations import Equations, lower_equations
from grisaille.structure.event_dependencies import ImplicitDependence
from grisaille.structure.explicit_elimination import EliminatedUnknown, eliminate_explicit
from grisaille.structure.jets import Jets, JetSymbol, derivative_text
from grisaille.structure.jumps import Jumps
from grisaille.structure.relations_as_unknowns import DEFAULT_LEEWAY, LEEWAY_SIGNAL
from grisaille.structure.signature import Offsets, solve_offsets
from grisaille.structure.singular.derivative_array import index_by_array
from grisaille.structure.singular.like_terms import without_cancelled_terms
from grisaille.structure.singular.rounded_slopes import without_rounded_slopes
from grisaille.structure.singular.singularity import repair_singular_block
from grisaille.structure.singularity_diagnosis import explain_singular, refuse_wrong_count
from grisaille.structure.starts.start_functions import StartFunctions
from grisaille.structure.starts.written_check import WrittenCheck, check_of
from grisaille.structure.system import Signal, SymbolOrigins, System
from grisaille.structure.when_lowering import HIDDEN_PREFIX, collect_reactions

T = TypeVar("T")
MIN_LARGE_SIZE = 400
"""Equations beyond which those that follow from each other are looked for only after equal variables are merged."""
MAX_READABLE_LENGTH = 60
"""Characters of a relation that are still read."""


class WrittenIndex:
    """The differential index of the equations as the user wrote them, before equal variables are merged.

    Found when first asked for, and shared by all structures that differ in values only.
    """

    def __init__(self, reduced: Equations, offsets: Offsets) -> None:
        self._reduced, self._offsets = reduced, offsets

    @cached_property
    def value(self) -> int:
        equations, offsets = self._reduced, self._offsets
        if equations.aliases:
            equations, offsets = _written_offsets(equations.model)
        raised = [row.raised for row in equations.rows if row.raised is not None]
        if not raised:
            return offsets.index
        # combinations contain derivatives themselves, which count; how many are needed, the derivative array knows
        most = offsets.index + max(raised)
        found = index_by_array(lower_equations(equations.model), most)
        return most if found is None else found


@dataclass(frozen=True)
class Structure:
    """The index-reduced model with the record of how it came about."""

    model: FlatModel
    equations: Equations
    """After alias elimination and repair, before differentiation."""
    offsets: Offsets
    written_states: frozenset[str]
    """Unknowns that the user's equations differentiate; the others of the states only index reduction does."""
    states: tuple[JetSymbol, ...]
    leading_texts: tuple[str, ...]
    leading_unknowns: tuple[str, ...]
    leading_incidence: tuple[frozenset[int], ...]
    blocks: tuple[Block, ...]
    repairs: int
    """How many equations were replaced because derivatives cancelled."""
    system: System
    start_functions: StartFunctions
    written_index: WrittenIndex
    jumps: Jumps
    written_check: WrittenCheck
    given_states: frozenset[str] = frozenset()
    """Unknowns that equations give by formulas, but that stay states for the sake of sparse matrices."""

    @cached_property
    def depends_on_values(self) -> bool:
        """Whether values of parameters decide what its formulas may divide by."""
        return bool(self.system.pivot_texts) or any(block.elimination is not None for block in self.blocks)

    @property
    def index(self) -> int:
        """Return the differential index of the equations as the user wrote them, before equal variables are merged."""
        return self.written_index.value

    @cached_property
    def _orders(self) -> dict[str, int]:
        return dict(zip(self.equations.unknowns, self.offsets.unknowns, strict=True))

    def order_of(self, unknown: str) -> int:
        """Return how often the differentiated system contains the derivative of an unknown; −1 for other names."""
        return self._orders.get(unknown, -1)

    @cached_property
    def _made(self) -> Cache[Any]:
        return Cache(None)

    def cached_value(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a value that follows from the structure and the key alone; it is computed once."""
        found: T = self._made.get(key, make)
        return found

    @property
    def degrees_of_freedom(self) -> int:
        """Return how many start values may be chosen freely."""
        return sum(self.offsets.unknowns) - sum(self.offsets.equations)


def reduce_model(model: FlatModel, refused_pivots: frozenset[str] = frozenset()) -> Structure:
    """Return the structure of a flat model; raises ``StructureError`` naming what is over- or underdetermined."""
    written = _merged(model)
    equations, offsets, repairs = _find_offsets(written)
    if model.whens and sum(offsets.unknowns) == sum(offsets.equations):
        written = _merged(model, idle=True)
        equations, offsets, repairs = _find_offsets(written)
    levels = _differentiate(equations, offsets)
    pairs, definitions, kept = eliminate_explicit(equations, offsets, levels)
    leading = _leading_system(equations, offsets, levels, pairs, definitions)
    solved = solve_blocks(
        *leading,
        [s for n, s in equations.parameters.items() if n not in model.discretes],  # which events may make zero
        refused_pivots,
        partial(equations.switches.constant, LEEWAY_SIGNAL, DEFAULT_LEEWAY),
    )
    sequence = [*solved.definitions, *((d.symbol, d.formula) for d in definitions)]
    differentiated = frozenset(
        n for row in written.rows for n, order in written.jets.unknowns(row.residual).items() if order
    )
    system, states = _collect(equations, offsets, levels, pairs, definitions, leading[1], solved, differentiated)
    system = replace(system, origins=_origins(equations, pairs, *leading, solved, states))
    return Structure(
        model,
        equations,
        offsets,
        differentiated,
        states,
        tuple(e.text for e in leading[0]),
        tuple(u.text for u in leading[1]),
        solved.incidence,
        solved.blocks,
        repairs,
        system,
        StartFunctions(system),
        WrittenIndex(equations, offsets),
        Jumps(system, equations.jets, equations.parameters),
        check_of(written, equations, system, partial(substitute_sequence, sequence)),
        kept,
    )


def _origins(
    equations: Equations, pairs: Mapping[int, int], leading: Sequence[Leading], unknowns: Sequence[BlockUnknown],
    solved: SolvedBlocks, states: Sequence[JetSymbol],
) -> dict[str, tuple[str, SymbolOrigins | None]]:  # fmt: skip
    """Return which equations each state's rate and each algebraic unknown follow from."""
    explicit = {equations.unknowns[j]: equations.rows[i].text for i, j in pairs.items()}
    found: dict[str, SymbolOrigins] = {}
    for block in solved.blocks:
        names = tuple(unknowns[j].text for j in block.unknowns)
        found |= dict.fromkeys(names, SymbolOrigins(names, tuple(leading[i].text for i in block.equations)))
    origins: dict[str, tuple[str, SymbolOrigins | None]] = {name: (name, origin) for name, origin in found.items()}
    for s in states:
        rate = derivative_text(s.name, s.order + 1)
        origin = found.get(rate)
        if origin is None and s.name in explicit:
            origin = SymbolOrigins((rate,), (explicit[s.name],))
        origins[s.text] = rate, origin
    return origins


def _merged(model: FlatModel, *, idle: bool = False) -> Equations:
    equations = lower_equations(model, idle=idle)
    refuse_wrong_count(equations)
    return insert_constants(eliminate_aliases(equations))


def _written_offsets(model: FlatModel) -> tuple[Equations, Offsets]:
    """Of the equations before aliases are merged. Where relations of equal variables are taken apart, as they are at
    random points, equations may seem to follow from each other that do not, and in large models looking for them takes
    longer than everything else: then the signature alone counts."""
    equations = lower_equations(model)
    if len(equations.rows) <= MIN_LARGE_SIZE:
        with suppress(StructureError):
            return _find_offsets(equations)[:2]
    if len(equations.rows) != len(equations.unknowns):  # an equation that only repeats another one was left out
        equations = _merged(model)
    position = {name: j for j, name in enumerate(equations.unknowns)}
    rows = [equations.jets.unknowns(row.residual).items() for row in equations.rows]
    return equations, solve_offsets([{position[name]: order for name, order in row} for row in rows])


def _find_offsets(equations: Equations) -> tuple[Equations, Offsets, int]:
    position = {name: j for j, name in enumerate(equations.unknowns)}
    for repairs in range(len(equations.rows) + 1):
        signature = [
            {position[name]: order for name, order in equations.jets.unknowns(row.residual).items()}
            for row in equations.rows
        ]
        parts = decompose(signature, len(position))
        if not parts.is_regular:
            explain_singular(equations, parts)
        offsets = solve_offsets(signature)
        repaired = repair_singular_block(equations, offsets)
        if repaired is None:
            return equations, offsets, repairs
        equations = repaired
    raise StructureError(
        f"The equations of {equations.model.name} stay singular after {len(equations.rows)} replacements: at least one "
        f"equation follows from the others."
    )


def _differentiate(equations: Equations, offsets: Offsets) -> list[list[ca.SX]]:
    """Return equation i at all its levels 0 … c_i."""
    levels = []
    for row, times in zip(equations.rows, offsets.equations, strict=True):
        chain = [row.residual]
        for _ in range(times):
            chain.append(differentiate(equations.jets, equations.parameters, chain[-1], row.text))
        levels.append(chain)
    return levels


def _level_text(text: str, level: int) -> str:
    return text if level == 0 else f"d/dt [{text}]" if level == 1 else f"d^{level}/dt^{level} [{text}]"


def _leading_system(
    equations: Equations,
    offsets: Offsets,
    levels: list[list[ca.SX]],
    pairs: dict[int, int],
    definitions: Sequence[EliminatedUnknown],
) -> tuple[list[Leading], list[BlockUnknown]]:
    rows = [i for i in range(len(equations.rows)) if i not in pairs]
    written = [levels[i][-1] for i in rows]
    inserted = [(d.symbol, d.formula) for d in definitions]
    solved = set(pairs.values())
    unknowns = [
        BlockUnknown(
            equations.jets.symbol(name, offsets.unknowns[j]),
            derivative_text(name, offsets.unknowns[j]),
            _nominal(equations.model, name),
        )
        for j, name in enumerate(equations.unknowns)
        if j not in solved
    ]
    residuals = without_rounded_slopes(equations, written, substitute_sequence(inserted, written), inserted, unknowns)
    leading = [
        Leading(r, _level_text(equations.rows[i].text, offsets.equations[i]))
        for i, r in zip(rows, residuals, strict=True)
    ]
    return leading, unknowns


def _nominal(model: FlatModel, name: str) -> float:
    variable = model.variables.get(name)
    return float(variable.nominal) if variable is not None and variable.nominal else 1.0


def _collect(
    equations: Equations,
    offsets: Offsets,
    levels: list[list[ca.SX]],
    pairs: dict[int, int],
    definitions: Sequence[EliminatedUnknown],
    unknowns: Sequence[BlockUnknown],
    solved: SolvedBlocks,
    written: frozenset[str],
) -> tuple[System, tuple[JetSymbol, ...]]:
    jets = equations.jets
    defined = {(d.name, d.order) for d in definitions}
    states = [
        JetSymbol(name, k, "unknown")
        for j, name in enumerate(equations.unknowns)
        for k in range(offsets.unknowns[j])
        if (name, k) not in defined
    ]
    hidden = _hidden(equations, offsets, levels, pairs)
    sequence = [*solved.definitions, *((d.symbol, d.formula) for d in definitions)]
    rates = [jets.symbol(s.name, s.order + 1) for s in states]
    residuals = [*solved.residuals, *(piece.residual for piece in solved.pieces)]
    formulas = [*rates, *(e[2] for e in hidden), *residuals, *equations.observed.values()]
    closed = substitute_sequence(sequence, formulas)
    for k in range(len(rates), len(rates) + len(hidden)):
        closed[k] = without_cancelled_terms(closed[k])
    nx, nc, nz = len(states), len(hidden), len(residuals)
    pieces = _piece_texts(equations, solved)
    signals = _signals(equations, closed)
    _refuse_neutral(equations, offsets, signals)
    _refuse_events_with_a_past(equations)
    observed = dict(zip(equations.observed, closed[nx + nc + nz :], strict=True))
    seen = [n for n in observed if not n.startswith(HIDDEN_PREFIX) and n not in equations.initial]
    x = _column([jets.symbol(s.name, s.order) for s in states])
    z = _column([*(unknowns[k].symbol for k in solved.implicit), *(piece.symbol for piece in solved.pieces)])
    constraints, residual = _column(closed[nx : nx + nc]), _column(closed[nx + nc : nx + nc + nz])
    state_names = tuple(s.text for s in states)
    implicit_names = (*(unknowns[k].text for k in solved.implicit), *(f"[{relation}]" for relation, _ in pieces))
    reactions = None if equations.whens is None else collect_reactions(
        equations.whens, equations.model, equations.parameters, observed,
        ImplicitDependence(x, z, residual, constraints, state_names, implicit_names), [e[0] for e in hidden],
        {s.name: k for k, s in enumerate(signals) if s.kind == "switch" and s.order == 0}, written,
    )  # fmt: skip
    system = System(
        t=jets.time,
        x=x,
        z=z,
        u=_column([jets.symbol(s.name, s.order) for s in signals]),
        p=_column(list(equations.parameters.values())),
        rhs=_column(closed[:nx]),
        constraints=constraints,
        residual=residual,
        observed=_column([observed[n] for n in seen]),
        initial=_column([observed[n] for n in equations.initial]),
        initial_texts=equations.initial,
        state_names=state_names,
        implicit_names=implicit_names,
        signals=signals,
        parameter_names=tuple(equations.parameters),
        observed_names=tuple(seen),
        constraint_texts=tuple(e[1] for e in hidden),
        constraint_levels=tuple(e[0] for e in hidden),
        residual_texts=(*solved.residual_texts, *(text for _, text in pieces)),
        pieces=tuple(pieces),
        switches=_column([equations.switches.values[s.name] for s in signals if s.kind == "switch" and s.order == 0]),
        delays=tuple(equations.delays.values[s.name] for s in signals if s.kind == "delayed" and s.order == 0),
        smooth=tuple(_must_be_continuous(equations, offsets, levels)),
        pivots=_column([p.value for p in solved.pivots]),
        pivot_texts=tuple(p.text for p in solved.pivots),
        reactions=reactions,
    )
    _refuse_leftovers(jets, system)
    return system, tuple(states)


def with_system(structure: Structure, system: System) -> Structure:
    """Return the structure with another system in place of its own."""
    equations = structure.equations
    return replace(
        structure,
        system=system,
        start_functions=StartFunctions(system),
        jumps=Jumps(system, equations.jets, equations.parameters),
    )


def _hidden(
    equations: Equations, offsets: Offsets, levels: list[list[ca.SX]], pairs: dict[int, int]
) -> list[tuple[int, str, ca.SX]]:
    """Return hidden constraints: level, text and formula, the lowest level first."""
    found = [
        (k - c + max(offsets.equations), _level_text(equations.rows[i].text, k), levels[i][k])
        for i, c in enumerate(offsets.equations)
        if i not in pairs
        for k in range(c)
    ]
    return sorted(found, key=lambda entry: entry[0])


def _piece_texts(equations: Equations, solved: SolvedBlocks) -> list[tuple[str, str]]:
    """Return relation and equation of every piece; tearing may have replaced the unknown that the relation was written
    in.
    """
    texts = [in_names(equations.jets, equations.parameters, piece.relation) for piece in solved.pieces]
    return [
        (t if len(t) <= MAX_READABLE_LENGTH else f"relation {k + 1}", piece.text)
        for k, (t, piece) in enumerate(zip(texts, solved.pieces, strict=True))
    ]


def _column(entries: Sequence[ca.SX]) -> ca.SX:
    return ca.densify(ca.vertcat(*entries)) if entries else ca.SX(0, 1)


def _signals(equations: Equations, formulas: Sequence[ca.SX]) -> tuple[Signal, ...]:
    """Return inputs and disturbances at the orders that occur; order zero always, because users ask for them."""
    used = {(m.name, m.order) for m in equations.jets.within(ca.vertcat(*formulas))} if formulas else set()
    signals: list[Signal] = []
    model = equations.model
    kinds: tuple[tuple[Iterable[str], str], ...] = (
        (model.inputs, "input"),
        (model.disturbances, "disturbance"),
        (equations.switches.values, "switch"),
        (equations.delays.values, "delayed"),
    )
    for names, kind in kinds:
        for name in names:
            highest = max((order for n, order in used if n == name), default=-1 if kind == "delayed" else 0)
            signals.extend(Signal(name, order, kind) for order in range(highest + 1))
    return tuple(signals)


def _refuse_neutral(equations: Equations, offsets: Offsets, signals: Iterable[Signal]) -> None:
    """Refuse an earlier rate that index reduction has brought in: it would have to be kept as it jumped."""
    orders = dict(zip(equations.unknowns, offsets.unknowns, strict=True))
    for s in signals:
        delay = equations.delays.values.get(s.name) if s.kind == "delayed" and s.order else None
        if delay is not None and delay.kind == "passed":
            raise StructureError(
                f"Index reduction differentiates a formula delayed by {delay.text}, and before= may make it jump at "
                f"the end of the dead time: the derivative would be an impulse. Leave before= out, so that it begins "
                f"with the value at the start, or pass it through a filter in the model."
            )
        if delay is not None and delay.kind == "unknown" and s.order >= orders.get(delay.source, 1):
            raise StructureError(
                f"Index reduction differentiates {delay.name}, so that a rate depends on the earlier rate of "
                f"{delay.source} (a neutral equation), which is not solved here. Let a state follow {delay.source}, "
                f"der(f) == ({delay.source} - f) / T, and delay that."
            )


def _refuse_events_with_a_past(equations: Equations) -> None:
    past = [d.name for d in equations.delays.values.values() if d.kind == "unknown"]
    if past and equations.whens is not None:
        raise StructureError(
            f"{equations.model.name} contains {past[0]}, the past of an unknown, and events (gr.when), which may make "
            f"it jump: they are not simulated together. Replace the delay by a chain of n lags, "
            f"der(d[k]) == (d[k-1] - d[k]) * n / tau, or the event by a smooth formula."
        )


def _must_be_continuous(
    equations: Equations, offsets: Offsets, levels: list[list[ca.SX]]
) -> Iterator[tuple[str, ca.SX]]:
    """Yield differentiated equations with a switch in them: a jump of theirs would make the next level an impulse."""
    for i, c in enumerate(offsets.equations):
        for level in levels[i][:c]:
            if any(m.kind == "switch" for m in equations.jets.within(level)):
                yield equations.rows[i].text, level


def _refuse_leftovers(jets: Jets, system: System) -> None:
    known = {s.element_hash() for v in (system.x, system.z, system.u) for s in ca.vertsplit(v)}
    everything = ca.vertcat(system.rhs, system.residual, system.constraints, system.observed, system.initial)
    if system.reactions is not None:
        everything = ca.vertcat(everything, system.reactions.conditions, system.reactions.values)
    left = [m.text for s in ca.symvar(everything) if (m := jets.meaning(s)) and s.element_hash() not in known]
    if left:
        raise StructureError(
            f"{', '.join(left)} cannot be computed from the states: a quantity or output asks for a derivative that "
            f"the equations do not determine. Write it as a variable with an equation of its own."
        )
