"""From words to the syntax tree: classes, declarations, equations and statements.

The grammar is written down in ``docs/modelica.md``. A mistake inside a class is fatal, because nothing that follows it
could be trusted; what is well written but not supported is refused later, all of it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from grisaille.modelica import tree
from grisaille.modelica.expressions import ExpressionParser
from grisaille.modelica.refusals import Refused
from grisaille.modelica.tokens import END_OF_TEXT, Tokens

if TYPE_CHECKING:
    from grisaille.modelica.values import Value

_PREFIXES = frozenset(
    "final parameter constant discrete input output flow stream inner outer replaceable redeclare each".split()
)
_CLASS_KINDS = frozenset("class model block record type function package connector operator".split())
_BEFORE_CLASS = frozenset("encapsulated partial pure impure final expandable operator replaceable redeclare".split())
_SECTIONS = frozenset("equation algorithm initial public protected external end annotation".split())


_NUMBERS = ("Real", "Integer", "Boolean", "String")


class OnlyFull(Refused):
    """A construct that full Modelica has, and Base Modelica has not."""


def parse(text: str) -> list[tree.Class]:
    """Return the classes of a text."""
    parser = _Parser(Tokens(text))
    classes = []
    if parser.has("within"):
        if parser.kind == "name":
            parser.reference()
        parser.need(";", "after 'within'")
    while parser.kind != END_OF_TEXT:
        classes.append(parser.class_definition())
        parser.need(";", "after a class")
    return classes


def parse_extension(text: str) -> tuple[tree.Class, str, dict[str, tree.Node]]:
    """Return a class that extends another one with modifiers and has nothing else: the class, the other's name,
    modifiers.
    """
    parser = _Parser(Tokens(text))
    parser.need("model", "at the beginning")
    made = tree.Class(parser.at, "model", parser.need("name", "after 'model'"))
    parser.need("extends", "in a fitted model")
    base = parser.reference().path
    modifiers, _ = parser._modification()
    parser.need(";", "after 'extends'")
    made.annotation = parser._annotation()
    parser.need(";", "after an annotation")
    parser.need("end", "of a fitted model")
    parser.reference()
    parser.need(";", "after a class")
    return made, base, modifiers


class _Parser(ExpressionParser):
    _nested = 0

    def class_definition(self, nested: int = 0) -> tree.Class:
        at, partial = self.at, False
        if nested > 20:
            self.refuse("classes stand more than 20 deep inside each other")
        while self.kind in _BEFORE_CLASS and self.kinds[self.here + 1] in _CLASS_KINDS | _BEFORE_CLASS:
            partial = partial or self.kind == "partial"
            self.here += 1
        if self.kind not in _CLASS_KINDS:
            self.refuse(f"a class (package, model, function, record, type) is expected, but {self.seen()} stands there")
        kind = self.kind
        self.here += 1
        if kind == "operator" and self.kind in _CLASS_KINDS:
            kind = self.kind
            self.here += 1
        made = tree.Class(at, kind, self._class_name(), partial=partial)
        if self.has("="):
            self._short(made)
        else:
            made.words = self._words()
            self._composition(made, nested)
        return made

    def _class_name(self) -> str:
        return self.reference().path

    def _short(self, made: tree.Class) -> None:
        """``type A = B(…)`` or ``type A = enumeration(…)``."""
        if self.has("enumeration"):
            self.need("(", "after 'enumeration'")
            literals = []
            while not self.has(")"):
                literals.append(self.need("name", "in an enumeration"))
                self._words()
                self._annotation()
                if self.kind != ")":
                    self.need(",", "between literals of an enumeration")
            made.literals = tuple(literals)
        else:
            while self.kind in _PREFIXES:
                self.here += 1
            made.base = self.reference_type()
            made.sizes = self._sizes()
            made.attributes, _ = self._modification()
        made.words = self._words()
        made.annotation = self._annotation()

    def _composition(self, made: tree.Class, nested: int) -> None:
        while True:
            kind = self.kind
            if kind == "end":
                self.here += 1
                name = self.reference().path
                if name != made.name:
                    self.here -= 1
                    self.refuse(f"the {made.kind} '{made.name}' ends as '{name}'")
                return
            if kind in ("public", "protected"):
                self.here += 1
            elif kind == "equation":
                self.here += 1
                made.equations += self._statements(self._equation)
            elif kind == "algorithm":
                self.here += 1
                made.algorithms.append(self._statements(self._statement))
            elif kind == "initial":
                self.here += 1
                if self.has("equation"):
                    made.initial_equations += self._statements(self._equation)
                else:
                    self.need("algorithm", "or 'equation' after 'initial'")
                    made.initial_algorithms.append(self._statements(self._statement))
            elif kind == "external":
                made.external = self._external()
            elif kind == "annotation":
                made.annotation.update(self._annotation())
                self.need(";", "after an annotation")
            elif kind == "extends":
                self.here += 1
                base = self.reference().path
                if base != "ExternalObject":
                    self.refuse(f"'extends {base}' has no place in a flat model")
                made.extends.append(base)
                self._modification()
                self._annotation()
                self.need(";", "after 'extends'")
            elif kind == "import":
                self.refuse("'import' has no place in a flat model")
            elif self._begins_class():
                inner = self.class_definition(nested + 1)
                made.classes[inner.name] = inner
                self.need(";", "after a class")
            elif kind == END_OF_TEXT:
                self.refuse(f"the {made.kind} '{made.name}' does not end")
            else:
                self._components(made.components)

    def _begins_class(self) -> bool:
        k = self.here
        while self.kinds[k] in _BEFORE_CLASS:
            k += 1
        return self.kinds[k] in _CLASS_KINDS

    # --- declarations ---

    def _components(self, found: list[tree.Declared]) -> None:
        prefixes = set()
        while self.kind in _PREFIXES:
            prefixes.add(self.kind)
            self.here += 1
        type_name = self.reference_type()
        first_sizes = self._sizes()
        kinds = frozenset(prefixes)
        while True:
            at = self.at
            name = self.need("name", "in a declaration")
            sizes = self._sizes() + first_sizes
            attributes, value = self._modification()
            if self.kind == "if":
                said = f"'{name}' is declared under a condition, which has no place in a flat model"
                raise (Refused if type_name in _NUMBERS else OnlyFull)(self.at, said)
            words = self._words()
            annotation = self._annotation()
            found.append(tree.Declared(at, name, type_name, kinds, sizes, attributes, value, words, annotation))
            if not self.has(","):
                break
        self.need(";", f"after the declaration of '{name}'")

    def reference_type(self) -> str:
        """Return the name of a type."""
        self.has(".")
        names = [self.need("name", "for a type")]
        while self.has("."):
            names.append(self.need("name", "after a dot"))
        return ".".join(names)

    def _sizes(self) -> tuple[tree.Node, ...]:
        return self.subscripts() if self.kind == "[" else ()

    def _modification(self) -> tuple[dict[str, tree.Node], tree.Node | None]:
        attributes: dict[str, tree.Node] = {}
        if self.has("("):
            while not self.has(")"):
                while self.kind in ("each", "final", "redeclare", "replaceable"):
                    self.here += 1
                name = self.reference().path
                inner, value = self._modification()
                self._words()
                if value is not None:
                    attributes[name] = value
                attributes.update({f"{name}.{key}": item for key, item in inner.items()})
                if self.kind != ")":
                    self.need(",", "between modifications")
        value = self.range() if self.has("=") or self.has(":=") else None
        return attributes, value

    def _words(self) -> str:
        if self.kind != "text":
            return ""
        words = self.values[self.here]
        self.here += 1
        while self.has("+"):
            words += self.need("text", "after '+' in a description")
        return words

    def _annotation(self) -> dict[str, Value]:
        """Return plain values of an annotation, nested ones by dotted name; what is not plain is left out."""
        if not self.has("annotation"):
            return {}
        attributes, _ = self._modification()
        plain = ((name, _plain(value)) for name, value in attributes.items())
        return {name: value for name, value in plain if value is not None}

    def _external(self) -> tree.External:
        at = self.at
        self.here += 1
        language = self._words() or "C"
        result, function, arguments = None, "", []
        if self.kind == "name":
            target = self.reference()
            if self.has("="):
                result = target
                function = self.need("name", "after '=' of an external call")
            else:
                function = target.path
            arguments = self.call(at, function).arguments
        self._annotation()
        self.need(";", "after 'external'")
        return tree.External(at, language, function, result, arguments)

    # --- equations and statements ---

    def _statements(self, one: Callable[[], tree.Node]) -> list[tree.Node]:
        found = []
        while self.kind not in _SECTIONS or (self.kind == "initial" and self.kinds[self.here + 1] == "("):
            found.append(one())
            self._words()
            self._annotation()
            self.need(";", "at the end of it")
        return found

    def _block(self, one: Callable[[], tree.Node], *ends: str) -> list[tree.Node]:
        """Return statements up to one of the words that end the block, which is not read."""
        self._deeper(1)
        found = []
        while self.kind not in ends:
            if self.kind == END_OF_TEXT:
                self.refuse(f"{' or '.join(repr(e) for e in ends)} is missing")
            found.append(one())
            self._words()
            self._annotation()
            self.need(";", "at the end of it")
        self._deeper(-1)
        return found

    def _deeper(self, by: int) -> None:
        self._nested += by
        if self._nested > 60:
            self.refuse("if, for and when stand more than 60 deep inside each other")

    def _equation(self) -> tree.Node:
        special = self._structured(self._equation)
        if special is not None:
            return special
        at = self.at
        left = self.expression()
        if self.has("="):
            return tree.Equal(at, left, self.expression())
        if isinstance(left, tree.Calling):
            return tree.Do(at, left)
        self.refuse(f"'=' is expected in an equation, but {self.seen()} stands there")

    def _statement(self) -> tree.Node:
        special = self._structured(self._statement)
        if special is not None:
            return special
        at = self.at
        if self.kind in ("return", "break"):
            self.here += 1
            return tree.Leave(at, self.kinds[self.here - 1])
        target = self.expression()
        if self.has(":="):
            return tree.Assign(at, target, self.expression())
        if isinstance(target, tree.Calling):
            return tree.Do(at, target)
        self.refuse(f"':=' is expected in a statement, but {self.seen()} stands there")

    def _structured(self, one: Callable[[], tree.Node]) -> tree.Node | None:
        at, kind = self.at, self.kind
        if kind == "if":
            return self._if(at, one)
        if kind == "for":
            self.here += 1
            iterators = self.iterators()
            self.need("loop", "after 'for …'")
            return tree.For(at, iterators, self._closed(one, "for"))
        if kind == "while":
            self.here += 1
            condition = self.expression()
            self.need("loop", "after 'while …'")
            return tree.While(at, condition, self._closed(one, "while"))
        if kind == "when":
            return self._when(at, one)
        if kind in ("assert", "connect") and self.kinds[self.here + 1] == "(":
            self.here += 1
            return tree.Do(at, self.call(at, kind))
        return None

    def _closed(self, one: Callable[[], tree.Node], word: str) -> list[tree.Node]:
        body = self._block(one, "end")
        self.here += 1
        self.need(word, f"after 'end' of a {word}")
        return body

    def _if(self, at: int, one: Callable[[], tree.Node]) -> tree.Node:
        self.here += 1
        branches: list[tuple[tree.Node | None, list[tree.Node]]] = []
        while True:
            condition = self.expression()
            self.need("then", "after a condition")
            branches.append((condition, self._block(one, "elseif", "else", "end")))
            if not self.has("elseif"):
                break
        if self.has("else"):
            branches.append((None, self._block(one, "end")))
        self.need("end", "of an if")
        self.need("if", "after 'end' of an if")
        return tree.If(at, branches)

    def _when(self, at: int, one: Callable[[], tree.Node]) -> tree.Node:
        self.here += 1
        branches = []
        while True:
            condition = self.expression()
            self.need("then", "after a condition")
            branches.append((condition, self._block(one, "elsewhen", "end")))
            if not self.has("elsewhen"):
                break
        self.need("end", "of a when")
        self.need("when", "after 'end' of a when")
        return tree.When(at, branches)


def _plain(node: tree.Node) -> Any:
    if isinstance(node, tree.Literal):
        return node.value
    if isinstance(node, tree.Unary) and isinstance(node.operand, tree.Literal) and node.operator == "-":
        return -node.operand.value if isinstance(node.operand.value, int | float) else None
    return node.path if isinstance(node, tree.Reference) else None
