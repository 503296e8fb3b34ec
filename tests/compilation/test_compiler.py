"""Finding compilers, running them, and saying what went wrong."""

from __future__ import annotations

import ctypes
import importlib.util
import sys

import pytest

from grisaille.compilation import Compiler, compiler, find_compiler, flags
from grisaille.errors import CompilationError

SOURCE = """
#if defined(_WIN32)
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
long answer(void) { return 42; }
"""


def runs(library: bytes, folder) -> bool:
    path = folder / f"answer{compiler.LIBRARY_SUFFIX}"
    path.write_bytes(library)
    return ctypes.CDLL(str(path)).answer() == 42


def test_a_build_runs(tmp_path):
    found = find_compiler()
    assert found is not None and found.identity
    assert runs(found.build({"model.c": SOURCE}, "model.c", flags()), tmp_path)


def test_a_failing_build_carries_the_compilers_words_and_remedies():
    found = find_compiler()
    assert found is not None
    with pytest.raises(CompilationError, match=r"undeclared_thing[\s\S]*set CC"):
        found.build({"model.c": "long answer(void) { return undeclared_thing; }"}, "model.c", flags())


def test_a_compiler_that_writes_nothing_is_an_error():
    silent = Compiler((sys.executable, "-c", "pass"), "silent")
    with pytest.raises(CompilationError, match="wrote no library"):
        silent.build({"model.c": SOURCE}, "model.c", flags())


def test_a_compiler_that_cannot_be_started_is_an_error():
    with pytest.raises(CompilationError, match="could not be run"):
        Compiler(("/nowhere/cc",), "gone").build({"model.c": SOURCE}, "model.c", flags())


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("no-such-compiler-1 -m64", "is not on PATH"),
        ('gcc "', "not a command line"),
        (sys.executable + " -c 1/0", "--version"),
    ],
)
def test_cc_is_checked(monkeypatch, wish, words):
    monkeypatch.delenv("GRISAILLE_COMPILER", raising=False)
    monkeypatch.setenv("CC", wish)
    with pytest.raises(CompilationError, match=words):
        find_compiler()


def test_cc_is_used_and_not_given_to_a_shell(monkeypatch, tmp_path):
    monkeypatch.delenv("GRISAILLE_COMPILER", raising=False)
    trace = tmp_path / "trace"
    monkeypatch.setenv("CC", f"cc; touch {trace}")
    with pytest.raises(CompilationError):
        find_compiler()
    assert not trace.exists()


def test_none_switches_compilation_off(monkeypatch):
    monkeypatch.setenv("GRISAILLE_COMPILER", "none")
    assert find_compiler() is None


def test_flags_keep_arithmetic_exact():
    assert "-ffp-contract=off" in flags()
    assert not any("fast-math" in flag or "march" in flag for flag in flags())


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
def test_the_ziglang_wheel_compiles(monkeypatch, tmp_path):
    monkeypatch.delenv("GRISAILLE_COMPILER", raising=False)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compiler.shutil, "which", lambda name: None)
    found = find_compiler()
    assert found is not None and "ziglang" in found.identity
    assert runs(found.build({"model.c": SOURCE}, "model.c", flags()), tmp_path)
