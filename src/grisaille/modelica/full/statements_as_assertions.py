"""Statements of models that ``rumoca`` 0.10 does not take, told to it as assertions, and written as statements again.

It knows algorithms that set each scalar once, by one formula. Of others it gets ``assert(s >= (s + x), "…")`` for
``s := s + x``, in the equations of the model: names are resolved, loops are unrolled, connections and modifiers are
applied as for any assertion, and what it gives back says by its messages which statements were meant, in their order.
So are equations of entries of arrays inside ``when``. What the variables are is then for the flat model to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from grisaille.modelica.full.mending import Edit, apply_edits, end_of_argument, without_words

Texts = dict[str, str]
MARK = "grisaille: "
"""How messages of assertions begin that stand for statements."""
UNKNOWN = "cannot be evaluated: division by zero"
"""What the compiler says where it runs a function that is told by assertions."""
SET, EQUAL, BEGIN, END, SEE, INSIDE = "set", "equal", "begin", "end", "see when", "inside when"
_SECTION = re.compile(r"(?<!initial )\balgorithm\b")
_NEXT = re.compile(
    r"\b(?:equation|algorithm|initial|public|protected|annotation)\b|\bend\s+(?!if|for|while|when)\w+\s*;"
)
_CLASS = re.compile(r"\b(function|model|block|class|package|record|connector)\s+(?:extends\s+)?(\w+)\b(?!\s*=)")
_WORD = re.compile(
    r"\s*(end\s+if|end\s+for|end\s+while|end\s+when|elseif|elsewhen|else|if|for|while|when|break|return)\b"
)
_HEADS = {"if": "then", "elseif": "then", "when": "then", "elsewhen": "then", "for": "loop", "while": "loop"}
_DESCRIPTION = re.compile(r"[\w)\]}\"](\s*\"[^\"]*\")\s*$")
_EQUAL = re.compile(r"(?<![<>=:])=(?!=)")
_WHEN = re.compile(r"\bwhen\b")


class _Unlike(Exception):
    """A statement that is not told this way."""


# --- texts with assertions ---


def with_assertions(texts: Texts) -> Texts:
    """Return the texts with the algorithms of models as assertions, where all their statements can be told so."""
    return {path: apply_edits(text, _sections(without_words(text))) for path, text in texts.items()}


def with_entries_set(texts: Texts, array: str) -> Texts:
    """Return the texts with ``array[k] = …`` inside ``when`` as assertions."""
    entry = re.compile(rf"\s*(?:\w+\s*\.\s*)*{array}\s*\[")
    return {
        path: apply_edits(text, _entries(without_words(text), entry)) if array in text else text
        for path, text in texts.items()
    }


def with_told_function(texts: Texts, name: str) -> Texts:
    """Return the texts with the statements of the functions of this name as assertions, where all can be told so.

    The variables are set before, to what cannot be computed (``div(a, a - a)``): whoever runs the function while a text
    is flattened fails, and does not get another value.
    """
    return {
        path: apply_edits(text, _of_functions(without_words(text), name)) if name in text else text
        for path, text in texts.items()
    }


def with_told_returns(texts: Texts, path: str) -> Texts:
    """Return the texts with the functions of one that leave a loop by ``return``."""
    bare = without_words(texts[path])
    for made in _CLASS.finditer(bare):
        closed = re.compile(rf"\bend\s+{made[2]}\s*;").search(bare, made.end())
        if made[1] == "function" and closed is not None and re.search(r"\breturn\b", bare[made.end() : closed.start()]):
            texts = with_told_function(texts, made[2])
    return texts


def _of_functions(bare: str, name: str) -> Iterator[Edit]:
    for made in _CLASS.finditer(bare):
        closed = re.compile(rf"\bend\s+{re.escape(name)}\s*;").search(bare, made.end())
        if made[1] != "function" or made[2] != name or closed is None:
            continue
        begun = list(_SECTION.finditer(bare, made.end(), closed.start()))
        over = _next(bare, begun[0].end()) if len(begun) == 1 else None
        try:
            if over is not None:
                yield from _OfFunction(bare, begun[0], over.start(), bare[made.end() : begun[0].start()]).edits
        except _Unlike:
            continue


def _sections(bare: str) -> Iterator[Edit]:
    for begun in _SECTION.finditer(bare):
        if bare[: begun.start()].rstrip().endswith("initial") or _is_in_function(bare, begun.start()):
            continue
        over = _next(bare, begun.end())
        end = over.start() if over is not None else len(bare)
        try:
            yield from _Section(bare, begun, end).edits
        except _Unlike:
            continue


def _next(bare: str, at: int) -> re.Match[str] | None:
    """Return what ends a section: annotations of statements do not, those of the class do."""
    found = _NEXT.finditer(bare, at)
    return next((m for m in found if m[0] != "annotation" or bare[at : m.start()].rstrip()[-1:] in ("", ";")), None)


def _is_in_function(bare: str, at: int) -> bool:
    """Return whether the class around a place is a function: the nearest head above it whose end stands behind it."""
    for head in reversed(list(_CLASS.finditer(bare, 0, at))):
        if not re.search(rf"\bend\s+{re.escape(head[2])}\s*;", bare[head.end() : at]):
            return head[1] == "function"
    return False


class _Section:
    """One algorithm: the edits that make assertions of its statements.

    In equations each statement of a loop is written out for all values of the index before the next one is. So every
    assertion says in its message where its statement stands, and in its condition what the indices around it are.
    """

    is_function = False

    def __init__(self, bare: str, begun: re.Match[str], end: int) -> None:
        self.bare, self.end = bare, end
        self._count = 0
        self._loops: list[tuple[int, str, str]] = []
        """Loops around: where they stand, the index, whether it counts up (``+``) or down (``-``)."""
        self._around: list[str] = []
        opened, closed = f'assert(true, "{MARK}{BEGIN}");', f'assert(true, "{MARK}{END}"); '
        self.edits: list[Edit] = [(begun.start(), begun.end(), f"equation {opened}"), (end, end, closed)]
        if bare[self._block(begun.end()) : end].strip():
            raise _Unlike

    def _words(self, word: str) -> str:
        """Return what ends an assertion: the indices around, and the message."""
        self._count += 1
        places = ",".join(map(str, [*(place for place, _, _ in self._loops), self._count]))
        signs = "".join(sign for *_, sign in self._loops)
        indices = "".join(f" and time >= {index}" for _, index, _ in self._loops)
        return f'{indices}, "{MARK}{word}|{places}|{signs}")'

    def _told(self, word: str) -> str:
        return f"assert(true{self._words(word)}"

    def _block(self, at: int) -> int:
        """Return statements from here to a word that ends their block; where that word stands."""
        while self.bare[at : self.end].strip():
            word = _WORD.match(self.bare, at, self.end)
            if word is not None and word[1].startswith(("end", "else")):
                return at
            if word is None:
                at = self._plain(at)
            elif word[1] == "break" or (word[1] == "return" and self.is_function):
                self.edits.append((word.start(1), word.end(), self._told(word[1])))
                at = self._behind(word.end())
            elif word[1] == "return" or (word[1] == "when" and (self._around or self.is_function)):
                raise _Unlike
            else:
                at = self._structure(word)
        return at

    def _structure(self, word: re.Match[str]) -> int:
        """Return ``if``, ``for``, ``while`` or ``when``; where the next statement begins."""
        kind, first = word[1], word.start(1)
        if kind == "when" or (kind == "for" and not self.is_function):
            before = self._told("once" if kind == "for" else SEE)
            self.edits.append((first, first, f"{before}; "))
        loops = len(self._loops)
        self._around.append(kind)
        at = word.end()
        while not word[1].startswith("end"):
            at = self._block(self._head(word))
            found = _WORD.match(self.bare, at, self.end)
            if found is None:
                raise _Unlike
            word = found
        if re.sub(r"\s+", " ", word[1]) != f"end {kind}":
            raise _Unlike
        self._around.pop()
        del self._loops[loops:]
        after = self._behind(word.end())
        if kind in ("if", "while") or (kind == "for" and self.is_function):
            self.edits.append((word.start(1), word.end(), self._told(f"end {kind}")))
        elif kind == "for":
            self.edits.append((after, after, f" {self._told('end for')};"))
        return after

    def _head(self, word: re.Match[str]) -> int:
        """Return a condition or the range of a loop; where the block begins."""
        kind, at = word[1], word.end()
        if kind == "else":
            self.edits.append((word.start(1), at, f"{self._told('else')};"))
            return at
        ends, depth = _HEADS[kind], 0
        for found in re.compile(rf"\b(?:if|{ends})\b").finditer(self.bare, at, self.end):
            if found[0] == "if":
                depth += 1
            elif depth:
                depth -= 1
            elif kind == "for":
                self._for(word, found)
                return found.end()
            elif kind in ("when", "elsewhen"):
                self.edits.append((found.end(), found.end(), f" {self._told(INSIDE)};"))
                return found.end()
            else:
                self.edits.append((word.start(1), at, "assert(("))
                self.edits.append((found.start(), found.end(), f"){self._words(kind)};"))
                return found.end()
        raise _Unlike

    def _for(self, word: re.Match[str], last: re.Match[str]) -> None:
        self._indices(self.bare[word.end() : last.start()])

    def _indices(self, head: str) -> None:
        """``i in 1:n, j in n:-1:1``."""
        at = 0
        while at < len(head):
            comma = end_of_argument(head, at)
            named = re.fullmatch(r"\s*(\w+)\s+in\s+(.*?)\s*", head[at:comma], re.DOTALL)
            if named is None:
                raise _Unlike
            first = end_of_argument(named[2], 0, ":")
            second = end_of_argument(named[2], first + 1, ":")
            step = named[2][first + 1 : second].strip() if second < len(named[2]) else "1"
            down = step.startswith("-")
            if first == len(named[2]) or not re.fullmatch(r"-?\s*\d+", step):
                raise _Unlike
            self._count += 1
            self._loops.append((self._count, named[1], "-" if down else "+"))
            at = comma + 1

    def _plain(self, at: int) -> int:
        """Return an assignment or a call; where the next statement begins."""
        last = end_of_argument(self.bare, at, ";")
        if last >= self.end:
            raise _Unlike
        sign = self.bare.find(":=", at, last)
        if sign < 0:
            self._call(at, last)
        elif re.fullmatch(r"\s*[A-Za-z_][\w.]*\s*(?:\[.*\]\s*)?(?:\.[\w.]+\s*)?", self.bare[at:sign], re.DOTALL):
            self.edits += _assertion(self.bare, at, sign, sign + 2, last, self._words(SET))
        else:
            raise _Unlike
        return last + 1

    def _call(self, at: int, last: int) -> None:
        """``reinit`` stays inside ``when``; assertions of algorithms, which are not checked, are left out elsewhere."""
        name = re.match(r"\s*([\w.]+)\s*\(", self.bare[at:last])
        called = name[1] if name is not None else ""
        if called not in ("assert", "reinit") or (called == "reinit" and self._around[:1] != ["when"]):
            raise _Unlike
        if self._around[:1] == ["when"] and len(self._around) > 1:
            raise _Unlike
        if called == "assert" and self._around[:1] != ["when"]:
            self.edits.append((at, last + 1, re.sub(r"[^\n]", " ", self.bare[at : last + 1])))

    def _behind(self, at: int) -> int:
        last = end_of_argument(self.bare, at, ";")
        if last >= self.end or self.bare[at:last].strip():
            raise _Unlike
        return last + 1


_LOCAL = re.compile(
    r"\s*(?:(?:public|protected)\s+)*(?:(input|output|parameter|constant)\s+)?([A-Za-z_][\w.]*)\s*(\[[^\]]*\])?\s*"
    r"([A-Za-z_]\w*)\s*(\[[^\]]*\])?\s*(?:\([^;]*\)\s*)?(=[^;]*)?(?:\"[^\"]*\"\s*)?$",
    re.DOTALL,
)


class _OfFunction(_Section):
    """The algorithm of a function, whose loops are told by their ends: an index is a variable there."""

    is_function = True

    def __init__(self, bare: str, begun: re.Match[str], end: int, head: str) -> None:
        self._named: list[str] = []
        super().__init__(bare, begun, end)
        declared = [m for m in map(_LOCAL.match, self._declarations(head)) if m is not None]
        inputs = [(m[4], m[2], m[3] or m[5]) for m in declared if m[1] == "input" and m[2] not in ("Boolean", "String")]
        if not inputs or len(declared) < len(self._declarations(head)):
            raise _Unlike
        name, kind, sizes = inputs[0]
        some = f"sum({name})" if sizes else name
        unknown = f"div({some}, {some} - {some})"
        known = {m[4] for m in declared}
        indices = [index for index in dict.fromkeys(self._named) if index not in known]
        first = [f"{index} := {self._as('Integer', kind, unknown)};" for index in indices]
        for m in declared:
            if m[1] not in ("input", "parameter", "constant") and not m[6]:
                value, dims = self._as(m[2], kind, unknown), m[5] or m[3] or ""
                first.append(f"{m[4]} := {f'fill({value}, {dims[1:-1]})' if dims else value};")
                if ":" in dims:
                    raise _Unlike
        own = "".join(f"protected Integer {index}; " for index in indices)
        words = f'{own}algorithm {" ".join(first)} assert({some} > 0, "{MARK}{BEGIN}");'
        self.edits[:2] = [(begun.start(), begun.end(), words)]

    @staticmethod
    def _declarations(head: str) -> list[str]:
        described = re.match(r"\s*(\"[^\"]*\")?", head)
        rest = head[described.end() if described is not None else 0 :]
        found: list[str] = []
        for one in rest.split(";"):
            at, shared = (
                0,
                re.match(r"\s*(?:[a-z]+\s+)*[A-Za-z_][\w.]*\s*(?:\[[^\]]*\]\s*)?(?=\s[A-Za-z_]|(?<=\]))", one),
            )
            while at < len(one) and one.strip():
                end = end_of_argument(one, at)
                found.append(one[at:end] if at == 0 or shared is None else f"{shared[0]} {one[at:end]}")
                at = end + 1
        return found

    @staticmethod
    def _as(kind: str, given: str, value: str) -> str:
        if kind == "Boolean":
            return f"({value} > 0)"
        return f"integer({value})" if kind == "Integer" and given != "Integer" else value

    def _for(self, word: re.Match[str], last: re.Match[str]) -> None:
        named = re.fullmatch(r"\s*(\w+)\s+in\s+(.*?)\s*", self.bare[word.end() : last.start()], re.DOTALL)
        if named is None or end_of_argument(named[2], 0) < len(named[2]):
            raise _Unlike
        parts, at = [], 0
        while at <= len(named[2]):
            end = end_of_argument(named[2], at, ":")
            parts.append(named[2][at:end].strip())
            at = end + 1
        if len(parts) not in (2, 3):
            raise _Unlike
        self._named.append(named[1])
        words = ["from", "to"] if len(parts) == 2 else ["from", "by", "to"]
        told = [f"assert(({named[1]} >= ({part})){self._words(w)};" for part, w in zip(parts, words, strict=True)]
        self.edits.append((word.start(1), last.end(), " ".join(told)))


def _assertion(bare: str, at: int, sign: int, value: int, last: int, words: str) -> list[Edit]:
    """Return ``target = value "words"`` as an assertion."""
    first = at + len(bare[at:sign]) - len(bare[at:sign].lstrip())
    note = re.compile(r"\bannotation\b").search(bare, value, last)
    end = note.start() if note is not None else last
    said = _DESCRIPTION.search(bare, value, end)
    end = said.start(1) if said is not None else end
    return [(first, first, "assert(("), (sign, value, ">= ("), (end, last, f")){words}")]


def _entries(bare: str, entry: re.Pattern[str]) -> Iterator[Edit]:
    """Yield equations of entries of an array inside ``when``."""
    for begun in _WHEN.finditer(bare):
        if re.search(r"\bend\s+$", bare[: begun.start()]):
            continue
        over = re.compile(r"\bend\s+when\b").search(bare, begun.end())
        then = re.compile(r"\bthen\b").search(bare, begun.end())
        if over is None or then is None:
            continue
        at = then.end()
        while at < over.start():
            last = end_of_argument(bare, at, ";")
            heads = list(re.compile(r"\b(?:then|loop|else)\b").finditer(bare, at, last))
            first = heads[-1].end() if heads and not _EQUAL.search(bare, at, heads[-1].end()) else at
            sign = _EQUAL.search(bare, first, last)
            if sign is not None and entry.match(bare, first, sign.start()):
                yield from _assertion(bare, first, sign.start(), sign.end(), last, f', "{MARK}{EQUAL}")')
            at = last + 1


# --- assertions as statements ---


def word_of(entry: Mapping[str, Any]) -> str:
    """Return which statement an assertion of the flat tree stands for; empty where it is one."""
    return _message(entry).partition("|")[0]


def _message(entry: Mapping[str, Any]) -> str:
    node: Any = entry.get("message")
    for key in ("Literal", "value", "String"):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node.removeprefix(MARK) if isinstance(node, str) and node.startswith(MARK) else ""


def condition_of(entry: Mapping[str, Any]) -> tuple[Any, list[int]]:
    """Return what an assertion says beside its indices, and these, the outermost first."""
    node, indices = entry["condition"], []
    for _ in _message(entry).rpartition("|")[2] if "|" in _message(entry) else "":
        indices.append(int(_number(node["Binary"]["rhs"]["Binary"]["rhs"])))
        node = node["Binary"]["lhs"]
    return node, indices[::-1]


def _number(node: Any) -> Any:
    if "Unary" in node:
        return -_number(node["Unary"]["rhs"])
    return next(iter(node["Literal"]["value"].values()))


def sides_of(entry: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return target and value of an assertion that stands for an assignment or an equation."""
    relation = condition_of(entry)[0]["Binary"]
    return relation["lhs"], relation["rhs"]


def head_of(word: str, condition: str) -> str:
    """Return the line of a block: ``if …``, ``end if;``."""
    if word in ("if", "elseif"):
        return f"{word} {condition} then"
    if word == "while":
        return f"while {condition} loop"
    if word == "once":
        return "for 'once' in 1:1 loop"
    return word if word == "else" else f"{word};"


def apart(entries: Iterable[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[list[Mapping[str, Any]]]]:
    """Return assertions of the model, and sections of those that stand for statements, in their order."""
    plain: list[Mapping[str, Any]] = []
    sections: list[list[Mapping[str, Any]]] = []
    is_open = False
    for entry in entries:
        word = word_of(entry)
        if word == BEGIN:
            sections.append([])
        if word in (BEGIN, END):
            is_open = word == BEGIN
        else:
            (sections[-1] if is_open and word else plain).append(entry)
    return plain, [sorted(section, key=_place) for section in sections]


def _place(entry: Mapping[str, Any]) -> tuple[int, ...]:
    """Return where a statement stands: its loop, the index of this, and so on inwards, then its own place."""
    _, places, signs = _message(entry).split("|")
    found = [int(place) for place in places.split(",")]
    counted = [index if sign == "+" else -index for index, sign in zip(condition_of(entry)[1], signs, strict=True)]
    return (*tuple(number for pair in zip(found, counted, strict=False) for number in pair), found[-1])


def after_begin(body: list[Any]) -> list[Any]:
    """Return the statements of a function without what was put before those that are told."""
    for k, statement in enumerate(body):
        if isinstance(statement, Mapping) and word_of(statement.get("Assert") or {}) == BEGIN:
            return body[k + 1 :]
    return body


def is_seen_at(entry: Mapping[str, Any], chain: Mapping[str, Any]) -> bool:
    """Return whether a ``when`` is the one whose place in its section an assertion marks: its first mark is the next
    one.
    """
    marks = (_message(one).split("|")[1] for one in (entry, chain["first"]["equations"][0]["Assert"]))
    here, inside = (int(places.rpartition(",")[2]) for places in marks)
    return inside == here + 1


def is_of_section(chain: Mapping[str, Any]) -> bool:
    """Return whether a ``when`` of the flat tree is one of a section."""
    first = chain["first"]["equations"][:1]
    return any("Assert" in e and word_of(e["Assert"]) == INSIDE for e in first)
