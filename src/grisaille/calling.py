"""Calls with arguments that do not exist, or are of the wrong kind: said in our words, with what was meant.

The check of a call costs a few microseconds an argument. While a call runs, Ctrl-C is not lost
(``interrupts.py``). Both stand at the surface only: functions inside trust each other.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from grisaille.arguments import annotations_of, kinds_of, refuse_wrong
from grisaille.errors import ArgumentError
from grisaille.interrupts import interruptible
from grisaille.model.names import suggestion

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function, with an ``ArgumentError`` where it is called with arguments that it does not have or
    take.
    """
    who = function.__qualname__.removesuffix(".__init__")
    annotations = annotations_of(function)
    names, kinds = list(annotations), kinds_of(who, annotations)

    known = frozenset(names)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())

    @functools.wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> R:
        if kinds and (takes_any or known.issuperset(named)):
            refuse_wrong(who, kinds, dict(zip(names, given, strict=False)))
            refuse_wrong(who, kinds, named)
        try:
            with interruptible():
                return function(*given, **named)
        except TypeError:
            refusal = wrong_call(function, given, named)
            if refusal is None:
                raise
            raise refusal from None

    return call


def checked_methods(cls: C) -> C:
    """Return a class whose public methods, and the call that makes one, are ``checked``."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if inspect.isfunction(member):
            setattr(cls, name, checked(member))
        elif isinstance(member, classmethod):
            setattr(cls, name, classmethod(checked(member.__func__)))
    return cls


def wrong_call(
    function: Callable[..., object], given: Sequence[object], named: Mapping[str, object]
) -> ArgumentError | None:
    """Return what is wrong with the arguments of a call, if they are."""
    signature = inspect.signature(function)
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        who = function.__qualname__.removesuffix(".__init__")
        known = [n for n in signature.parameters if n not in ("self", "cls")]
        strange = [n for n in named if n not in known]
        if strange:
            return ArgumentError(f"{who}() has no argument '{strange[0]}'. {suggestion(strange[0], known)}")
        return ArgumentError(f"{who}(): {error}. Its arguments are {', '.join(known)}.")
    return None
