"""Names of members: which are allowed, and which known ones are nearest to a misspelt one."""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from grisaille.errors import ModelError

RESERVED = frozenset(
    {
        "equations", "experiment", "fingerprint", "noise_covariance", "parameter", "parameters", "realization",
        "replace", "start", "structure_key", "time", "with_disturbance", "with_inputs", "with_outputs",
    }
)  # fmt: skip


class Labelled:
    """An object that remembers the name it was given in a class body; abstract."""

    _label: str = ""


class UnknownMember(ModelError, AttributeError):
    """A name that a model does not have; also an ``AttributeError`` so that ``hasattr`` works."""


class UnknownName(ModelError, KeyError):
    """A name that a table does not have; also a ``KeyError`` so that ``in`` and ``get`` work."""

    __str__ = Exception.__str__


class NamedTable(Mapping[str, Any]):
    """A read-only table by full name; an unknown name gets the nearest ones."""

    def __init__(self, what: str, entries: dict[str, Any]) -> None:
        self._what, self._entries = what, entries

    def __getitem__(self, name: str) -> Any:
        if name not in self._entries:
            raise UnknownName(f"{self._what} has no entry {name!r}. {suggestion(str(name), self._entries)}")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __setitem__(self, name: str, value: object) -> NoReturn:
        raise ModelError(f"{self._what} is read-only: models do not change. model.replace gives a changed copy.")

    def _ipython_key_completions_(self) -> list[str]:
        """Return what ``model.parameters["`` completes to."""
        return list(self._entries)

    def __repr__(self) -> str:
        return repr(self._entries)


def check_name(name: object, owner: str) -> str:
    """Return the name itself, when a member may carry it."""
    if not isinstance(name, str):
        raise ModelError(f"{owner}: a member's name must be a string, got {name!r} ({type(name).__name__}).")
    if name in RESERVED:
        raise ModelError(
            f"{owner}: the name '{name}' is reserved. Reserved names are {', '.join(sorted(RESERVED))}; "
            "choose another one."
        )
    if name.startswith("_"):
        raise ModelError(
            f"{owner}: '{name}' begins with an underscore; names of members must not. Drop the underscore."
        )
    if keyword.iskeyword(name):
        raise ModelError(f"{owner}: '{name}' is a keyword of Python and cannot name a member.")
    if not name.isidentifier():
        raise ModelError(
            f"{owner}: {name!r} is not an identifier: use letters, digits and underscores, and begin with a letter."
        )
    return name


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return at most three known names that resemble a name, best first."""
    candidates = list(known)
    lowered = {candidate.lower(): candidate for candidate in reversed(candidates)}
    found = difflib.get_close_matches(name, candidates, n=3, cutoff=0.4)
    found += [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.4)]
    return list(dict.fromkeys(found))[:3]


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'a', 'b' or 'c'?`` or what there is at all."""
    candidates = list(known)
    close = nearest(name, candidates)
    if close:
        quoted = [f"'{candidate}'" for candidate in close]
        return f"Did you mean {' or '.join([', '.join(quoted[:-1]), quoted[-1]] if quoted[:-1] else quoted)}?"
    if not candidates:
        return "It has no members."
    listed = ", ".join(candidates[:12]) + (", …" if len(candidates) > 12 else "")
    return f"It has: {listed}."


def matching(pattern: str, known: Iterable[str]) -> list[str]:
    """Return the known names that ``"legs[*].m"`` stands for; a name without ``*`` stands for itself."""
    if "*" not in pattern:
        return [pattern]
    expression = re.compile(r"[^.\[\]]*".join(re.escape(part) for part in pattern.split("*")))
    return [name for name in known if expression.fullmatch(name)]


def join(prefix: str, name: str) -> str:
    """Return ``"a"`` and ``"b"`` as ``"a.b"``; the empty prefix is the model itself."""
    return f"{prefix}.{name}" if prefix else name


def element_name(name: str, index: tuple[int, ...]) -> str:
    """Return ``"r[0]"`` or ``"R[0,1]"``."""
    return f"{name}[{','.join(str(i) for i in index)}]"
