"""The ``rumoca`` compiler, asked in a process of its own for the flat tree of one model.

It sees copies of the files that the model needs, rewritten where it is known to refuse what Modelica allows
(``mending``), in an empty folder: neither other files of the user nor libraries that nobody has named.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from grisaille.errors import ModelError
from grisaille.modelica.full.otherwise import OTHERWISE

VERSION = "0.10"
"""Of rumoca whose flat tree is known here; the extra ``modelica`` pins one."""
LONGEST = 600.0
"""Seconds that the compiler may take."""
COPIES = "libraries"
"""The folder of the copies."""


def is_available() -> bool:
    """Return whether the compiler is installed."""
    return importlib.util.find_spec("rumoca") is not None


def check() -> None:
    """Refuse where the compiler is missing, or another one than is known here."""
    if not is_available():
        raise ModelError(
            f"Full Modelica needs the compiler rumoca, which is not installed: "
            f"`pip install 'grisaille[modelica]'`. {OTHERWISE}"
        )
    if not version().startswith(f"{VERSION}."):
        raise ModelError(
            f"rumoca {version()} is installed; {VERSION} is known here. `pip install 'grisaille[modelica]'`."
        )


@cache
def version() -> str:
    """Return the version that is installed."""
    try:
        return metadata.version("rumoca")
    except metadata.PackageNotFoundError:
        return "of unknown version"


def ask_compiler(text: str, label: str, name: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the compiler's answer: the flat tree and where its parts stand, or what was wrong.

    files : texts of libraries' files by their paths in the library, ``Modelica/Blocks/Math.mo``
    """
    with tempfile.TemporaryDirectory(prefix="grisaille-") as folder:
        copies = Path(folder).resolve() / COPIES
        for path, written in files.items():
            target = copies / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(written, "utf-8", newline="")
        roots = [str(copies)] if copies.is_dir() else []
        answer = run({"text": text, "label": label, "name": name, "roots": roots}, label)
        names = answer.get("names", {})
        answer["names"] = {number: _relative(path, copies) for number, path in names.items()}
        if "error" in answer:
            answer["error"] = str(answer["error"]).replace(f"{copies}{os.sep}", "")
        for said in answer.get("diagnostics") or []:
            said["file"] = _relative(str(said.get("file")), copies)
        return answer


def run(asked: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return runs the compiler once."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path if p)}
    environment.pop("MODELICAPATH", None)  # libraries are those that were named
    child = [sys.executable, "-P", str(Path(__file__).with_name("rumoca_child.py"))]
    try:
        with tempfile.TemporaryDirectory() as nowhere:  # no other files beside it
            done = subprocess.run(
                child, input=json.dumps(asked), capture_output=True, text=True, timeout=LONGEST, env=environment,
                cwd=nowhere, check=False,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ModelError(f"rumoca did not flatten {label} in {LONGEST:g} s. {OTHERWISE}") from None
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        words = [line for line in done.stderr.strip().splitlines() if line.strip()]
        last = words[-1][:300] if words else f"status {done.returncode}"
        raise ModelError(f"rumoca fell while it flattened {label}: {last}. {OTHERWISE}") from None
    return answer


def _relative(path: str, copies: Path) -> str:
    """Return ``Modelica/Blocks/Math.mo`` of a copy; another name as it is."""
    try:
        return Path(path).relative_to(copies).as_posix()
    except ValueError:
        return path
