"""Finding a C compiler and running it.

Looked for in this order: the command in the environment variable ``CC``, ``cc``, ``gcc``, ``clang``, and the compiler
that the ``ziglang`` wheel brings. One of them must be there for what is not in the cache; ``GRISAILLE_COMPILER=none``
asks that nothing be built. The compiler runs without a shell, in a fresh private
directory, on files that hold nothing a user named.

No ``-march=native`` (a cache may be shared by unlike machines), no fast-math and no contraction of a·b + c: the same
source gives the same digits everywhere, up to the C library's elementary functions.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grisaille.errors import CompilationError

TIME_LIMIT = 900.0
"""Seconds after which a compiler is given up."""

LIBRARY_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

OBJECT_SUFFIX = ".o"
SHARED_FLAG = "-shared"
FOR_DEBUGGERS = "-g"

COMPILER_REMEDY = 'Install one with: pip install "grisaille[compiler]" (or set CC to the command of a C compiler).'


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C, and the text that distinguishes its results from another compiler's."""

    command: tuple[str, ...]
    identity: str

    def build(self, sources: Mapping[str, str], main: str, flags: tuple[str, ...], kept: Path | None = None) -> bytes:
        """Return the shared library made from ``sources[main]``; the other sources are its headers.

        kept : where a debugger finds them

        Raises ``CompilationError`` with the compiler's words when it fails.
        """
        return self._made(_encoded(sources), [*flags, SHARED_FLAG, main], kept, *_libraries())

    def compile(self, sources: Mapping[str, str], main: str, flags: tuple[str, ...], kept: Path | None = None) -> bytes:
        """Return the object made from ``sources[main]``, to be linked with others."""
        return self._made(_encoded(sources), [*flags, "-c", main], kept)

    def link(self, objects: Sequence[bytes], flags: tuple[str, ...]) -> bytes:
        """Return the shared library made of objects."""
        files = {f"part{k}{OBJECT_SUFFIX}": content for k, content in enumerate(objects)}
        return self._made(files, [*flags, SHARED_FLAG, *files], None, *_libraries())

    def _made(self, files: Mapping[str, bytes], words: list[str], kept: Path | None, *libraries: str) -> bytes:
        with _working_folder() as folder:
            try:
                for file, content in files.items():
                    (folder / file).write_bytes(content)
            except OSError as error:
                raise CompilationError(
                    f"Generated code cannot be written to {folder}: {error.strerror or error}. Make room, or set "
                    f"TMPDIR to a folder on another disk."
                ) from error
            target = folder / f"built{LIBRARY_SUFFIX}"
            # the folder goes with the build: debuggers are told where the same files stay
            moved = [] if kept is None else [f"-fdebug-prefix-map={folder.resolve()}={kept}"]
            self._run([*self.command, *words, *moved, "-o", target.name, *libraries], folder)
            try:
                return target.read_bytes()
            except OSError as error:
                raise CompilationError(f"{shlex.join(self.command)} reported success but wrote no library.") from error

    def _run(self, command: list[str], folder: Path) -> None:
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompilationError(f"The C compiler could not be run: {error}. {COMPILER_REMEDY}") from error
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip() or "(it said nothing)"
            raise CompilationError(
                f"Building generated code failed: {shlex.join(command)} ended with code {done.returncode} and said:\n"
                f"{_shortened(words)}\n"
                "The compiler is too old or broken, or this is an error in grisaille. To use another compiler, set CC."
            )


def _encoded(sources: Mapping[str, str]) -> dict[str, bytes]:
    return {file: text.encode() for file, text in sources.items()}


@contextmanager
def _working_folder() -> Iterator[Path]:
    """Yield a folder for one build, which goes with it."""
    try:
        place = tempfile.TemporaryDirectory(prefix="grisaille-", ignore_cleanup_errors=True)
    except OSError as error:
        raise CompilationError(
            f"There is no folder for temporary files to build generated code in: {error.strerror or error}. Set TMPDIR "
            f"to a folder of yours."
        ) from error
    with place:
        yield Path(place.name)


def flags(optimization: str = "-O2") -> tuple[str, ...]:
    """Return the options of every build."""
    common = (optimization, "-std=c99", "-ffp-contract=off", "-fvisibility=hidden", "-w")
    return common if sys.platform == "win32" else (*common, "-fPIC")


def find_compiler() -> Compiler | None:
    """Return the compiler to use now, or ``None``. The environment is read at each call, versions are asked only
    once.
    """
    if is_switched_off():
        return None
    wished = os.environ.get("CC", "").strip()
    if wished:
        return _from_environment(wished)
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path is not None and (compiler := _identified((path,))) is not None:
            return compiler
    return _ziglang()


def is_switched_off() -> bool:
    """Return whether ``GRISAILLE_COMPILER=none`` asks that nothing be built."""
    return os.environ.get("GRISAILLE_COMPILER", "").strip().lower() == "none"


def _from_environment(wished: str) -> Compiler:
    try:
        words = shlex.split(wished, posix=os.name != "nt")
    except ValueError as error:
        raise CompilationError(f"CC={wished!r} is not a command line: {error}.") from error
    path = shutil.which(words[0])
    compiler = None if path is None else _identified((path, *words[1:]))
    if compiler is None:
        why = "is not on PATH" if path is None else "does not answer --version as a C compiler does"
        raise CompilationError(f"CC={wished!r}: {words[0]} {why}. Correct CC, or unset it to use cc, gcc or clang.")
    return compiler


@cache
def _identified(command: tuple[str, ...]) -> Compiler | None:
    try:
        answer = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, errors="replace", timeout=60.0, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    if answer.returncode != 0 or not answer.stdout.strip():
        return None
    return Compiler(command, f"{shlex.join(command[1:])}|{answer.stdout.strip()}")


def _ziglang() -> Compiler | None:
    if importlib.util.find_spec("ziglang") is None:
        return None
    # left to itself zig compiles for the very processor it runs on
    command = (sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline")
    return Compiler(command, f"ziglang {importlib.metadata.version('ziglang')} {' '.join(command[3:])}")


def _libraries() -> tuple[str, ...]:
    return () if sys.platform == "win32" else ("-lm",)


def _shortened(words: str, limit: int = 4000) -> str:
    return words if len(words) <= limit else words[:limit] + "\n[…]"
