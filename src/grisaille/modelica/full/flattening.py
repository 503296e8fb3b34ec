"""Full Modelica, made flat by the ``rumoca`` compiler: classes, inheritance, connections become one list of equations.

The compiler gets the text and those files of the user's libraries that the text needs, no others. What it gives is
written down as Base Modelica, which is read like any other, and kept for the next time (``keeping``).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from grisaille.errors import ModelError
from grisaille.modelica.full import keeping, omc, rumoca
from grisaille.modelica.full.conversions import convert_text
from grisaille.modelica.full.derivatives import with_named_derivatives
from grisaille.modelica.full.explaining import damaged, explain_messages
from grisaille.modelica.full.flat_expressions import Unwritable
from grisaille.modelica.full.flat_text import UnknownNode, flat_text
from grisaille.modelica.full.libraries import LibraryPlace, Names, libraries_in, needed, older_names
from grisaille.modelica.full.mending import mend_text
from grisaille.modelica.full.places import FlatSource, Lines, lines_of, source_of
from grisaille.modelica.full.redeclarations import keep_redeclarations
from grisaille.modelica.full.remedies.remedies import BALANCED, MAIN, Remedies, Texts, unbalanced
from grisaille.modelica.full.remedies.remedies_of_types import with_marked_members
from grisaille.modelica.full.replaceable_parts import with_own_modifiers
from grisaille.modelica.full.statements_as_assertions import UNKNOWN
from grisaille.modelica.refusals import ModelicaSource

AUTO, RUMOCA, OMC = "auto", "rumoca", "omc"
_UNRESOLVED = re.compile(r"\bunresolved (?:type|component|function|base)|\bunknown modifier\b")
"""What is said of names that a library no longer has."""


def flatten(
    text: str, label: str, name: str, roots: Sequence[Path], file: Path | None = None, flattener: str = AUTO
) -> tuple[str, ModelicaSource]:
    """Return the Base Modelica text of the model ``name``.

    roots : folders of libraries, and libraries themselves
    file : the file in one of them that the user has named, whose lines are told by number alone
    flattener : ``"rumoca"``, ``"omc"``, or ``"auto"``: rumoca first, and omc where that fails and it is installed
    """
    if flattener == OMC or (flattener == AUTO and not rumoca.is_available() and omc.program()):
        source = _by_omc(text, label, name, roots)
    else:
        try:
            source = _by_rumoca(text, label, name, roots, file)
        except ModelError as refused:
            if flattener != AUTO or omc.program() is None:
                raise
            source = _by_both(refused, text, label, name, roots)
    return source.text, source


def _by_both(refused: ModelError, text: str, label: str, name: str, roots: Sequence[Path]) -> ModelicaSource:
    """By omc, after rumoca has refused."""
    try:
        source = _by_omc(text, label, name, roots)
    except ModelError as error:
        raise ModelError(f"{refused}\nAnd by OpenModelica:\n{error}") from None
    reason = str(refused).splitlines()
    words = " ".join(reason[1:2] or reason).strip()
    warnings.warn(f"'{name}' of {label} is flattened by omc, since rumoca refused it ({words}).", stacklevel=5)
    return source


def _by_omc(text: str, label: str, name: str, roots: Sequence[Path]) -> ModelicaSource:
    entry = keeping.CachedFlattening([OMC, omc.identity(), text, label, name, *(str(root.resolve()) for root in roots)])
    kept = entry.found()
    if kept is not None:
        return FlatSource.from_dict(kept, str(kept["label"]))
    libraries = libraries_in(roots)
    source = omc.flatten(text, label, name, libraries)
    entry.keep({"text": source.text, "origins": [], "files": [], "label": source.label}, roots, libraries)
    return source


def _by_rumoca(text: str, label: str, name: str, roots: Sequence[Path], file: Path | None) -> FlatSource:
    rumoca.check()
    asked = [text, label, name, str(file), *(str(root.resolve()) for root in roots), rumoca.version()]
    entry = keeping.CachedFlattening([RUMOCA, *asked])
    kept = entry.found()
    if kept is not None:
        return FlatSource.from_dict(kept, label)
    libraries = libraries_in(roots)
    made = _Flattening(label, name, libraries)
    source = made.written(made.answer(mend_text(with_named_derivatives(text))), file)
    entry.keep(source.as_dict(), roots, libraries)
    return source


class _Flattening:
    """One model, with the texts as they are given to the compiler."""

    def __init__(self, label: str, name: str, libraries: Names) -> None:
        self.label, self.name, self.libraries = label, name, libraries
        self.places: dict[str, LibraryPlace] = {}
        self.texts: Texts = {}
        self._without: dict[str, str] = {}

    def answer(self, text: str) -> dict[str, Any]:
        """Return the flat tree; files of libraries that are no Modelica are left out, and named."""
        text = convert_text(text, older_names(text, self.libraries))
        self._gather(text)
        remedies, refused = Remedies(), ""
        while True:
            answer = rumoca.ask_compiler(self._own, self.label, self._asked, self._files)
            if "error" not in answer:
                for path, words in self._without.items():
                    warnings.warn(f"{path} is not read, {words}; '{self.name}' does not need it.", stacklevel=4)
                return answer
            worse = {path: words for path, words in damaged(answer).items() if path in self.texts}
            if worse and not remedies.tried:
                self._without |= worse
                self._gather(text)
                continue
            is_made = bool(refused) and UNKNOWN in str(answer["error"])
            refused = refused if worse or is_made else self._refusal(answer)
            if not remedies.tried and _UNRESOLVED.search(str(answer["error"])):
                newer = convert_text(text, older_names(text, self.libraries, guess=True))
                if newer != text:
                    text = newer
                    self._gather(text)
                    continue
            changed = remedies.applied(f"{answer['error']}\0{self.name}", self.texts)
            if worse or changed is None:
                raise ModelError(refused)
            self.texts = changed

    def _gather(self, text: str) -> None:
        found = {place.relative.as_posix(): place for place in needed(text, self.libraries)}
        self.places = {path: place for path, place in found.items() if path not in self._without}
        texts = {MAIN: text} | {path: mend_text(place.text) for path, place in self.places.items()}
        self.texts = keep_redeclarations(with_own_modifiers(with_marked_members(texts)), self.name)

    @property
    def _own(self) -> str:
        return self.texts[MAIN]

    @property
    def _asked(self) -> str:
        return BALANCED if f"model {BALANCED} " in self._own else self.name

    @property
    def _files(self) -> Texts:
        return {path: text for path, text in self.texts.items() if path != MAIN}

    def _refusal(self, answer: Mapping[str, Any]) -> str:
        bad = "".join(f"\n  {path}, {words}" for path, words in self._without.items())
        words = explain_messages(answer, self._own, self.label, self.name, self._files)
        return f"{words}\nNot read, because they are no Modelica:{bad}" if bad else words

    def written(self, answer: Mapping[str, Any], file: Path | None) -> FlatSource:
        """Return the flat model as text."""
        own = [int(number) for number, path in answer.get("names", {}).items() if path == self.label]
        flat = unbalanced(answer["flat"], self._own, own)
        try:
            texts = {int(number): text for number, text in answer.get("files", {}).items()}
            made = flat_text(flat, self.name, texts)
        except UnknownNode as unknown:
            place = FlatSource("", self.label, [unknown.origin], dict(self._lines(answer, file))).place(0)
            words = str(unknown)
            if not isinstance(unknown.error, Unwritable):
                kind = type(unknown.error).__name__
                words = f"the flattener's tree is of a form that is not known here ({kind}: {words})"
            raise ModelError(
                f"'{self.name}' of {self.label} was flattened by rumoca {rumoca.version()}, but {words}: {place}."
            ) from None
        return source_of(made, self.label, self._lines(answer, file))

    def _lines(self, answer: Mapping[str, Any], file: Path | None) -> Iterator[tuple[int, Lines]]:
        """Yield where lines end in each file, by the compiler's numbers."""
        own = file.resolve() if file is not None else None
        for number, path in answer.get("names", {}).items():
            if path == self.label:
                yield int(number), lines_of(self._own, "")
            elif path in self.places:
                is_own = self.places[path].file.resolve() == own
                yield int(number), lines_of(self.texts[path], "" if is_own else path)
