"""Sizes that are constants of packages, ``Real x[Medium.n]``, as numbers.

rumoca 0.10 knows such a constant in formulas and in loops, not where it is the size of an array. The remedy writes its
value there, and into whole-numbered constants and parameters that are declared with it. Not where the package is
redeclared: then the size depends on the component.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from grisaille.modelica.full.class_places import Classes, Placed, arguments
from grisaille.modelica.full.mending import Edit, apply_edits, end_of_argument

Texts = dict[str, str]
DEEPEST = 20
"""Constants and packages that are followed, one from the other."""
_SIZES = re.compile(r"\w\s*\[([^\[\]]*)\]|\b(?:constant|parameter)\s+Integer\s+\w+\s*=([^;]*);|\bin\s([^;]*?)\bloop\b")
_REFERENCE = re.compile(r"(?<![\w.])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?!\s*\(|\w|\s*\.)")
_DECLARED = r"\bconstant\s+Integer\s+{name}\b(?:\s*\([^()]*\))?\s*=\s*"
_LISTED = r"\bconstant\s+[\w.]+\s+{name}\s*\[[^\[\]]*\](?:\s*\([^()]*\))?\s*=\s*\{{"
_SIZE = re.compile(r"size\s*\(\s*(\w+)\s*,\s*1\s*\)$")
_REDECLARED = re.compile(r"\bredeclare\s+(?:replaceable\s+)?(?:final\s+)?package\s+(?:extends\s+)?(\w+)")


def with_numbers(texts: Texts) -> Texts:
    """Return the texts with numbers for sizes that are constants of packages."""
    values = _Values(texts)
    return {path: apply_edits(text, values.edits(path)) for path, text in texts.items()}


class _Values:
    def __init__(self, texts: Texts) -> None:
        self.classes = Classes(texts)
        self.redeclared = {m[1] for bare in self.classes.bare.values() for m in _REDECLARED.finditer(bare)}

    def edits(self, path: str) -> Iterator[Edit]:
        """Yield places of sizes in one text, with their numbers."""
        bare = self.classes.bare[path]
        for sized in _SIZES.finditer(bare):
            group = sized.lastindex or 0
            for used in _REFERENCE.finditer(bare, sized.start(group), sized.end(group)):
                around = self.classes.around(path, used.start())
                value = self.meant(used[1], around, 0) if around is not None and used[1] not in _WORDS else None
                if value is not None:
                    yield used.start(), used.end(), str(value)

    def meant(self, name: str, placed: Placed, depth: int) -> int | None:
        """Return the number of a constant of a package, by its name in a class; of one without a dot, where it is
        imported.
        """
        package, _, last = self._imported(name, placed).rpartition(".")
        home = self.classes.meant(package, placed) if package else None
        if home is None or home.kind != "package" or not self.redeclared.isdisjoint(package.split(".")):
            return None
        modified = re.compile(rf"[(,]\s*{package.rpartition('.')[2]}\s*\([^;]*\b{last}\s*=")
        if any(modified.search(bare) for bare in self.classes.bare.values()):
            return None
        return self._constant(home, last, depth)

    def _imported(self, name: str, placed: Placed) -> str:
        first, _, rest = name.partition(".")
        scope: Placed | None = placed
        while scope is not None and not rest:
            for alias, target, is_all in self.classes.imports(scope):
                if not is_all and first == (alias or target.rpartition(".")[2]):
                    return target
            scope = self.classes.found.get(scope.name.rpartition(".")[0])
        return name

    def _constant(self, package: Placed, name: str, depth: int) -> int | None:
        """Return the number of a constant that a package declares, inherits, or extends another one with."""
        if depth > DEEPEST:
            return None
        if not package.is_short:
            own = self.classes.own(package)
            found = re.compile(_DECLARED.format(name=name)).search(own, package.start, package.end)
            if found is not None:
                return self._number(own[found.end() : end_of_argument(own, found.end(), ";")], package, depth)
        bare = self.classes.bare[package.path]
        for base in self.classes.bases(package):
            for start, end in arguments(bare, base.start, base.end):
                given = re.match(rf"\s*(?:final\s+)?{name}\s*=(.*)$", bare[start:end], re.DOTALL)
                if given is not None:
                    return self._number(given[1], package, depth)
            above = self.classes.meant(base.name, package)
            value = self._constant(above, name, depth + 1) if above is not None and above != package else None
            if value is not None:
                return value
        return None

    def _number(self, written: str, package: Placed, depth: int) -> int | None:
        words = re.split(r"[\"]|\bannotation\b", written)[0].strip()
        if re.fullmatch(r"\d+", words):
            return int(words)
        if (size := _SIZE.match(words)) is not None:
            return self._entries(size[1], package)
        if re.fullmatch(r"[A-Za-z_]\w*", words):
            return self._constant(package, words, depth + 1)
        return self.meant(words, package, depth + 1) if re.fullmatch(r"[A-Za-z_][\w.]*", words) else None

    def _entries(self, name: str, package: Placed) -> int | None:
        """Return how many entries a list has that a package declares as a constant."""
        own = "" if package.is_short else self.classes.own(package)
        found = re.compile(_LISTED.format(name=name)).search(own, package.start, package.end)
        if found is None:
            return None
        return sum(1 for _ in arguments(own, found.end(), end_of_argument(own, found.end(), "}")))


_WORDS = frozenset({"end", "size", "true", "false", "and", "or", "not", "if", "then", "else", "for", "in"})
