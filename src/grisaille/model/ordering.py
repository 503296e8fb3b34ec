"""Names in an order in which each comes after what it uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence


def order_by_use(
    names: Iterable[str], uses: Callable[[str], Iterable[str]], circle: Callable[[str, str], Exception]
) -> list[str]:
    """Return the names and all they use; depth is no matter.

    uses : what a name needs before it
    circle : the error of a name that uses another which, by whatever way, uses it
    """
    done: dict[str, bool] = {}
    order: list[str] = []
    for root in names:
        stack = [(root, False)]
        while stack:
            name, finished = stack.pop()
            if finished:
                done[name] = True
                order.append(name)
            elif name not in done:
                done[name] = False
                stack.append((name, True))
                for other in uses(name):
                    if done.get(other) is False:
                        raise circle(name, other)
                    if other not in done:
                        stack.append((other, False))
    return order


def strong_components(successors: Sequence[Collection[int]]) -> list[list[int]]:
    """Return strongly connected components, each after everything it depends on (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    components: list[list[int]] = []
    for root in range(len(successors)):
        if root in index:
            continue
        work = [(root, iter(sorted(successors[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, children = work[-1]
            for child in children:
                if child not in index:
                    index[child] = low[child] = len(index)
                    stack.append(child)
                    on_stack.add(child)
                    work.append((child, iter(sorted(successors[child]))))
                    break
                if child in on_stack:
                    low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    components.append(sorted(component))
    return components
