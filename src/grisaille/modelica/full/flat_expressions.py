"""Expressions of a model that ``rumoca`` has flattened, as Base Modelica writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from grisaille.errors import ModelError
from grisaille.modelica.full.derivatives import NAME as DERIVATIVE
from grisaille.modelica.full.remedies.remedies import ORDINAL, SAMPLE, TIME

Tree = Mapping[str, Any]

_OPERATORS = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Exp": "^", "AddElem": ".+", "SubElem": ".-", "MulElem": ".*",
    "DivElem": "./", "ExpElem": ".^", "Eq": "==", "Neq": "<>", "Lt": "<", "Le": "<=", "Gt": ">", "Ge": ">=",
    "And": "and", "Or": "or", "Minus": "-", "Plus": "+", "Not": "not", "DotMinus": "-", "DotPlus": "+",
}  # fmt: skip
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


STANDING_IN = {DERIVATIVE: "der", SAMPLE: "sample", TIME: "time", ORDINAL: "Integer"}
"""Functions that stand for built-in ones while a text is flattened."""


class Unwritable(ModelError):
    """Something in the flattener's tree that has no form in Base Modelica, or is not known here."""


NO_STREAM = "1e-30"
"""The weight of a stream that cannot come from a connector, beside those of at least 1e-7."""


class Expressions:
    """Writes expressions; every operation stands in parentheses."""

    def __init__(self, flat: Tree, files: Mapping[int, str] | None = None) -> None:
        self.flat = flat
        self._bytes = {number: text.encode() for number, text in (files or {}).items()}
        self.enumerations = _enumerations(flat.get("enum_literal_ordinals") or {})
        self.enumerated = {f"{kind}.{literal}" for kind, found in self.enumerations.items() for literal in found}
        """Names of literals in full."""
        self.inside: str | None = None
        """The function that is being written; names there are local."""

    def text(self, node: object) -> str:
        """Return an expression; every operation in parentheses."""
        kind, inner = node_of(node)
        if kind not in _WRITERS:
            raise Unwritable(f"the expression '{kind}' is not supported")
        return _WRITERS[kind](self, inner)

    def _literal(self, inner: Tree) -> str:
        kind, value = node_of(inner["value"])
        if kind == "Boolean":
            return "true" if value else "false"
        if kind == "String":
            return string(value)
        if kind == "Real":
            return repr(float(value))
        return str(int(value))

    def _binary(self, inner: Tree) -> str:
        written: list[str] = []
        while True:  # a + b - c, however long, as one sum
            operator = _OPERATORS.get(str(inner["op"]))
            if operator is None:
                raise Unwritable(f"the operator '{inner['op']}' is not supported")
            written.append(f" {operator} {self.text(inner['rhs'])}")
            kind, left = node_of(inner["lhs"])
            if operator not in "+-" or kind != "Binary" or _OPERATORS.get(str(left["op"]), "*") not in "+-":
                return f"({self.text(inner['lhs'])}{''.join(reversed(written))})"
            inner = left

    def _unary(self, inner: Tree) -> str:
        operator = _OPERATORS.get(str(inner["op"]))
        if operator is None:
            raise Unwritable(f"the operator '{inner['op']}' is not supported")
        return f"({operator} {self.text(inner['rhs'])})"

    def _varref(self, inner: Tree) -> str:
        name = inner["name"]
        subscripts = self._subscripts(inner["subscripts"])
        full = name["name"]
        if full in self.enumerated:
            kind, _, literal = full.rpartition(".")
            return f"{quoted(kind)}.{quoted(literal)}"
        if self.inside is not None and name["component_ref"] is not None:
            return self._reference(name["component_ref"]) + subscripts
        if not subscripts and (moved := self._of_every(inner)):
            return moved
        return "time" if full == "time" else quoted(full) + subscripts

    def _of_every(self, inner: Tree) -> str:
        """Return ``p.x[2]`` of an array p in a declaration, which the compiler takes for ``p[2].x``: ``{p[1].x[2],
        …}``.
        """
        lost = self._lost(inner)
        if lost is None:
            return ""
        parts = inner["name"]["component_ref"]["parts"]
        head = self._reference({"parts": [*parts[:lost], {**parts[lost], "subs": []}]})[1:-1]
        rest = "".join(f".{part['ident']}" for part in parts[lost + 1 :])
        entries = re.compile(rf"{re.escape(head)}\[(\d+)\]{re.escape(rest)}")
        found = sorted((int(m[1]), name) for name in self.flat["variables"] if (m := entries.fullmatch(name)))
        if not found:
            raise Unwritable(f"'{head}{rest}' with subscripts, of an array of components, is not supported")
        subscripts = self._subscripts(parts[lost]["subs"])
        return f"{{{', '.join(quoted(name) + subscripts for _, name in found)}}}"

    def _lost(self, inner: Tree) -> int | None:
        """Return the part of a reference that has subscripts although the text has them behind the last part, which has
        none.

        Of all entries that a reference means, which the compiler writes one after the other, each has its own.
        """
        span, reference = inner.get("span") or {}, inner["name"]["component_ref"]
        text = self._bytes.get(span.get("source", -1), b"")
        written = text[span.get("start", 0) : span.get("end", 0)].decode(errors="replace")
        if reference is None or "[" in written or not text[span.get("end", 0) :].lstrip().startswith(b"["):
            return None
        parts = reference["parts"]
        first = len(parts) - len(written.split("."))
        lost = [k for k, part in enumerate(parts) if part["subs"] and k >= first]
        if len(lost) > 1:
            raise Unwritable(f"'{written}' with subscripts, where several parts are arrays, is not supported")
        return lost[0] if lost else None

    def _entries(self, node: Any) -> list[str] | None:
        """Return ``p[1].x``, ``p[2].x``, … that the compiler writes for ``p.x``, where subscripts follow in the
        text.
        """
        kind, inner = node_of(node)
        if kind != "Array" or not inner["elements"]:
            return None
        found = [node_of(element) for element in inner["elements"]]
        spans = [one.get("span") for kind, one in found if kind == "VarRef" and not one["subscripts"]]
        same = len(spans) == len(found) and all(span == spans[0] for span in spans)
        if not same or self._lost(found[0][1]) is None:
            return None
        return [quoted(one["name"]["name"]) for _, one in found]

    def _reference(self, reference: Tree) -> str:
        """Return ``a.b[2].c`` inside a function, one name outside."""
        parts = reference["parts"]
        if self.inside is not None:
            return ".".join(quoted(part["ident"]) + self._subscripts(part["subs"]) for part in parts)
        name = ".".join(part["ident"] + self._subscripts(part["subs"]) for part in parts[:-1])
        name = f"{name}.{parts[-1]['ident']}" if name else parts[-1]["ident"]
        return quoted(name) + self._subscripts(parts[-1]["subs"])

    def _subscripts(self, subscripts: list[Any]) -> str:
        return f"[{', '.join(map(self._subscript, subscripts))}]" if subscripts else ""

    def _subscript(self, subscript: Any) -> str:
        kind, inner = node_of(subscript)
        if kind == "Index":
            return str(inner["value"])
        if kind in ("Colon", "Range") and "start" not in inner:
            return ":"
        return self.text(inner["expr"]) if kind in ("Expr", "Expression") else self.text(subscript)

    def _builtincall(self, inner: Tree) -> str:
        name = inner["function"]
        if name == "Size" and self.inside is None and len(inner["args"]) == 2:
            size = self._size(*inner["args"])
            if size is not None:
                return str(size)
        written = f"{name[0].lower()}{name[1:]}({', '.join(map(self.text, inner['args']))})"
        least = self._least_flow(inner) if name == "Max" else None
        return written if least is None else f"(if {least} >= 0 then {NO_STREAM} else {written})"

    def _least_flow(self, inner: Tree) -> str | None:
        """Return the lower bound of the flow m in a weight of ``inStream``, max(−m, 1e-7): from 0 on nothing comes from
        there.

        The compiler writes these weights itself, with names without places, and leaves the bound out of account.
        """
        kind, flow = node_of(inner["args"][0])
        if kind != "Unary" or flow["op"] != "Minus" or node_of(inner["args"][-1])[0] != "Literal":
            return None
        kind, reference = node_of(flow["rhs"])
        if kind != "VarRef" or reference["name"].get("component_ref", True) is not None:
            return None
        variable = self.flat["variables"].get(reference["name"]["name"])
        return None if variable is None or variable["min"] is None else self.text(variable["min"])

    def _size(self, array: Any, which: Any) -> int | None:
        """Return ``size(a, 1)`` of a declared array, which a parameter may ask for although the array is a variable."""
        (kind, inner), (_, index) = node_of(array), node_of(which)
        if kind != "VarRef" or inner["subscripts"] or "value" not in index:
            return None
        variable = self.flat["variables"].get(inner["name"]["name"])
        k = next(iter(index["value"].values()))
        return variable["dims"][k - 1] if variable is not None and 1 <= k <= len(variable["dims"]) else None

    def _stringconversion(self, inner: Tree) -> str:
        return f"String({self.text(inner['value'])})"

    def _functioncall(self, inner: Tree) -> str:
        name = inner["name"]["name"]
        if name == TIME:
            return STANDING_IN[TIME]
        if name == ORDINAL:
            inner = {**inner, "args": [inner["args"][0]["Binary"]["lhs"]]}
        arguments = [self._argument(a) for a in inner["args"]]
        return f"{self._called(name)}({', '.join(arguments)})"

    def _argument(self, node: Any) -> str:
        kind, inner = node_of(node)
        if kind == "FunctionCall" and inner["name"]["name"].startswith("__rumoca_named_arg__."):
            return f"{quoted(inner['name']['name'].partition('.')[2])} = {self.text(inner['args'][0])}"
        return self.text(node)

    def _called(self, name: str) -> str:
        if name in STANDING_IN:
            return STANDING_IN[name]
        return quoted(name) if name in self.flat["functions"] or "." in name else name

    def _if(self, inner: Tree) -> str:
        words = [
            f"{'elseif' if k else 'if'} {self.text(condition)} then {self.text(value)}"
            for k, (condition, value) in enumerate(inner["branches"])
        ]
        return f"({' '.join(words)} else {self.text(inner['else_branch'])})"

    def _array(self, inner: Tree) -> str:
        elements = inner["elements"]
        every = self._entries({"Array": inner})
        if every is not None:
            return f"{{{', '.join(every)}}}"
        if inner["kind"] == "Array":
            return f"{{{', '.join(map(self.text, elements))}}}"
        if inner["kind"] in ("Horizontal", "Vertical"):
            rows = [self._row(element) for element in elements]
            is_matrix = inner["kind"] == "Vertical" or all(row is not None for row in rows)
            written = [row or self.text(element) for row, element in zip(rows, elements, strict=True)]
            return f"[{'; '.join(written)}]" if is_matrix else f"[{', '.join(map(self.text, elements))}]"
        raise Unwritable(f"an array of the kind '{inner['kind']}' is not supported")

    def _row(self, element: Any) -> str | None:
        """Return ``a, b`` of a row in brackets."""
        kind, inner = node_of(element)
        is_row = kind == "Array" and inner["kind"] == "Horizontal"
        return ", ".join(map(self.text, inner["elements"])) if is_row else None

    def _arraycomprehension(self, inner: Tree) -> str:
        if inner["filter"] is not None:
            raise Unwritable("a filter in a comprehension is not supported")
        loops = ", ".join(f"{quoted(i['name'])} in {self.text(i['range'])}" for i in inner["indices"])
        return f"{{{self.text(inner['expr'])} for {loops}}}"

    def _range(self, inner: Tree) -> str:
        parts = [inner["start"], inner["step"], inner["end"]]
        return f"({':'.join(self.text(p) for p in parts if p is not None)})"

    def _index(self, inner: Tree) -> str:
        subscripts = self._subscripts(inner["subscripts"])
        every = self._entries(inner["base"])
        if every is not None:
            return f"{{{', '.join(name + subscripts for name in every)}}}"
        return f"{self._grouped(inner['base'])}{subscripts}"

    def _fieldaccess(self, inner: Tree) -> str:
        return f"{self._grouped(inner['base'])}.{quoted(inner['field'])}"

    def _grouped(self, base: Any) -> str:
        text = self.text(base)
        return text if node_of(base)[0] in ("VarRef", "FunctionCall", "Index", "FieldAccess") else f"({text})"

    def _tuple(self, inner: Tree) -> str:
        return f"({', '.join(map(self.text, inner['elements']))})"


_WRITERS: dict[str, Callable[[Expressions, Tree], str]] = {
    "Literal": Expressions._literal, "Binary": Expressions._binary, "Unary": Expressions._unary,
    "VarRef": Expressions._varref, "BuiltinCall": Expressions._builtincall, "If": Expressions._if,
    "FunctionCall": Expressions._functioncall, "StringConversion": Expressions._stringconversion,
    "Array": Expressions._array, "ArrayComprehension": Expressions._arraycomprehension, "Range": Expressions._range,
    "Index": Expressions._index, "FieldAccess": Expressions._fieldaccess, "Tuple": Expressions._tuple,
}  # fmt: skip


def quoted(name: str) -> str:
    """Return a name between quotes, which may hold dots and brackets."""
    plain = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{plain}'"


def node_of(node: Any) -> tuple[str, Any]:
    if isinstance(node, str):
        return node, {}
    if not isinstance(node, Mapping) or len(node) != 1:
        said = "/".join(map(str, list(node)[:4])) if isinstance(node, Mapping) else repr(node)[:80]
        raise Unwritable(f"the flattener's tree holds something unknown, '{said}'")
    ((kind, inner),) = node.items()
    return kind, inner


def string(text: str) -> str:
    return '"' + re.sub(r'[\\"\n\t\r]', lambda m: _ESCAPES[m[0]], text) + '"'


def _enumerations(ordinals: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Return literals of each enumeration by its full name, in order; not of those whose literals need their quotes."""
    found: dict[str, dict[int, str]] = {}
    for full, ordinal in sorted(ordinals.items()):  # each is told with and without quotes, the quoted one first
        kind, _, literal = full.rpartition(".")
        if kind and kind not in ("StateSelect", "AssertionLevel"):
            found.setdefault(kind, {})[ordinal] = literal
    plain = {kind: own for kind, own in found.items() if not any("'" in literal for literal in own.values())}
    return {kind: tuple(literals[k] for k in sorted(literals)) for kind, literals in plain.items()}
