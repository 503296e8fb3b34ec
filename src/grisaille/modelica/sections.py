"""Equation sections as single equations: loops unrolled, if-equations decided or turned into if-expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from grisaille.modelica import tree
from grisaille.modelica.evaluation import Evaluator, Local
from grisaille.modelica.limits import spend
from grisaille.modelica.refusals import Refusals, Refused
from grisaille.modelica.values import Unfit

MAX_EQUATIONS = 500_000


@dataclass(frozen=True, slots=True)
class Single:
    """An equation, a when-equation or a call, with the values of the loops it stands in."""

    node: tree.Node
    local: Local


Target = Callable[[Single], str]


class Sections:
    """Unrolls equations; ``is_settled`` says whether a condition is known while the text is read."""

    def __init__(self, evaluator: Evaluator, is_settled: Callable[[tree.Node], bool], refusals: Refusals) -> None:
        self.evaluator, self.is_settled, self.refusals = evaluator, is_settled, refusals
        self.scalars: Callable[[Single], list[Single]] = lambda single: [single]
        """An equation of arrays or records, scalar by scalar."""
        self._count = 0

    def unroll(self, nodes: list[tree.Node], local: Local) -> Iterator[Single]:
        """Yield every single equation of a section."""
        for node in nodes:
            self._count += 1
            if self._count > MAX_EQUATIONS:
                raise Refused(node.at, f"more than {MAX_EQUATIONS} equations result from the loops")
            try:
                yield from self._one(node, local)
            except Unfit as unfit:
                self.refusals.add(Refused(node.at, str(unfit)))
            except Refused as refused:
                self.refusals.add(refused)

    def _one(self, node: tree.Node, local: Local) -> Iterator[Single]:
        if isinstance(node, tree.For):
            yield from self._for(node, 0, local)
        elif isinstance(node, tree.If):
            yield from self._if(node, local)
        else:
            yield Single(node, local)

    def _for(self, node: tree.For, depth: int, local: Local) -> Iterator[Single]:
        if depth == len(node.iterators):
            yield from self.unroll(node.body, local)
            return
        name, over = node.iterators[depth]
        for item in self.evaluator.range(over, local):
            spend(1)
            yield from self._for(node, depth + 1, {**local, name: item})

    def _if(self, node: tree.If, local: Local) -> Iterator[Single]:
        open_branches: list[tuple[tree.Node, list[Single]]] = []
        for condition, body in node.branches:
            decided: object = None
            if condition is None:
                decided = True
            elif self.is_settled(condition):
                decided = self.evaluator.settled_truth(self.evaluator.truth(condition, local))
            if decided is False:
                continue
            if decided is True:
                rest = list(self.unroll(body, local))
                yield from self._joined(node.at, open_branches, rest) if open_branches else rest
                return
            assert condition is not None
            open_branches.append((condition, list(self.unroll(body, local))))
        yield from self._joined(node.at, open_branches, []) if open_branches else ()

    def _joined(
        self, at: int, branches: list[tuple[tree.Node, list[Single]]], otherwise: list[Single]
    ) -> Iterator[Single]:
        if len({len(body) for body in (otherwise, *(body for _, body in branches))}) > 1:
            branches = [(condition, self._apart(body)) for condition, body in branches]
            otherwise = self._apart(otherwise)
        return join_equations(at, branches, otherwise, self._target)

    def _apart(self, body: list[Single]) -> list[Single]:
        """Compare branches that give the entries of an array in different ways entry by entry."""
        return [one for s in body for one in (self.scalars(s) if isinstance(s.node, tree.Equal) else [s])]

    def _target(self, single: Single) -> str:
        """Return the variable that stands alone on the left of an equation; empty where none does."""
        node = single.node
        left = node.left if isinstance(node, tree.Equal) else None
        if not isinstance(left, tree.Reference):
            return ""
        try:
            places = [self.evaluator.whole(s, single.local, "it") for p in left.parts for s in p.subscripts]
        except (Unfit, Refused):
            return ""
        return " ".join([left.path, *map(str, places)])


def join_equations(
    at: int, branches: list[tuple[tree.Node, list[Single]]], otherwise: list[Single], target: Target
) -> Iterator[Single]:
    """Yield equations of an if whose condition is only known during a simulation, as if-expressions."""
    bodies = [body for _, body in branches] + [otherwise]
    plain = [[s for s in body if isinstance(s.node, tree.Equal)] for body in bodies]
    checks = [s for body in bodies for s in body if isinstance(s.node, tree.Do) and s.node.call.name == "assert"]
    if any(len(p) + sum(s in checks for s in body) != len(body) for p, body in zip(plain, bodies, strict=True)):
        raise Refused(at, "an if-equation whose condition is only known during a simulation may hold equations only")
    if len({len(p) for p in plain}) > 1:
        counts = ", ".join(str(len(p)) for p in plain)
        raise Refused(at, f"the branches of an if-equation have different numbers of equations ({counts})")
    conditions = [condition for condition, _ in branches]
    yield from _checks_of(conditions, bodies)
    for row in zip(*(_sorted(p, plain[0], target) for p in plain), strict=True):
        if any(s.local != row[0].local for s in row):
            raise Refused(at, "loops in branches of an if-equation run over other indices; write the equations out")
        yield Single(_combined(at, conditions, row, target), row[0].local)


def _checks_of(conditions: list[tree.Node], bodies: list[list[Single]]) -> Iterator[Single]:
    """Yield assertions of branches: each holds where its branch is not the one that is taken."""
    for k, body in enumerate(bodies):
        for single in body:
            if isinstance(single.node, tree.Do):
                call, at = single.node.call, single.node.at
                own = [tree.Unary(at, "not", conditions[k])] if k < len(conditions) else []
                elsewhere = [("or", node) for node in (*conditions[:k], *own)]
                holds = tree.Chain(at, call.arguments[0], elsewhere)
                changed = tree.Calling(call.at, call.name, [holds, *call.arguments[1:]], call.named)
                yield Single(tree.Do(at, changed), single.local)


def _sorted(body: list[Single], first: list[Single], target: Target) -> list[Single]:
    """Return the equations in the order of the first branch, where left sides are names."""
    order = {target(s): k for k, s in enumerate(first)}
    if "" in order or len(order) < len(first) or {target(s) for s in body} != set(order):
        return body
    return sorted(body, key=lambda s: order[target(s)])


def _combined(at: int, conditions: list[tree.Node], equations: Sequence[Single], target: Target) -> tree.Equal:
    pairs = [(s.node.left, s.node.right) for s in equations if isinstance(s.node, tree.Equal)]
    targets = {target(s) for s in equations}
    if len(targets) == 1 and "" not in targets:
        branches = list(zip(conditions, (right for _, right in pairs), strict=False))
        return tree.Equal(at, pairs[0][0], tree.Choice(at, branches, pairs[-1][1]))
    rests = [tree.Chain(at, left, [("-", right)]) for left, right in pairs]
    branches = list(zip(conditions, rests, strict=False))
    return tree.Equal(at, tree.Literal(at, 0.0), tree.Choice(at, branches, rests[-1]))
