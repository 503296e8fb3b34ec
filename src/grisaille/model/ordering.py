"""Names in an order in which each comes after what it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def ordered(
    names: Iterable[str], uses: Callable[[str], Iterable[str]], circle: Callable[[str, str], Exception]
) -> list[str]:
    """The names and all they use; depth is no matter.

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
