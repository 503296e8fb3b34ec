"""``analyze``: what the equations of a model are, in words and as a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import casadi as ca

from grisaille.calling import checked, checked_methods
from grisaille.errors import GrisailleError, StructureError
from grisaille.markup import tag
from grisaille.model.flat import FlatClause
from grisaille.structure.blocks import Block
from grisaille.structure.incidence import plot_incidence
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.description import describe_start
from grisaille.structure.starts.initialization import Initializer
from grisaille.structure.structure_cache import structure_of
from grisaille.structure.time_switches import steady_signals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from grisaille.model.classes import Model


@dataclass(frozen=True)
@checked_methods
class Analysis:
    """The structure of a model; ``print`` it, or ``plot`` its incidence before and after index reduction."""

    structure: Structure
    start: dict[str, float]
    """Consistent start values of all variables; empty where they could not be computed."""
    start_note: str

    @property
    def index(self) -> int:
        """Return differential index of the equations as written."""
        return self.structure.index

    @property
    def states(self) -> tuple[str, ...]:
        """Return the states that are integrated, in redundant coordinates where constraints remain."""
        return self.structure.system.state_names

    @property
    def degrees_of_freedom(self) -> int:
        """Return how many start values may be chosen freely."""
        return self.structure.degrees_of_freedom

    @property
    def hidden_constraints(self) -> tuple[str, ...]:
        """Return constraints on the states that are kept and projected on."""
        return self.structure.system.constraint_texts

    @property
    def differentiated(self) -> dict[str, int]:
        """Return equation → how often index reduction differentiates it."""
        rows, counts = self.structure.equations.rows, self.structure.offsets.equations
        return {row.text: c for row, c in zip(rows, counts, strict=True) if c}

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Return the leading system in the order of its solution."""
        return self.structure.blocks

    def plot(self, path: str | Path | None = None, *, ax: Axes | None = None) -> Figure:
        """Return the incidence matrix before and after; a matplotlib figure.

        path : a file to save it in
        ax : two axes to draw on instead of a new figure
        """
        return plot_incidence(self.structure, path, ax)

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        heading, *lines = _lines(self)
        return tag("div", tag("p", tag("strong", heading)), tag("pre", "\n".join(lines)))

    def __repr__(self) -> str:
        return f"<Analysis of {self.structure.model.name}: index {self.index}, {len(self.states)} states>"


@checked
def analyze(model: Model) -> Analysis:
    """Return the structure of a model: index, states, hidden constraints, blocks, consistent start.

    Raises ``StructureError`` with the names of the equations and unknowns that are over- or underdetermined.

    model : an instance of a ``gr.Model`` subclass
    """
    structure = structure_of(model)
    flat = structure.model
    if not (flat.variables or flat.discretes or flat.outputs):
        raise StructureError(
            f"{flat.name} is empty: it declares no variables and no outputs. Declare them in the class body, "
            f"x = gr.Variable(), and relate them in equations = [...]."
        )
    start, note = _consistent_start(structure)
    return Analysis(structure, start, note)


def _consistent_start(structure: Structure) -> tuple[dict[str, float], str]:
    flat, system = structure.model, structure.system
    missing = _missing_inputs(structure)
    given = f"with {' and '.join(missing)} at zero for want of a default (gr.Input(default=…)): " if missing else ""
    try:
        values = evaluate_parameters(flat)
        defaults = {n: i.default or 0.0 for n, i in flat.inputs.items()}
        u = steady_signals(system, defaults, 0.0, values.values)
        initializer = Initializer(structure)
        found = initializer.solve(0.0, u, values.values)
    except GrisailleError as error:
        return {}, f"not computed: {given}{error}"
    start = {n: v for n, v in initializer.observe(0.0, found, u, values.values).items() if n in flat.variables}
    broken = [n for n, v in start.items() if not math.isfinite(v)]
    without = f"; {', '.join(broken)} {'has' if len(broken) == 1 else 'have'} no finite value there" if broken else ""
    return start, given + describe_start(initializer, 0.0, u, values.values, found) + without


def _missing_inputs(structure: Structure) -> list[str]:
    """Return inputs without a default on which the start depends."""
    system, inputs = structure.system, structure.model.inputs
    own = [k for k, name in enumerate(system.observed_names) if name in structure.model.variables]
    formulas = ca.vertcat(system.residual, system.constraints, system.observed[own])
    without = [
        s.name for s, u in zip(system.signals, ca.vertsplit(system.u), strict=True)
        if s.kind == "input" and inputs[s.name].default is None and ca.depends_on(formulas, u)
    ]  # fmt: skip
    return list(dict.fromkeys(without))


def _lines(a: Analysis) -> list[str]:
    s, system, model = a.structure, a.structure.system, a.structure.model
    lines = [
        f"{model.name}: differential index {a.index}",
        f"  written     {_count(len(model.equations), 'equation')}, {_count(len(model.variables), 'variable')}, "
        f"{_count(len(model.parameters) - len(model.discretes), 'parameter')}, {_count(len(model.inputs), 'input')}, "
        f"{_count(len(model.disturbances), 'disturbance')}, {_count(len(model.outputs), 'output')}",
    ]
    if s.equations.aliases:
        lines.append(f"  merged      {_count(len(s.equations.aliases), 'variable')} equal to others or to a number")
    if s.repairs:
        lines.append(f"  replaced    {_count(s.repairs, 'equation')} whose derivatives cancel with those of others")
    lines.append(f"  states      {', '.join(a.states) or 'none (a static model)'}")
    lines.append(f"  freedom     {_count(a.degrees_of_freedom, 'start value')} may be chosen")
    if a.differentiated:
        lines.append("  differentiated")
        lines += [f"    {c}x  {text}" for text, c in a.differentiated.items()]
    if a.hidden_constraints:
        lines.append("  constraints kept (projected on in every step)")
        lines += [f"    0 = {text}" for text in a.hidden_constraints]
    differentiated = [f"{sig.name} ({sig.order}x)" for sig in system.signals if sig.order and sig.kind != "switch"]
    if differentiated:
        lines.append(f"  signals that are differentiated: {', '.join(differentiated)}")
    if model.whens:
        lines.append(f"  events      {_count(sum(len(w.clauses) for w in model.whens), 'condition')} of gr.when")
        lines += [f"    when {c.text}: {_actions(c)}" for w in model.whens for c in w.clauses]
        held = ", ".join(model.discretes)
        lines += [f"  discrete    {held}"] if held else []
    lines.append(f"  blocks      {_block_summary(a)}")
    lines += [f"    {_block_line(a, b)}" for b in a.blocks if len(b.unknowns) > 1 or b.kind == "implicit"]
    lines.append(f"  start       {a.start_note}")
    if a.start:
        shown = [f"{n} = {v:.6g}" for n, v in list(a.start.items())[:12]]
        lines.append(f"    {', '.join(shown)}{', …' if len(a.start) > 12 else ''}")
    return lines


def _actions(clause: FlatClause) -> str:
    return ", ".join(f"{'reinit ' if a.kind == 'reinit' else ''}{a.target}" for a in clause.actions)


def _block_summary(a: Analysis) -> str:
    kinds = [b.kind for b in a.blocks]
    parts = [f"{kinds.count(k)} {k}" for k in ("explicit", "linear", "implicit") if k in kinds]
    return ", ".join(parts) or "none"


def _block_line(a: Analysis, block: Block) -> str:
    names = [a.structure.leading_unknowns[j] for j in block.unknowns]
    torn = [a.structure.leading_unknowns[j] for j in block.torn]
    how = {"linear": "solved in formulas", "implicit": "solved by Newton in every step"}.get(block.kind, "solved")
    tearing = f", torn at {{{', '.join(torn)}}}" if len(torn) < len(names) else ""
    return f"{len(names)} x {len(names)} {block.kind} {{{', '.join(names)}}}{tearing}: {how}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
