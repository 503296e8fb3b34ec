"""Does a document have the form that its schema asks for? Every deviation, in the words of the file.

Reads the part of JSON schema that ``problem.schema.json`` uses. Of alternatives (``anyOf``) the one that fits the kind
of value is explained; ``x-give`` says in words what a value should be.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from grisaille.problem.document import Place, show_place

Deviation = tuple[Place, str]

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "number": (int, float),
    "integer": (int,),
}  # fmt: skip
_WORDS = {
    "object": "a table", "array": "a list", "string": 'a text in "quotes"', "boolean": "true or false",
    "number": "a number", "integer": "a whole number",
}  # fmt: skip


def deviations(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], place: Place = ()
) -> Iterator[Deviation]:
    """Yield places and messages; nothing for a value that conforms."""
    schema = _resolved(schema, root)
    if "oneOf" in schema:
        yield from _variant(value, schema, root, place)
    elif "anyOf" in schema:
        yield from _alternatives(value, schema, root, place)
    elif "enum" in schema:
        if value not in schema["enum"] or isinstance(value, bool) != any(isinstance(e, bool) for e in schema["enum"]):
            yield place, f"is {_shown(value)}; give {_one_of(schema['enum'])}.{_near(value, schema['enum'])}"
    elif not _is_kind(value, schema.get("type")):
        yield place, f"is {_shown(value)}; give {_wanted(schema)}."
    elif isinstance(value, dict):
        yield from _table(value, schema, root, place)
    elif isinstance(value, list):
        yield from _list(value, schema, root, place)
    elif isinstance(value, float) and math.isnan(value):
        yield place, "is nan; give a number."
    elif "minimum" in schema and value < schema["minimum"]:
        yield place, f"is {value}; it must be at least {schema['minimum']}."


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(schema)
    while "$ref" in found:
        target = root["$defs"][found.pop("$ref").rpartition("/")[2]]
        found = {**target, **found}
    return found


def _is_kind(value: Any, kinds: Any) -> bool:
    if kinds is None:
        return True
    allowed = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):
        return "boolean" in allowed
    return any(isinstance(value, _KINDS[kind]) for kind in allowed)


def _table(
    value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], place: Place
) -> Iterator[Deviation]:
    known = schema.get("properties", {})
    rest = schema.get("additionalProperties", True)
    for key in schema.get("required", ()):
        if key not in value:
            yield place, f"lacks '{key}'. {_meaning(known.get(key, {}), key, root)}"
    for key, item in value.items():
        if key in known:
            yield from deviations(item, known[key], root, (*place, key))
        elif isinstance(rest, Mapping):
            yield from deviations(item, rest, root, (*place, key))
        elif rest is False:
            yield (*place, key), _stranger(key, known, place, schema.get("x-name", "problem.toml"))


def _list(value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], place: Place) -> Iterator[Deviation]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not least <= len(value) <= most:
        many = "is empty" if not value else f"has {len(value)} {'entry' if len(value) == 1 else 'entries'}"
        yield place, f"{many}; give {_wanted(schema)}."
        return
    items = schema.get("items")
    if items is not None:
        for k, item in enumerate(value):
            for inner, message in deviations(item, items, root, (*place, k)):
                # a list of plain values is told as a whole
                plain = inner == (*place, k) and "x-give" in schema and not isinstance(item, dict)
                yield (place, f"holds {_shown(item)}; give {_wanted(schema)}.") if plain else (inner, message)


def _alternatives(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], place: Place) -> Iterator[Deviation]:
    branches = [_resolved(branch, root) for branch in schema["anyOf"]]
    found = [list(deviations(value, branch, root, place)) for branch in branches]
    if not all(found):
        return
    for branch, said in zip(branches, found, strict=True):
        if isinstance(value, dict | list) and _is_kind(value, branch.get("type", "string")):
            yield from said
            return
    words = schema.get("x-give") or " or ".join(_wanted(branch) for branch in branches)
    yield place, f"is {_shown(value)}; give {words}."


def _variant(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], place: Place) -> Iterator[Deviation]:
    """Yield one of several tables, told apart by their ``name``."""
    plain = {k: v for k, v in schema.items() if k != "oneOf"}
    said = list(deviations(value, {**plain, "additionalProperties": True}, root, place))
    if said:
        yield from (d for d in said)
        return
    for branch in (_resolved(b, root) for b in schema["oneOf"]):
        if branch["properties"]["name"].get("const") == value["name"]:
            options = {**branch["properties"], "name": {"type": "string"}}
            yield from deviations(value, {**branch, "type": "object", "properties": options}, root, place)


def _stranger(key: str, known: Mapping[str, object], place: Place, what: str) -> str:
    where = f"[{show_place(place)}]" if place else what
    near = similar(key, known)
    if near:
        return f"is not a key of {where}. Did you mean '{near}'?"
    return f"is not a key of {where}. It has: {', '.join(known) or 'none'}."


def similar(word: str, known: Iterable[str]) -> str:
    """Return the one known word that a misspelt one must mean; empty where none is near."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return close[0] if close else ""


def _meaning(schema: Mapping[str, Any], key: str, root: Mapping[str, Any]) -> str:
    found = _resolved(schema, root)
    said = found.get("description", "")
    return said or f"Give {key} = {_wanted(found)}."


def _wanted(schema: Mapping[str, Any]) -> str:
    if "x-give" in schema:
        return str(schema["x-give"])
    if "enum" in schema:
        return _one_of(schema["enum"])
    kinds = schema.get("type", "string")
    return " or ".join(_WORDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _one_of(values: Sequence[object]) -> str:
    shown = [_shown(v) for v in values]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _near(value: object, allowed: Sequence[object]) -> str:
    close = similar(value, [a for a in allowed if isinstance(a, str)]) if isinstance(value, str) else ""
    return f" Did you mean {_shown(close)}?" if close else ""


def _shown(value: Any) -> str:
    """Return a value as it stands in the file, shortened."""
    if isinstance(value, dict):
        return "a table"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except TypeError:
        text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
