"""OpenModelica's compiler ``omc``, where it is installed: asked by a script for the Base Modelica of one model.

It runs in an empty folder, for a bounded time, and loads the files of the user's libraries themselves; parameters stay
parameters. Libraries that are named and not among them are asked from ``omc``'s own.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from grisaille.errors import ModelError
from grisaille.modelica.full.libraries import LibraryPlace, Names, needed
from grisaille.modelica.full.mending import without_words
from grisaille.modelica.refusals import ModelicaSource

LONGEST = 600.0
"""Seconds that ``omc`` may take."""
SHOWN = 12
"""Messages that are written out."""
OPTIONS = ("--baseModelica",)
"""As the first argument and in the script; evaluateAllParameters is not among them."""
_TEXT, _SCRIPT, _FLAT, _ERRORS = "text.mo", "flatten.mos", "flat.bmo", "errors.txt"
_MESSAGE = re.compile(r"^(?:\[(?P<place>[^\]]*)\] )?(?:Error|Internal error):? *(?P<words>.+)$", re.MULTILINE)
_PLACE = re.compile(r"(?P<file>.*?):(?P<line>\d+):\d+-\d+:\d+:\w+$")
_LIBRARIES = re.compile(r"(?<![\w.])(Modelica|ModelicaServices|Complex)\s*\.\s*[A-Za-z_]")


def program() -> str | None:
    """Return the program, where it is on the PATH."""
    return shutil.which("omc")


def identity() -> str:
    """Return what tells one installation from another."""
    found = program()
    if found is None:
        return ""
    status = os.stat(found)
    return f"{os.path.realpath(found)} {status.st_size} {status.st_mtime_ns}"


def flatten(text: str, label: str, name: str, libraries: Names) -> ModelicaSource:
    """Return the Base Modelica text of the model ``name``, as ``omc`` gives it."""
    omc = program()
    if omc is None:
        raise ModelError(
            'flattener="omc": there is no omc on the PATH. Install OpenModelica (openmodelica.org), or use '
            'flattener="rumoca".'
        )
    with tempfile.TemporaryDirectory(prefix="grisaille-") as folder:
        place = Path(folder).resolve()
        (place / _TEXT).write_text(text, "utf-8", newline="")
        (place / _SCRIPT).write_text(script(text, name, libraries), "utf-8")
        printed = _run([omc, *OPTIONS, _SCRIPT], place, label)
        flat, errors = _read(place / _FLAT), _read(place / _ERRORS)
    if not flat.strip():
        raise ModelError(_refusal(errors or printed, label, name, place))
    return ModelicaSource(flat, f"{label}, flattened by omc")


def script(text: str, name: str, libraries: Names) -> str:
    """Return what ``omc`` is asked to do."""
    used = dict.fromkeys(_top(place) for place in needed(text, libraries))
    loaded = [f"loadFile({_quoted(str(place.file.resolve()))}, uses = false);" for place in used]
    own = {place.name for place in used}
    named = dict.fromkeys(_LIBRARIES.findall(without_words(text)))
    return "\n".join(
        [
            *(f"setCommandLineOptions({_quoted(option)});" for option in OPTIONS),
            *(f"loadModel({library});" for library in named if library not in own),
            *loaded,
            f"loadFile({_quoted(_TEXT)}, uses = false);",
            f"writeFile({_quoted(_FLAT)}, instantiateModel({name}));",
            f"writeFile({_quoted(_ERRORS)}, getErrorString());",
            "",
        ]
    )


def _top(place: LibraryPlace) -> LibraryPlace:
    return list(place.chain())[-1]


def _quoted(words: str) -> str:
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _run(command: list[str], folder: Path, label: str) -> str:
    """Return what the program prints."""
    try:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise ModelError(f"omc cannot be run: {error.strerror or error}.") from None
    try:
        return process.communicate(timeout=LONGEST)[0]
    except subprocess.TimeoutExpired:
        raise ModelError(f"omc did not flatten {label} in {LONGEST:g} s.") from None
    finally:
        with contextlib.suppress(OSError, AttributeError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def _read(file: Path) -> str:
    return file.read_text("utf-8", errors="replace") if file.is_file() else ""


def _refusal(said: str, label: str, name: str, folder: Path) -> str:
    """Return the words of ``omc``, each message once, with lines of the user's text."""
    found = list(dict.fromkeys(_messages(said, folder)))
    if not found:
        found = [f"  {line}" for line in said.splitlines() if line.strip()][-3:] or ["  it gave no reason"]
    more = [f"  … and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "\n".join([f"'{name}' of {label} cannot be flattened by omc:", *found[:SHOWN], *more])


def _messages(said: str, folder: Path) -> Iterator[str]:
    for message in _MESSAGE.finditer(said):
        place = _PLACE.fullmatch(message["place"] or "")
        if place is None:
            yield f"  {message['words']}"
        else:
            file = Path(place["file"])
            own = file.name == _TEXT and (not file.is_absolute() or file.parent == folder)
            yield f"  {'' if own else f'{file.name}, '}line {place['line']}: {message['words']}"
