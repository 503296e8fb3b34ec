"""Building and loading: cache hits, repairs, many processes at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from grisaille.compilation import CSource, build_library, build_linked, compiler, headers_of, shared_library
from grisaille.errors import CompilationError

TEXT = '#include "gr_task.h"\nGR_API long answer(void) { return 42; }\n'


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_compiler(monkeypatch):
    """A machine on which no compiler can be found."""

    def hide() -> None:
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.delenv("GRISAILLE_COMPILER", raising=False)
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
        assert compiler.find_compiler() is None

    return hide


def test_a_second_build_needs_no_compiler(place, no_compiler):
    first = build_library(TEXT, 0)
    assert first is not None and first.function("answer")() == 42
    no_compiler()
    again = build_library(TEXT, 0)
    assert again is not None and again.path == first.path
    with pytest.raises(CompilationError, match="no C compiler was found"):
        build_library(TEXT + "/* changed */", 0)


def test_the_key_covers_headers_flags_and_compiler(place, monkeypatch):
    paths = {build_library(TEXT, 0).path}
    paths.add(build_library(TEXT, shared_library.MIN_INSTRUCTIONS_FOR_O1 + 1).path)
    monkeypatch.setattr(shared_library, "_header", lambda name: f"/* another {name} */\n#define GR_API\n")
    paths.add(build_library(TEXT.replace("GR_API", 'GR_API __attribute__((visibility("default")))'), 0).path)
    monkeypatch.undo()
    monkeypatch.setenv("GRISAILLE_CACHE", str(place))
    found = compiler.find_compiler()
    monkeypatch.setattr(shared_library, "find_compiler", lambda: compiler.Compiler(found.command, "the same, upgraded"))
    paths.add(build_library(TEXT, 0).path)
    assert len(paths) == 4


def test_a_truncated_library_is_built_again(place):
    path = build_library(TEXT + "/* truncated */", 0).path
    # a loaded file must not be cut under the process: replace it, as a broken copy would
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])
    again = build_library(TEXT + "/* truncated */", 0)
    assert again.function("answer")() == 42 and again.path.stat().st_size == len(content)


def test_what_two_libraries_share_is_compiled_once(place, monkeypatch):
    compiled = []
    once = compiler.Compiler.compile
    monkeypatch.setattr(
        compiler.Compiler, "compile", lambda c, s, *more: compiled.append(s["model.c"]) or once(c, s, *more)
    )
    shared = CSource('#include "gr_task.h"\nextern const long of_it; GR_API long answer(void) { return of_it; }\n', 0)
    parts = [CSource(f"const long of_it = {number};\n", 0) for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        assert build_linked([shared, part]).function("answer")() == number
    assert sorted(compiled) == sorted(s.text for s in (shared, *parts))
    next(place.glob("*.o")).write_bytes(b"damaged")
    next(place.glob("*.o")).write_bytes(b"damaged")
    again = build_linked([shared, parts[0], CSource("const long more = 3;\n", 0)])
    assert again.function("answer")() == 1 and shared_library.build_cache.cache_contents().files == 3


def test_four_processes_may_build_at_once(place):
    code = (
        "from grisaille.compilation.shared_library import build_library\n"
        f"assert build_library({TEXT + '/* together */'!r}, 0).function('answer')() == 42\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    together = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(4)]
    assert [process.wait(120) for process in together] == [0] * 4
    assert not list(place.glob(".unfinished-*")) and 1 <= len(list(place.iterdir())) <= 4


@pytest.mark.skipif(os.name != "posix", reason="folders are locked by POSIX calls")
def test_what_is_asked_for_at_once_is_built_once(place, monkeypatch):
    """By processes as by threads, each with a lock of its own: those of a study build the same file."""
    built = []
    made = compiler.Compiler._made
    monkeypatch.setattr(compiler.Compiler, "_made", lambda *given: built.append(1) or time.sleep(0.2) or made(*given))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: build_library(TEXT, 0), range(4)))
    assert len(built) == 1 and len({library.path for library in found}) == 1
    shared, own = CSource(TEXT, 0, shared="-O1"), "GR_API long own_{}(void) {{ return 0; }}\n"
    parts = [[shared, CSource('#include "gr_task.h"\n' + own.format(k), 1)] for k in range(3)]
    built.clear()
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(build_linked, parts))
    assert len(built) == 1 + 3 + 3  # the shared object, own ones, and what links them


def test_headers_are_followed():
    found = headers_of('#include "gr_step.h"\n#include <math.h>\n')
    assert set(found) == {"gr_step.h", "gr_task.h", "gr_wide.h", "gr_normal.h", "gr_philox.h", "gr_quick.h"}
    with pytest.raises(CompilationError, match=r"gr_absent\.h is missing"):
        headers_of('#include "gr_absent.h"')


def test_structures_of_different_size_are_noticed(place):
    built = build_library(TEXT, 0)
    with pytest.raises(CompilationError, match=r"answer\(\) says 42 bytes"):
        built.check_size("answer")


def test_switched_off_runs_what_is_in_the_cache_and_builds_nothing(place, monkeypatch):
    built = build_library(TEXT, 0)
    monkeypatch.setenv("GRISAILLE_COMPILER", "none")
    assert build_library(TEXT, 0).path == built.path
    with pytest.raises(CompilationError, match="GRISAILLE_COMPILER=none forbids to build what is not in the cache"):
        build_library(TEXT + "/* another */", 0)
    assert [file for file in place.iterdir() if file.suffix == built.path.suffix] == [built.path]
