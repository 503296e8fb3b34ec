"""Full Modelica, made flat by the ``rumoca`` compiler: classes, inheritance, connections become one list of equations.

The compiler gets the text and those files of the user's libraries that the text needs, no others. What it gives is
written down as Base Modelica, which is read like any other, and kept for the next time (``keeping``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from grisaille.errors import ModelError
from grisaille.modelica.full import keeping, rumoca
from grisaille.modelica.full.derivatives import with_named_derivatives
from grisaille.modelica.full.explaining import damaged, explained
from grisaille.modelica.full.flat_expressions import Unwritable
from grisaille.modelica.full.flat_text import FlatText, flat_text
from grisaille.modelica.full.libraries import Names, Place, libraries_in, needed
from grisaille.modelica.full.mending import mended
from grisaille.modelica.full.places import FlatSource, Lines, lines_of, source_of


def flatten(
    text: str, label: str, name: str, roots: Sequence[Path], file: Path | None = None
) -> tuple[str, FlatSource]:
    """The Base Modelica text of the model ``name``.

    roots : folders of libraries, and libraries themselves
    file : the file in one of them that the user has named, whose lines are told by number alone
    """
    rumoca.check()
    entry = keeping.Entry([text, label, name, str(file), *(str(root.resolve()) for root in roots), rumoca.version()])
    kept = entry.found()
    if kept is not None:
        source = FlatSource.from_dict(kept, label)
        return source.text, source
    libraries = libraries_in(roots)
    text = mended(with_named_derivatives(text))
    answer, files = _answer(text, label, name, libraries)
    source = _written(answer, text, label, name, files, file)
    entry.keep(source.as_dict(), roots, libraries)
    return source.text, source


def _answer(text: str, label: str, name: str, libraries: Names) -> tuple[dict[str, Any], list[Place]]:
    """The flat tree; files of libraries that are no Modelica are left out, and named."""
    without: dict[str, str] = {}
    while True:
        files = [place for place in needed(text, libraries) if place.relative.as_posix() not in without]
        answer = rumoca.ask(text, label, name, files)
        if "error" not in answer:
            for path, words in without.items():
                warnings.warn(f"{path} is not read, {words}; '{name}' does not need it.", UserWarning, stacklevel=2)
            return answer, files
        worse = {path: words for path, words in damaged(answer).items() if path not in without}
        if not worse:
            bad = "".join(f"\n  {path}, {words}" for path, words in without.items())
            raise ModelError(explained(answer, text, label, name, files) + (bad and f"\nNot read:{bad}"))
        without |= worse


def _written(
    answer: Mapping[str, Any], text: str, label: str, name: str, files: Sequence[Place], file: Path | None
) -> FlatSource:
    flat = answer["flat"]
    try:
        made = flat_text(flat, name, {int(number): text for number, text in answer.get("files", {}).items()})
    except Unwritable as error:
        raise ModelError(f"'{name}' of {label} was flattened, but {error}.") from None
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ModelError(
            f"'{name}' of {label} was flattened into a tree of a form that is not known here "
            f"({type(error).__name__}: {error}; rumoca {rumoca.version()})."
        ) from None
    return _placed(made, answer, text, label, files, file)


def _placed(
    made: FlatText, answer: Mapping[str, Any], text: str, label: str, files: Sequence[Place], file: Path | None
) -> FlatSource:
    """The text with the files in which its lines stand, by the compiler's numbers."""
    own = file.resolve() if file is not None else None
    known = {place.relative.as_posix(): place for place in files}

    def lines() -> Iterator[tuple[int, Lines]]:
        for number, path in answer.get("names", {}).items():
            if path == label:
                yield int(number), lines_of(text, "")
            elif (place := known.get(path)) is not None:
                yield int(number), lines_of(mended(place.text), "" if place.file.resolve() == own else path)

    return source_of(made, label, lines())
