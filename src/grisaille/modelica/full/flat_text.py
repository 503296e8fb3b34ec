"""Base Modelica text of a model that ``rumoca`` has flattened.

Its tree of the flat model holds everything that a text needs: declarations with values and attributes, equations,
functions, records, enumerations. Each line remembers where it comes from, so that a refusal names the user's line or
the component of a library, and not a line that nobody has seen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from grisaille.modelica.full.confidence import WrittenPlaces, references_in, span_of
from grisaille.modelica.full.flat_expressions import STANDING_IN, Expressions, Tree, Unwritable, node_of, quoted, string
from grisaille.modelica.full.remedies.remedies_of_types import PERHAPS, absent_members
from grisaille.modelica.full.statements_as_assertions import (
    EQUAL,
    INSIDE,
    SEE,
    SET,
    after_begin,
    apart,
    condition_of,
    head_of,
    is_of_section,
    is_seen_at,
    sides_of,
    word_of,
)

_SIMPLE = ("Real", "Integer", "Boolean", "String")
_SETTLED = ("Parameter", "Constant")
_LEVELS = {"1": "AssertionLevel.warning", "2": "AssertionLevel.error"}
_ENTRY = re.compile(r"(.+)\[([\d, ]+)\]")


@dataclass(frozen=True)
class TextOrigin:
    """Where a line comes from: offset in a file (known by a number), and the component it belongs to."""

    file: int | None = None
    start: int = 0
    component: str = ""


@dataclass
class FlatText:
    """Lines of Base Modelica, and the origin of each."""

    lines: list[str] = field(default_factory=list)
    origins: list[TextOrigin] = field(default_factory=list)

    def add(self, line: str, origin: TextOrigin | None = None) -> None:
        """One line, and where it comes from."""
        self.lines.append(line)
        self.origins.append(origin or TextOrigin())

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def flat_text(flat: Tree, name: str, files: Mapping[int, str] | None = None) -> FlatText:
    """Return the flat model as a package of Base Modelica.

    files : texts in which start values were written, by the flattener's numbers: they say how confident a start is
    """
    writer = _Writer(flat, name, files or {})
    try:
        return writer.write()
    except (Unwritable, LookupError, TypeError, AttributeError, ValueError) as error:
        raise UnknownNode(error, writer.here) from error


class UnknownNode(Exception):
    """What has no form in Base Modelica, and where it stands."""

    def __init__(self, error: Exception, origin: TextOrigin) -> None:
        super().__init__(str(error))
        self.error, self.origin = error, origin


class _Writer(Expressions):
    def __init__(self, flat: Tree, name: str, files: Mapping[int, str]) -> None:
        super().__init__(flat, files)
        self.name = name
        self.places = WrittenPlaces(files)
        self.out = FlatText()
        self._begun_range: list[str] = []
        """The beginning of a loop whose end follows."""
        self._absent: set[str] = set()
        """Members of expandable connectors that are not there."""
        self.here = TextOrigin()
        """Where stands what is being written."""

    def write(self) -> FlatText:
        flat = self.flat
        self.out.add(f"package {quoted(self.name)}")
        self._types()
        for name, function in flat["functions"].items():
            if name not in STANDING_IN:
                self._function(name, function)
        self.out.add(f"  model {quoted(self.name)} {_words(flat.get('model_description'))}")
        self._absent = absent_members(flat)
        for name, variable in flat["variables"].items():
            if name in self._absent:
                continue
            self.here = _origin(variable.get("source_span"), name)
            self.out.add(f"    {self._declaration(name, variable)};", self.here)
        self._sections()
        self.out.add(f"  end {quoted(self.name)};")
        self.out.add(f"end {quoted(self.name)};")
        return self.out

    # --- classes ---

    def _types(self) -> None:
        for kind, literals in self.enumerations.items():
            self.out.add(f"  type {quoted(kind)} = enumeration({', '.join(map(quoted, literals))});")

    def _function(self, name: str, function: Tree) -> None:
        self.inside = name
        origin = self.here = _origin(function.get("span"), name)
        if _makes_object(name, function):
            self.out.add(f"  class {quoted(name)}", origin)
            self.out.add("    extends ExternalObject;", origin)
            self._body("constructor", {**function, "outputs": [{**function["outputs"][0], "type_name": name}]}, origin)
            self.out.add(f"  end {quoted(name)};", origin)
        elif function["is_constructor"]:
            self.out.add(f"  record {quoted(name)}", origin)
            for part in function["inputs"]:
                self.out.add(f"    {self._local(part, '')};", origin)
            self.out.add(f"  end {quoted(name)};", origin)
        else:
            self._body(name, function, origin)
        self.inside = None

    def _body(self, name: str, function: Tree, origin: TextOrigin) -> None:
        self.out.add(f"  function {quoted(name)}", origin)
        for prefix, key in (("input ", "inputs"), ("output ", "outputs"), ("protected ", "locals")):
            for part in function[key]:
                self.out.add(f"    {self._local(part, prefix)};", origin)
        if function["external"] is not None:
            self._external(function["external"], origin)
        else:
            self.out.add("  algorithm", origin)
            for statement in after_begin(function["body"]):
                self._statement(statement, "    ", origin)
        self.out.add(f"  end {quoted(name)};", origin)

    def _local(self, part: Tree, prefix: str) -> str:
        kind = self._type(part["type_name"])
        written = [self._subscript(size) for size in part["shape_expr"]]
        known = part["effective_type"]["dimensions"]  # those of the type's own declaration come last
        every = [*written, *map(str, known[len(written) :])]
        sizes = f"[{', '.join(every)}]" if every else ""
        value = "" if part["default"] is None else f" = {self.text(part['default'])}"
        return f"{prefix.replace('protected ', '')}{kind} {quoted(part['name'])}{sizes}{value}"

    def _external(self, external: Tree, origin: TextOrigin) -> None:
        language = external.get("language") or "C"
        function = external.get("function_name") or ""
        result = external.get("output_name")
        arguments = [self.text(node) for node in external.get("args") or []]
        given = f"{quoted(result)} = " if result else ""
        self.out.add(f'    external "{language}" {given}{function}({", ".join(arguments)});', origin)

    def _type(self, name: str) -> str:
        if name in _SIMPLE:
            return name
        if name in self.enumerations or name in self.flat["functions"]:
            return quoted(name)
        found = [kind for kind in self.enumerations if kind.endswith(f".{name}")]
        if not found:
            records = [kind for kind, function in self.flat["functions"].items() if function["is_constructor"]]
            found = [kind for kind in records if kind.endswith(f".{name}")]
        if not found:
            raise Unwritable(f"the type '{name}' is not known")
        if len({self.enumerations.get(kind, (kind,)) for kind in found}) > 1:
            raise Unwritable(f"the type '{name}' may be {' or '.join(found)}")
        return quoted(found[0])

    # --- declarations ---

    def _declaration(self, name: str, variable: Tree) -> str:
        kind = self._type(self.flat["variable_type_names"][name])
        prefixes = []
        variability = _tag(variable["variability"])
        if variability in (*_SETTLED, "Discrete"):
            prefixes.append(variability.lower())
        causality = _tag(variable["causality"])
        is_bound_input = causality == "Input" and variable["binding"] is not None
        if causality in ("Input", "Output") and not _is_inner(name) and not is_bound_input:
            prefixes.append(causality.lower())
        sizes = f"[{', '.join(map(str, variable['dims']))}]" if variable["dims"] else ""
        attributes = self._attributes(variable, variability)
        shown = f"({', '.join(attributes)})" if attributes else ""
        value = "" if variable["binding"] is None else f" = {self.text(variable['binding'])}"
        words = [_words(variable["description"]), self._confidence(name, variable, variability)]
        return " ".join([*prefixes, f"{kind} {quoted(name)}{sizes}{shown}{value}", *filter(None, words)])

    def _confidence(self, name: str, variable: Tree, variability: str) -> str:
        """On which level a start was written, and on which the most confident parameter in it got its value."""
        if variability in _SETTLED or variable["start"] is None or _is_made_up(variable):
            return ""
        level = self.places.start_level(name, variable["start"])
        if level is None:
            return ""
        parameters = [(p, self.flat["variables"].get(p)) for p in references_in(variable["start"])]
        known = [self.places.binding_level(p, v["binding"]) for p, v in parameters if v is not None and v["binding"]]
        of_values = [number for number in known if number is not None]
        more = f", ofValue = {min(of_values)}" if of_values else ""
        return f"annotation(__Grisaille(confidence(ofStart = {level}{more})))"

    def _attributes(self, variable: Tree, variability: str) -> list[str]:
        found = []
        for key in ("start", "fixed", "min", "max", "nominal"):
            value = variable[key]
            if value is not None and not (key == "start" and self._is_void(variable, variability)):
                found.append(f"{key} = {_truths(value, variable['dims']) if key == 'fixed' else self.text(value)}")
        if variable["unit"]:
            found.append(f"unit = {string(variable['unit'])}")
        if variable["state_select"] != "Default":
            found.append(f"stateSelect = StateSelect.{str(variable['state_select']).lower()}")
        return found

    @staticmethod
    def _is_void(variable: Tree, variability: str) -> bool:
        """Return whether a start says nothing: it stands beside a value, or nobody has written it."""
        return bool(variable["binding"]) if variability in _SETTLED else _is_made_up(variable)

    # --- sections ---

    def _sections(self) -> None:
        flat, out = self.flat, self.out
        for key, title in (("initial_", "initial equation"), ("", "equation")):
            equations, (asserts, told) = flat[f"{key}equations"], apart(flat.get(f"{key}assert_equations") or [])
            chains = [] if key else [chain for chain in flat["when_chains"] if not is_of_section(chain)]
            if equations or asserts or chains:
                out.add(f"  {title}")
            loops = {loop["first_equation_index"]: loop for loop in flat.get(f"{key}structured_equations") or []
                     if not loop.get("interiors_materialized", True)}  # fmt: skip
            k = 0
            while k < len(equations):
                if k in loops:
                    k += self._loop(loops[k], equations[k:])
                else:
                    if self._absent.isdisjoint(references_in(equations[k]["residual"]) if self._absent else ()):
                        self._equation(equations[k])
                    k += 1
            for entry in asserts:
                self._assert(entry, "    ", _origin(entry.get("span"), ""))
            for chain in chains:
                self._when_chain(chain)
            inside = iter([] if key else [chain for chain in flat["when_chains"] if is_of_section(chain)])
            for statements in told:
                out.add("  algorithm")
                for entry in statements:
                    self._told(entry, inside)
            for section in flat[f"{key}algorithms"]:
                out.add(f"  {title.replace('equation', 'algorithm')}")
                for statement in section["statements"]:
                    self._statement(statement, "    ", _origin(section.get("span"), ""))

    def _loop(self, loop: Tree, entries: list[Tree]) -> int:
        """Return equations of which only the outermost are written out, as a loop; how many they are."""
        origin = self.here = _origin(entries[0].get("span"), _component(entries[0].get("origin")))
        indices, body = loop["domain"]["binders"], loop["template"]["body"]
        ranges = [range(i["lower"], i["upper"] + (1 if i["step"] > 0 else -1), i["step"]) for i in indices]
        count = len(body) * math.prod(map(len, ranges))
        names = [index["display_name"] for index in indices]
        covered = entries[:count]
        if (
            len(covered) < count
            or any(entry.get("scalar_count", 1) != 1 for entry in covered)
            or len(body) != loop["equations_per_point"]
        ):
            raise Unwritable("loops of equations were left as loops")
        for name, one in zip(names, ranges, strict=True):
            self.out.add(f"    for {quoted(name)} in {one.start}:{one.step}:{one[-1]} loop", origin)
        for residual in body:
            self._equation({**entries[0], "residual": residual})
        for _ in names:
            self.out.add("    end for;", origin)
        return count

    def _equation(self, entry: Tree) -> None:
        residual, many = entry["residual"], entry.get("scalar_count", 1)
        origin = self.here = _origin(entry.get("span"), _component(entry.get("origin")))
        kind, inner = node_of(residual)
        if kind == "Binary" and inner["op"] == "Sub":
            left, right = inner["lhs"], inner["rhs"]
        else:
            left, right = {"Literal": {"value": {"Integer": 0}}}, residual
        sides = [self._side(left, right, many), self._side(right, left, many)]
        self.out.add(f"    {sides[0]} = {sides[1]};", origin)

    def _side(self, side: Tree, other: Tree, many: int) -> str:
        """Return a side of an equation; the zero of a sum of vectors has their shape."""
        if many > 1 and _is_zero(side):
            shape = next((s for s in self._shapes(other) if s), None)
            if shape:
                return f"zeros({', '.join(map(str, shape))})"
        return self.text(side)

    def _shapes(self, node: Any) -> Iterator[list[int]]:
        """Yield shapes of the arrays below a node, from the left."""
        stack = [node]
        while stack:
            top = stack.pop()
            if isinstance(top, list):
                stack.extend(reversed(top))
            elif isinstance(top, Mapping):
                if "VarRef" in top:
                    variable = self.flat["variables"].get(top["VarRef"]["name"]["name"])
                    if variable is not None and not top["VarRef"]["subscripts"]:
                        yield list(variable["dims"])
                else:
                    stack.extend(reversed([v for k, v in top.items() if k != "span"]))

    def _assert(self, entry: Tree, indent: str, origin: TextOrigin) -> None:
        self.here = origin
        parts = [self.text(entry["condition"]), self.text(entry["message"])]
        if entry.get("level") is not None:
            level = self.text(entry["level"])
            parts.append(_LEVELS.get(level, level))
        self.out.add(f"{indent}assert({', '.join(parts)});", origin)

    def _told(self, entry: Tree, chains: Iterator[Tree]) -> None:
        """A statement that the flattener knew as an assertion."""
        word, origin = word_of(entry), _origin(entry.get("span"), "")
        if word == SEE:
            chain = next(chains, None)
            if chain is None or not is_seen_at(entry, chain):
                raise Unwritable("a 'when' of an algorithm is not where it stood")
            self._when_chain(chain)
        elif word in (SET, EQUAL):
            left, right = sides_of(entry)
            self.here = origin
            self.out.add(f"    {self.text(left)} {':=' if word == SET else '='} {self.text(right)};", origin)
        elif not word:
            self._assert(entry, "    ", origin)
        elif word in ("from", "by"):
            self._begun_range.append(self.text(sides_of(entry)[1]))
        elif word == "to":
            index, last = map(self.text, sides_of(entry))
            self.out.add(f"    for {index} in {':'.join([*self._begun_range, last])} loop", origin)
            self._begun_range = []
        elif word != INSIDE:
            self.here = origin
            self.out.add(f"    {head_of(word, self.text(condition_of(entry)[0]))}", origin)

    def _when_chain(self, chain: Tree) -> None:
        word = "when"
        for branch in (chain["first"], *chain["else_when"]):
            origin = self.here = _origin(branch.get("span"), "")
            self.out.add(f"    {word} {self.text(branch['condition'])} then", origin)
            for equation in branch["equations"]:
                self._when_equation(equation, "      ", origin)
            word = "elsewhen"
        self.out.add("    end when;")

    def _when_equation(self, equation: Tree, indent: str, origin: TextOrigin) -> None:
        kind, inner = node_of(equation)
        origin = self.here = _origin(inner.get("span"), origin.component)
        if kind == "Assign":
            self.out.add(f"{indent}{self._target(inner['target'])} = {self.text(inner['value'])};", origin)
        elif kind == "Reinit":
            self.out.add(f"{indent}reinit({self._target(inner['state'])}, {self.text(inner['value'])});", origin)
        elif kind == "Assert":
            self._told(inner, iter(()))
        elif kind == "Terminate":
            self.out.add(f"{indent}terminate({self.text(inner['message'])});", origin)
        elif kind == "Conditional":
            branches = [*inner["branches"], *([(None, inner["else_branch"])] if inner["else_branch"] else [])]
            for k, (condition, body) in enumerate(branches):
                head = "else" if condition is None else f"{'elseif' if k else 'if'} {self.text(condition)} then"
                self.out.add(f"{indent}{head}", origin)
                for inner_equation in body:
                    self._when_equation(inner_equation, indent + "  ", origin)
            self.out.add(f"{indent}end if;", origin)
        else:
            raise Unwritable(f"'{kind}' inside 'when' is not supported")

    def _target(self, target: Any) -> str:
        """Return a variable that is named by a text, an entry of an array perhaps; or a reference."""
        if not isinstance(target, str):
            return self._reference(target) if "parts" in target else self.text(target)
        entry = _ENTRY.fullmatch(target)
        if target not in self.flat["variables"] and entry and entry[1] in self.flat["variables"]:
            return f"{quoted(entry[1])}[{entry[2]}]"
        return quoted(target)

    # --- statements ---

    def _statement(self, statement: Any, indent: str, origin: TextOrigin) -> None:
        if isinstance(statement, str):
            self.out.add(f"{indent}{statement.lower()};", origin)
            return
        kind, inner = node_of(statement)
        origin = self.here = _origin(inner.get("span"), origin.component)
        if kind == "Assignment":
            self.out.add(f"{indent}{self._reference(inner['comp'])} := {self.text(inner['value'])};", origin)
        elif kind == "If":
            self._if_statement(inner, indent, origin)
        elif kind == "For":
            self._for(inner, indent, origin)
        elif kind == "While":
            block = inner.get("block", inner)
            self.out.add(f"{indent}while {self.text(block['cond'])} loop", origin)
            self._block(block["stmts"], indent, origin)
            self.out.add(f"{indent}end while;", origin)
        elif kind == "When":
            self._when(inner, indent, origin)
        elif kind == "Assert":
            self._told(inner, iter(()))
        elif kind in ("Return", "Break"):
            self.out.add(f"{indent}{kind.lower()};", origin)
        elif kind == "Reinit":
            self.out.add(f"{indent}reinit({self._target(inner['variable'])}, {self.text(inner['value'])});", origin)
        elif kind == "FunctionCall":
            self._call_statement(inner, indent, origin)
        else:
            raise Unwritable(f"the statement '{kind}' is not supported")

    def _block(self, statements: list[Any], indent: str, origin: TextOrigin) -> None:
        for statement in statements:
            self._statement(statement, indent + "  ", origin)

    def _if_statement(self, inner: Tree, indent: str, origin: TextOrigin) -> None:
        word = "if"
        for branch in inner["cond_blocks"]:
            self.out.add(f"{indent}{word} {self.text(branch['cond'])} then", origin)
            self._block(branch["stmts"], indent, origin)
            word = "elseif"
        if inner["else_block"]:
            self.out.add(f"{indent}else", origin)
            self._block(inner["else_block"], indent, origin)
        self.out.add(f"{indent}end if;", origin)

    def _when(self, inner: Tree, indent: str, origin: TextOrigin) -> None:
        word = "when"
        for branch in inner["blocks"] if "blocks" in inner else inner["cond_blocks"]:
            self.out.add(f"{indent}{word} {self.text(branch['cond'])} then", origin)
            self._block(branch["stmts"], indent, origin)
            word = "elsewhen"
        self.out.add(f"{indent}end when;", origin)

    def _for(self, inner: Tree, indent: str, origin: TextOrigin) -> None:
        body = inner["equations"] if "equations" in inner else inner["stmts"]
        depth = 0
        for index in inner["indices"]:
            name = index["ident"] if "ident" in index else index["name"]
            self.out.add(f"{indent}for {quoted(name)} in {self.text(index['range'])} loop", origin)
            depth += 1
        self._block(body, indent, origin)
        for _ in range(depth):
            self.out.add(f"{indent}end for;", origin)

    def _call_statement(self, inner: Tree, indent: str, origin: TextOrigin) -> None:
        name = inner["comp"]
        full = ".".join(part["ident"] for part in name["parts"]) if "parts" in name else name["name"]
        call = f"{self._called(full)}({', '.join(map(self.text, inner['args']))})"
        outputs = inner.get("outputs") or []
        if outputs:
            call = f"({', '.join(map(self._target, outputs))}) := {call}"
        self.out.add(f"{indent}{call};", origin)


def _makes_object(name: str, function: Tree) -> bool:
    """Return whether a function is the constructor of an external object, such as a table: it gives what it is
    called.
    """
    kinds = [part["type_name"] for part in function["outputs"]]
    return function["external"] is not None and kinds in ([name], [name.rpartition(".")[2]])


def _truths(value: Any, sizes: list[int]) -> str:
    """Return one truth value for all entries, or one for each."""
    words = ["true" if entry else "false" for entry in (value if isinstance(value, list) else [value])]
    if len(set(words)) == 1:
        return words[0]
    if len(sizes) != 1 or len(words) != sizes[0]:
        raise Unwritable("entries of a matrix are fixed in part only, which is not supported")
    return f"{{{', '.join(words)}}}"


def _is_made_up(variable: Tree) -> bool:
    """Return whether a start is the zero that the flattener puts where nothing is declared: it stands at the
    declaration.
    """
    span = span_of(variable["start"])
    return span is not None and span == variable.get("source_span")


def _tag(value: Any) -> str:
    return value if isinstance(value, str) else next(iter(value))


def _is_zero(node: Tree) -> bool:
    kind, inner = node_of(node)
    return kind == "Literal" and next(iter(inner["value"].values())) in (0, 0.0)


def _is_inner(name: str) -> bool:
    return "." in name


def _words(text: str | None) -> str:
    said = (text or "").removesuffix(PERHAPS)
    return string(said) if said else ""


def _origin(span: Any, component: str) -> TextOrigin:
    if not isinstance(span, Mapping) or "source" not in span:
        return TextOrigin(component=component)
    return TextOrigin(int(span["source"]), int(span["start"]), component)


def _component(origin: Any) -> str:
    """Return ``inertia1`` for an equation of it; both ends of a connection."""
    if not isinstance(origin, Mapping) or len(origin) != 1:
        return ""
    ((kind, inner),) = origin.items()
    if kind == "ComponentEquation":
        return str(inner.get("component", ""))
    if kind == "Connection":
        return f"connect({inner.get('lhs')}, {inner.get('rhs')})"
    return str(inner.get("variable", "")) if isinstance(inner, Mapping) else ""
