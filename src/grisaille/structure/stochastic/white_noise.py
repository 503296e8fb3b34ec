"""Decides where white noise may stand in a model, and where its interpretation (Itô or Stratonovich) must be given.

White noise has infinite variance at an instant; only its integral is a process. So it may

- enter the derivatives of states linearly: ``w**2`` and ``sin(w)`` have no meaning;
- not reach a state, a constraint on states or an output directly, nor be differentiated on the way to a derivative.

Other variables may contain it (the force of a rigid connection between bodies under white forces): they have no value
at an instant and are listed, not refused.

Index reduction and ``der(formula)`` use the ordinary chain rule. Where the formula is nonlinear in quantities that
white noise drives, that is the calculus of Stratonovich, not of Itô, and the model must state which one it means.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from grisaille.errors import StructureError
from grisaille.model.expression import Call, Expression, postorder
from grisaille.model.flat import FlatModel
from grisaille.model.lowering.lowering import lower
from grisaille.structure.descriptor.differentiation_count import Reach, count_differentiations
from grisaille.structure.descriptor.variance_remedies import Arrival, advise
from grisaille.structure.descriptor.well_posedness import VarianceVerdict
from grisaille.structure.equations import Equations
from grisaille.structure.jets import JetSymbol
from grisaille.structure.reduction import Structure
from grisaille.structure.switching_pieces import relations_of


def white_names(flat: FlatModel) -> tuple[str, ...]:
    """Return the disturbances with a white spectrum, in order of declaration."""
    return tuple(n for n, d in flat.disturbances.items() if d.spectrum.is_white)


def names_of_infinite_variance(structure: Structure, white: Sequence[str]) -> tuple[str, ...]:
    """Return observed names whose formulas contain white noise or its derivatives."""
    system = structure.system
    w = _white_signals(structure, white)
    formulas = zip(system.observed_names, ca.vertsplit(system.observed), strict=True)
    return tuple(n for n, f in formulas if ca.depends_on(f, ca.vertcat(w, _wild_implicit(structure, white))))


def refuse_infinite_variance(structure: Structure, white: Sequence[str]) -> None:
    """White noise in states, constraints, implicit blocks or outputs, in the words of ``gr.well_posedness``."""
    system, flat = structure.system, structure.model
    w, rising = _white_signals(structure, white), _white_signals(structure, white, derivatives=True)
    reached = [
        s.name
        for s, rate in zip(structure.states, ca.vertsplit(system.rhs), strict=True)
        if rising.numel() and ca.depends_on(rate, rising)
    ]
    for text, formula in zip(system.constraint_texts, _rows(system.constraints), strict=True):
        if ca.depends_on(formula, w):
            reached += [m.name for m in structure.equations.jets.within(formula) if m.kind == "unknown"]
            raise StructureError(
                f"White noise stands in the constraint '{text}' on states. {_verdict(structure, white, reached[-1])}"
            )
    if reached:
        raise StructureError(f"White noise reaches a state. {_verdict(structure, white, reached[0])}")
    for text, formula in zip(system.residual_texts, _rows(system.residual), strict=True):
        if ca.depends_on(formula, w):
            raise StructureError(
                f"White noise enters '{text}', which is solved for {{{', '.join(system.implicit_names)}}} by iteration "
                f"in every step: the iteration would see an infinite value. Use gr.spectra.lowpass(bandwidth=…), or "
                f"rewrite the equations so that the derivatives follow from them explicitly."
            )
    infinite = [n for n in names_of_infinite_variance(structure, white) if n in flat.outputs]
    if infinite:
        raise StructureError(f"{flat.name} measures white noise. {_verdict(structure, white, infinite[0])}")


def refuse_nonlinear(structure: Structure, white: Sequence[str]) -> None:
    """White noise that enters a derivative other than linearly, with the equation where it does."""
    system, w = structure.system, _white_signals(structure, white)
    for rate in ca.vertsplit(system.rhs) if system.nx else []:
        curved = _curved(rate, w)
        if ca.depends_on(curved, w):
            again = [m.name for m in structure.equations.jets.within(curved) if m.name in white]
            raise StructureError(_nonlinear_text(structure, white, again[0]))


def chain_rule_equations(structure: Structure, white: Sequence[str]) -> list[str]:
    """Return texts of equations where a formula nonlinear in what white noise drives was differentiated."""
    equations, reach = structure.equations, _reach(structure)
    texts = [
        row.text
        for row, times in zip(equations.rows, structure.offsets.equations, strict=True)
        if any(_bends(equations, level, reach, white) for level in _levels(equations, row.residual, times))
    ]
    for equation in structure.model.equations:
        inner = _differentiated_formulas((equation.left, equation.right))
        if any(_bends(equations, formula, reach, white) for formula in _lowered(equations, inner)):
            texts.append(equation.text)
    if structure.repairs and not texts:
        texts.append("an equation that replaced one whose derivatives cancel")
    return list(dict.fromkeys(texts))


def interpretation_question(structure: Structure, name: str, touched: Sequence[str], blamed: Sequence[str]) -> str:
    """Return the question of interpretation that the model must answer, and what either answer means."""
    call = f'{name} = gr.Disturbance(gr.spectra.white(interpretation="stratonovich"))'
    return (
        f"The effect of the white noise {name} depends on {', '.join(touched)}, which white noise drives, and "
        f"'{blamed[0]}' was differentiated with the ordinary chain rule: {structure.model.name} must state how its "
        f"equations are read. {call} is the limit of noise of growing bandwidth, for which the chain rule holds; "
        f'interpretation="ito" takes the reduced equations x\' = f + G {name} as they stand. With '
        f"gr.spectra.lowpass(bandwidth=…) the question does not arise."
    )


def _nonlinear_text(structure: Structure, white: Sequence[str], name: str) -> str:
    for row in structure.equations.rows:
        wild = _symbols(structure.equations, row.residual, _reach(structure), white, wild=True)
        if wild.numel():
            inside = ca.symvar(_curved(row.residual, wild))
            hashes = {s.element_hash() for s in ca.vertsplit(wild)}
            guilty = [structure.equations.jets.meaning(s) for s in inside if s.element_hash() in hashes]
            if guilty and guilty[0] is not None:
                contains = "" if guilty[0].name in white else f", which contains the white noise {name},"
                kind = "White noise " if not contains else ""
                return _nonlinear_sentence(f"{kind}{guilty[0].text}{contains}", row.text, name)
    return _nonlinear_sentence(f"White noise {name}", structure.model.name, name)


def _nonlinear_sentence(subject: str, place: str, name: str) -> str:
    return (
        f"{subject} enters '{place}' nonlinearly. That has no meaning: white noise has infinite variance at every "
        f"instant. Give it a finite bandwidth, {name} = gr.Disturbance(gr.spectra.lowpass(bandwidth=…)), or let it "
        f"enter linearly."
    )


def _verdict(structure: Structure, white: Sequence[str], name: str) -> str:
    flat = structure.model
    reach = count_differentiations(structure, _excess(flat)).reach.get(name, {})
    arrivals = tuple(Arrival(w, str(flat.disturbances[w].spectrum), 0, r) for w, r in reach.items() if w in white)
    kind = "output" if name in flat.outputs else "variable"
    text = str(VarianceVerdict(name, kind, False, arrivals, advise(name, kind, arrivals)))
    return text[:1].upper() + text[1:]


def _excess(flat: FlatModel) -> dict[str, int]:
    return {n: d.spectrum.pole_excess for n, d in flat.disturbances.items()}


def _reach(structure: Structure) -> dict[str, Reach]:
    return count_differentiations(structure, _excess(structure.model)).reach


def _white_signals(structure: Structure, white: Sequence[str], derivatives: bool = False) -> ca.SX:
    system = structure.system
    chosen = [system.u[i] for i, s in enumerate(system.signals) if s.name in white and (s.order > 0 or not derivatives)]
    return ca.vertcat(*chosen) if chosen else ca.SX(0, 1)


def _wild_implicit(structure: Structure, white: Sequence[str]) -> ca.SX:
    """Return all implicit unknowns when white noise enters their equations; such models are refused anyway."""
    system = structure.system
    return system.z if system.nz and ca.depends_on(system.residual, _white_signals(structure, white)) else ca.SX(0, 1)


def _rows(column: ca.SX) -> list[ca.SX]:
    return list(ca.vertsplit(column)) if column.numel() else []


def _levels(equations: Equations, residual: ca.SX, times: int) -> list[ca.SX]:
    """Return the formulas that are differentiated: levels 0 … c − 1."""
    chain = [residual] if times else []
    while chain and len(chain) < times:
        chain.append(equations.jets.differentiate(chain[-1]))
    return chain


def _bends(equations: Equations, formula: ca.SX, reach: dict[str, Reach], white: Sequence[str]) -> bool:
    """Return whether a formula is nonlinear in quantities with Brownian paths: Itô's formula then has a second-order
    term.
    """
    driven = _symbols(equations, formula, reach, white, wild=False)
    return bool(driven.numel()) and ca.depends_on(_curved(formula, driven), driven)


def _curved(formula: ca.SX, symbols: ca.SX) -> ca.SX:
    """Return slopes of a formula and arguments of its relations: free of the symbols where it is affine in them."""
    slopes = ca.simplify(ca.vec(ca.jacobian(formula, symbols)))
    return ca.vertcat(slopes, *(r.gap for r in relations_of(formula, symbols)))


def _symbols(
    equations: Equations, formula: ca.SX, reach: dict[str, Reach], white: Sequence[str], *, wild: bool
) -> ca.SX:
    """Return symbols that contain white noise (``wild``), or its first integral."""
    found = [m for m in equations.jets.within(formula) if _height(m, reach, white) is not None]
    chosen = [m for m in found if (_height(m, reach, white) or 0) >= 0 and wild]
    chosen += [m for m in found if _height(m, reach, white) == -1 and not wild]
    return ca.vertcat(*(equations.jets.symbol(m.name, m.order) for m in chosen)) if chosen else ca.SX(0, 1)


def _height(symbol: JetSymbol, reach: dict[str, Reach], white: Sequence[str]) -> int | None:
    """Return the highest derivative of white noise inside: 0 for white noise itself, −1 for Brownian paths."""
    own = {symbol.name: 0} if symbol.name in white else reach.get(symbol.name, {})
    heights = [r + symbol.order for w, r in own.items() if w in white]
    return max(heights, default=None)


def _differentiated_formulas(roots: Sequence[Expression]) -> list[Expression]:
    nodes = postorder(roots)
    return [n.arguments[0] for n in nodes if isinstance(n, Call) and n.operation == "der"]


def _lowered(equations: Equations, formulas: Sequence[Expression]) -> list[ca.SX]:
    jets, parameters = equations.jets, equations.parameters

    def leaf(path: str) -> ca.SX:
        return jets.time if path == "time" else parameters[path] if path in parameters else jets.symbol(path)

    return lower(formulas, leaf, jets.differentiate, lambda _node, _arguments, value: value) if formulas else []
