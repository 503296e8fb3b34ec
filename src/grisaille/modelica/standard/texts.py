"""What the Standard Library does with texts and with names of files.

Names of files stay as they are written: ``modelica://Library/Resources/a.txt`` is looked up where a file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grisaille.modelica.limits import check_letters
from grisaille.modelica.values import Unfit, Value


def _plain(text: Value) -> str:
    if not isinstance(text, str):
        raise Unfit("a text that is only known during a simulation is not supported")
    check_letters(len(text))
    return text


def _substring(text: str, first: int, last: int) -> str:
    if not 1 <= first <= last <= len(_plain(text)):
        raise Unfit(f"{text!r} has no letters {first} to {last}")
    return str(text[first - 1 : last])


def _is_equal(a: Value, b: Value, case_sensitive: Value = True) -> bool:
    return _plain(a) == _plain(b) if case_sensitive else _plain(a).lower() == _plain(b).lower()


def _find(text: Value, wanted: Value, start: int = 1, case_sensitive: Value = True) -> int:
    a, b = (_plain(text), _plain(wanted)) if case_sensitive else (_plain(text).lower(), _plain(wanted).lower())
    return a.find(b, max(start - 1, 0)) + 1


def _find_last(text: Value, wanted: Value, start: int = 0, case_sensitive: Value = True) -> int:
    a, b = (_plain(text), _plain(wanted)) if case_sensitive else (_plain(text).lower(), _plain(wanted).lower())
    end = len(a) if start == 0 else min(start - 1 + len(b), len(a))
    return a.rfind(b, 0, end) + 1


def _is_empty(text: Value) -> bool:
    return not _plain(text).strip()


def _after_blanks(text: Value, start: int = 1) -> int:
    rest = _plain(text)[start - 1 :]
    return int(start) + len(rest) - len(rest.lstrip())


def _compare(a: Value, b: Value, case_sensitive: Value = True) -> int:
    """Return the index in ``Modelica.Utilities.Types.Compare``: less, equal, greater."""
    a, b = (_plain(a), _plain(b)) if case_sensitive else (_plain(a).lower(), _plain(b).lower())
    return 2 + int(a > b) - int(a < b)


def _length(text: Value) -> int:
    return len(_plain(text))


EXTERNAL: dict[str, Callable[..., Any]] = {
    "ModelicaStrings_length": _length,
    "ModelicaStrings_substring": _substring,
    "ModelicaStrings_skipWhiteSpace": _after_blanks,
    "ModelicaStrings_compare": _compare,
    "ModelicaInternal_fullPathName": _plain,
    "OpenModelica_uriToFilename": _plain,
    "grisaille_find_last": _find_last,
    "grisaille_load_resource": _plain,
}
"""By the name of the external function; the last two stand in for functions that the flattener cannot take."""
_STRINGS = "Modelica.Utilities.Strings."
_SEARCH = ("string", "searchString", "startIndex", "caseSensitive")
_NAMED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    f"{_STRINGS}length": (_length, ("string",)),
    f"{_STRINGS}substring": (_substring, ("string", "startIndex", "endIndex")),
    f"{_STRINGS}isEqual": (_is_equal, ("string1", "string2", "caseSensitive")),
    f"{_STRINGS}isEmpty": (_is_empty, ("string",)),
    f"{_STRINGS}find": (_find, _SEARCH),
    f"{_STRINGS}findLast": (_find_last, _SEARCH),
    "Modelica.Utilities.Files.loadResource": (_plain, ("uri",)),
    "Modelica.Utilities.Files.fullPathName": (_plain, ("name",)),
    "ModelicaServices.ExternalReferences.loadResource": (_plain, ("uri",)),
}
_DEFAULTS = {f"{_STRINGS}find": {"startIndex": 1}, f"{_STRINGS}findLast": {"startIndex": 0}}


def is_known(name: str) -> bool:
    """Return whether a function of the library is computed here, whatever a text brings under its name."""
    return name in _NAMED


def called(name: str, arguments: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """Return the result of one of these functions."""
    function, inputs = _NAMED[name]
    given = {**_DEFAULTS.get(name, {}), **dict(zip(inputs, arguments, strict=False)), **named}
    if len(arguments) > len(inputs) or set(given) - set(inputs):
        raise Unfit(f"the function '{name}' takes {', '.join(inputs)}")
    return function(*(given[i] for i in inputs if i in given))
