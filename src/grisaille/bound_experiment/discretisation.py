"""The discretisation of an experiment: a value that is chosen once and then passed in.

    d = discretise(trial, θ)      answer = predict(θ, d)      d' = refined(d, what was seen)

The same θ and the same value give the same bits, whatever was computed in between and from whichever thread; a
criterion is a smooth function of θ because its discretisation stays. Each kind stands beside what it discretises,
prints itself, and is kept by saved fits as plain data. A class becomes known by being defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self, TypeAlias

from grisaille.errors import DataError

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""What a text file can hold."""
KIND = "kind"


@dataclass(frozen=True)
class Discretisation:
    """Of one trial; equal values do the same."""

    known: ClassVar[dict[str, type[Discretisation]]] = {}
    """Every kind that has been defined, by the name under which files have it."""
    saved_as: ClassVar[str] = ""

    def __init_subclass__(cls, saved_as: str = "") -> None:
        """Register a kind; ``saved_as`` is its name in files, where that is not the name of the class."""
        super().__init_subclass__()
        cls.saved_as = saved_as or cls.__name__
        Discretisation.known[cls.saved_as] = cls

    def refined(self, excess: float) -> Self:
        """Return a finer one, where the error estimate was so many tolerances; itself where there is nothing to
        refine.
        """
        return self

    @property
    def data(self) -> dict[str, Plain]:
        """Return its content, from which ``of`` makes an equal one."""
        return {KIND: self.saved_as, **{f.name: _plain(getattr(self, f.name)) for f in fields(self)}}

    @staticmethod
    def of(data: Mapping[str, Plain]) -> Discretisation | None:
        """Return the discretisation with a content that this version or an older one wrote; None where there was
        none.
        """
        if KIND in data:
            name = str(data[KIND])
            if name not in Discretisation.known:
                raise DataError(f"{name} is no discretisation that is known here: {', '.join(Discretisation.known)}.")
            return Discretisation.known[name]._read({k: v for k, v in data.items() if k != KIND})
        for kind in Discretisation.known.values():
            found = kind._read_older(data)
            if found is not None:
                return found
        return None

    @classmethod
    def _read(cls, content: Mapping[str, Plain]) -> Self:
        return cls(**{name: _frozen(value) for name, value in content.items()})

    @classmethod
    def _read_older(cls, data: Mapping[str, Plain]) -> Self | None:
        """Read the content of a file without kinds, if it is of this one."""
        return None


def _plain(value: object) -> Plain:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    raise TypeError(f"{value!r} is not plain data")


def _frozen(value: Plain) -> Plain | tuple[object, ...]:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
