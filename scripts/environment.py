"""The local virtual environment ``.venv`` that the scripts share: made on first use, brought up to date when needed.

Needs nothing but the standard library of Python 3.11 or newer, because it runs before anything is installed. A stamp
file per set of extras holds a hash of ``pyproject.toml`` and the interpreter: while it matches, nothing is installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
COMPILERS = ("cc", "gcc", "clang")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")


def prepare(*extras: str) -> Path:
    """The Python of ``.venv`` with grisaille and ``extras`` installed, editable; idempotent.

    Where the machine has no C compiler the extra ``compiler`` brings one.
    """
    _require_python()
    if not os.environ.get("CC") and not any(map(shutil.which, COMPILERS)):
        extras = tuple({*extras, "compiler"})
    if not _works():
        _create()
    stamp = VENV / f"installed-{'-'.join(sorted(extras)) or 'core'}"
    wanted = _fingerprint()
    if not stamp.is_file() or stamp.read_text() != wanted:
        _install(extras)
        stamp.write_text(wanted)
    return PYTHON


def prepare_browser() -> None:
    """A headless Chromium inside ``.venv`` for the tests of reports, unless the machine has one; needs the extra test.

    Where none can be had, those tests are skipped with a notice; it is tried again when the requirements change.
    """
    tried = VENV / "browser-tried"
    if any(map(shutil.which, CHROMIUMS)) or (tried.is_file() and tried.read_text() == _fingerprint()):
        return
    print("Installing a headless Chromium for the tests of reports …", flush=True)
    if run(PYTHON, "-m", "playwright", "install", "--only-shell", "chromium", limit=300) != 0:
        print("None could be installed: tests in a browser will be skipped.", flush=True)
    tried.write_text(_fingerprint())


def run(*command: str | Path, limit: float | None = None) -> int:
    """Runs a command in the project's folder with ``.venv`` first on the path; gives its exit status.

    limit : seconds after which it is stopped, with status 124
    """
    environment = dict(os.environ, VIRTUAL_ENV=str(VENV), PATH=f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}")
    environment["NO_MKDOCS_2_WARNING"] = "1"
    environment.setdefault("PLAYWRIGHT_BROWSERS_PATH", str(VENV / "browsers"))
    for name in ("PYTHONHOME", "PYTHONPATH"):
        environment.pop(name, None)
    words = [str(part) for part in command]
    try:
        return subprocess.run(words, cwd=ROOT, env=environment, check=False, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        return 124


def _require_python() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what tells users of older versions
        sys.exit(f"grisaille needs Python 3.11 or newer; this is {sys.version.split()[0]} at {sys.executable}.")


def _works() -> bool:
    """Whether ``.venv`` holds a Python that starts and has pip (an interrupted creation leaves one without)."""
    return PYTHON.is_file() and subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0


def _create() -> None:
    """Debian and Ubuntu deliver Python without ensurepip: then the system's own pip, if there is one, brings it."""
    print(f"Making a virtual environment in {VENV} …", flush=True)
    problem = _venv()
    if problem and not _venv("--without-pip"):
        try:
            _fetch_pip()
            problem = ""
        except (OSError, subprocess.CalledProcessError) as error:
            problem += f"\nNor could pip be fetched: {error}"
    if problem:
        shutil.rmtree(VENV, ignore_errors=True)
        sys.exit(
            f"{problem}\nCould not make a virtual environment with {sys.executable}. On Debian and Ubuntu, "
            f"`sudo apt install python3-venv` completes Python; then run this command again.\n"
            f"Any other Python 3.11 or newer will do as well: `/path/to/python3 {sys.argv[0]}`."
        )


def _venv(*options: str) -> str:
    """Makes ``.venv`` anew; gives what went wrong, or nothing."""
    shutil.rmtree(VENV, ignore_errors=True)
    done = subprocess.run([sys.executable, "-m", "venv", *options, VENV], capture_output=True, text=True)
    return f"{done.stdout}{done.stderr}".strip() or "venv failed" if done.returncode else ""


def _fetch_pip() -> None:
    """pip for the new environment, by the pip that this Python has."""
    pip = [sys.executable, "-m", "pip", "--python", PYTHON, "install", "--quiet", "--disable-pip-version-check", "pip"]
    subprocess.run(pip, check=True)


def _install(extras: tuple[str, ...]) -> None:
    target = f".[{','.join(sorted(extras))}]" if extras else "."
    print(f"Installing grisaille {target} into {VENV} …", flush=True)
    pip = (PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--editable", target)
    if run(*pip) != 0:
        sys.exit("The installation failed; pip's own words are above. Once fixed, run the same command again.")


def _fingerprint() -> str:
    """Changes with the requirements, the interpreter and the folder (an editable installation remembers its place)."""
    text = (ROOT / "pyproject.toml").read_bytes() + f"{sys.version}\n{ROOT}".encode()
    return hashlib.sha256(text).hexdigest()
