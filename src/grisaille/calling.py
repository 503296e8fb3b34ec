"""Calls with arguments that do not exist: said in our words, with the name that was meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from grisaille.errors import ArgumentError
from grisaille.model.names import suggestion

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with an ``ArgumentError`` where it is called with arguments that it does not have."""

    @functools.wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> R:
        try:
            return function(*given, **named)
        except TypeError:
            refusal = wrong_call(function, given, named)
            if refusal is None:
                raise
            raise refusal from None

    return call


def checked_methods(cls: C) -> C:
    """A class whose public methods, and the call that makes one, are ``checked``."""
    for name, member in list(vars(cls).items()):
        if inspect.isfunction(member) and (not name.startswith("_") or name == "__init__"):
            setattr(cls, name, checked(member))
    return cls


def wrong_call(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> ArgumentError | None:
    """What is wrong with the arguments of a call, if they are."""
    signature = inspect.signature(function)
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        who = function.__qualname__.removesuffix(".__init__")
        known = [n for n in signature.parameters if n != "self"]
        strange = [n for n in named if n not in known]
        if strange:
            return ArgumentError(f"{who}() has no argument '{strange[0]}'. {suggestion(strange[0], known)}")
        return ArgumentError(f"{who}(): {error}. Its arguments are {', '.join(known)}.")
    return None
