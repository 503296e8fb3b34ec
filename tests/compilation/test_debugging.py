"""Code that can be looked at: comments that no text of a user ends, sources that are kept, builds for debuggers."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tasks import task_of

import grisaille as gr
from grisaille import der
from grisaille.cache import Cache
from grisaille.cache_folder import folder
from grisaille.compilation import (
    CSource,
    Status,
    Task,
    build_cache,
    build_kernel,
    c_source,
    differentiate,
    find_compiler,
    kernel,
    linked_sources,
)
from grisaille.compilation.debugging import c_comment, readable_files
from grisaille.compilation.schemes import EXPLICIT, IMPLICIT, all_schemes
from grisaille.demo import Pendulum
from grisaille.errors import CompilationError
from grisaille.structure import structure_of

from .systems import HANGING, PENDULUM, implicit_decay, pendulum

HOSTILE = (
    "x*/ int injected = 1; /*", "*/", "/*/", "**/", "*\\\n/", "*??/\n/", "a??/", "????/", "ends with \\", "*\r\n/",
    "*\x00/", "*\u2028/ injected", "\u202e/* turned */", "é θ", "\ud800", "%:define injected", "// \\", "*" * 300 + "/",
    "",
)  # fmt: skip
PIECES = ("*", "/", "\\", "\n", "\r", "?", "??/", " ", "a", "\u2029", "*/", "/*", "//", "\x0b", "\x85")
TRIGRAPHS = {"/": "\\", "=": "#", "(": "[", ")": "]", "'": "^", "<": "{", "!": "|", ">": "}", "-": "~"}


def without_comments(text: str) -> str:
    """What a compiler is left with: trigraphs, joined lines, then comments, as the standard orders them."""
    text = re.sub(r"\?\?([=/'()!<>-])", lambda m: TRIGRAPHS[m[1]], text)
    text = re.sub(r"\\\r?\n", "", text)
    return re.sub(r" *(/\*.*?\*/|//[^\n]*)", "", text, flags=re.DOTALL)


def random_texts(count: int) -> list[str]:
    draw = random.Random(5)
    return ["".join(draw.choices(PIECES, k=draw.randrange(1, 12))) for _ in range(count)]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_ends_its_comment(text: str) -> None:
    found = c_comment(text)
    assert found.isprintable() and "\\" not in found and "??" not in found
    assert found.index("*/") == len(found) - 2 and found.rindex("/*") == 0 and len(found) < 400
    assert without_comments(f"{found}\nint kept;") == "\nint kept;"


def test_compilers_leave_what_stands_between_comments_of_random_texts(tmp_path: Path) -> None:
    """With trigraphs, and warnings about comments in comments made errors."""
    texts = [*(t for t in HOSTILE if t != "\ud800"), *random_texts(400)]
    lines = [f"{c_comment(t)} int kept_{k} = {k}; {c_comment(t)}" for k, t in enumerate(texts)]
    assert without_comments("\n".join(lines)).split() == without_comments(
        "\n".join(f"int kept_{k} = {k};" for k in range(len(texts)))
    ).split()  # fmt: skip
    total = " + ".join(f"kept_{k}" for k in range(len(texts)))
    check = f"typedef char right[({total}) == {sum(range(len(texts)))} ? 1 : -1];"
    lines = [line.replace("int kept_", "enum { kept_").replace("; /*", " }; /*") for line in lines]
    (tmp_path / "comments.c").write_text("\n".join([*lines, check, ""]), encoding="utf-8")
    command = [*find_compiler().command, "-std=c99", "-Wcomment", "-Werror=comment", "-c", "comments.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Ball(gr.Model):
    h, v = gr.Variable(1.0), gr.Variable(0.0)
    g = gr.Parameter(9.81)
    equations = [der(h) == v, der(v) == -g, gr.when(h < 0, gr.reinit(v, -0.8 * v))]


class Both(gr.Model):
    k = gr.Parameter(1.3)
    x, v, force, drag = gr.Variable(0.4), gr.Variable(0.0), gr.Variable(), gr.Variable()
    equations = [der(x) == v, force + 0.1 * force**3 == k * gr.sin(x), der(v) == -force - drag, drag == 0.1 * v]


class Rod(gr.Model):
    """Flows that are solved for by iteration, so many that matrices are kept as their nonzeros."""

    T, flow = gr.Variable(0.5, size=80), gr.Variable(size=80)
    equations = [
        flow[0] + 0.01 * flow[0] ** 3 == T[0],
        flow[1:] + 0.01 * flow[1:] ** 3 == 50 * (T[1:] - T[:-1]),
        der(T)[:-1] == flow[1:] - flow[:-1],
        der(T)[-1] == -flow[-1],
    ]


@pytest.mark.parametrize("model", [Pendulum, Ball, Both, Rod])
def test_nothing_but_comments_is_added(model: type[gr.Model]) -> None:
    structure = structure_of(model())
    events = structure.jumps.events
    system = structure.system if events is None else events.system
    for sparse in (False, True) if events is None else (False,):
        functions = differentiate(system, sensitive=True, sparse=sparse)
        plain = c_source(system, True, functions, sparse, words=False)
        shown = c_source(system, True, functions, sparse, words=True)
        assert without_comments(shown).split() == without_comments(plain).split()
        bare = [re.sub(r" /\*[^\n]*\*/$", "", line) for line in shown.split("\n") if not line.startswith("/* ")]
        assert bare == [line for line in plain.split("\n") if not line.startswith("/* ")]
        assert plain.isascii() and shown.count("/*") > plain.count("/*") + 20


def test_equations_stand_beside_what_they_became() -> None:
    text = readable_files(structure_of(Pendulum()), None)["model.c"]
    assert "/* Pendulum: the functions of (t, x, z, u, p) */" in text
    assert re.search(r"const double a\d+ = x\[2\]; /\* vx \*/", text)
    assert "/* x[0] = x */" in text and "/* p[2] = L */" in text and "/* u[1] = gust */" in text
    assert re.search(r"out\[0\] = a\d+; /\* der\(x\), from der\(x\) == vx \*/", text)
    assert "/* m*der(vx) == tension*x - k*abs(vx)*vx + u + gust */" in text
    assert "der(vx), from 3 equations that are solved together */" in text
    assert "/* 0 = residual of d/dt [x**2 + y**2 == L**2] */" in text
    assert "out[10] = " in text and "/* d(der(vx))/d(vx) */" in text
    both = readable_files(structure_of(Both()), None)["model.c"]
    assert "/* drag, from drag == 0.1*v */" in both and "0 = residual of f" in both
    ball = readable_files(structure_of(Ball()), None)["model.c"]
    assert re.search(r"gr_W: conditions.*?/\* h < 0 \*/", ball, re.DOTALL) and "der(v), from der(v) == -g" in ball


@pytest.mark.parametrize("model", [Pendulum, Both])
def test_derivatives_of_sparse_matrices_are_named_where_they_stand(model: type[gr.Model]) -> None:
    """Each nonzero of J by the row and the column that CasADi has it in."""
    system = structure_of(model()).system
    functions = differentiate(system, sparse=True)
    text = linked_sources(system, functions, words=True)(EXPLICIT)[1].text
    rows, columns = functions["J"].sparsity_out(0).get_triplet()
    unknowns = (*system.state_names, *system.implicit_names)
    left = [system.origins[n][0] for n in system.state_names] + [f"residual of {t}" for t in system.residual_texts]
    body = text[text.index("gr_J: ") :]
    found = re.findall(r"out\[(\d+)\] = [^\n]*; /\* ([^\n]*) \*/", body[: body.index("\n}")])
    assert len(found) == len(rows) < len(left) * len(unknowns)
    assert all(words == f"d({left[rows[int(k)]]})/d({unknowns[columns[int(k)]]})" for k, words in found)


def test_equations_that_repeat_are_one_loop_with_the_first_of_them() -> None:
    text = readable_files(structure_of(Rod()), None)["model.c"]
    line = next(line for line in text.split("\n") if "for (long k = 0; k < 79" in line and "out[0 + 1 * k]" in line)
    assert line.endswith("/* der(T[0]), from der(T[0]) == flow[1] - flow[0]; and 78 more like it */")
    assert "out[80] = v4; } /* 0 = residual of flow[0] + 0.01*flow[0]**3 == T[0] */" in text


def test_a_scheme_shows_everything_it_is_built_from() -> None:
    for scheme in all_schemes():
        (text,) = readable_files(structure_of(Both()), scheme).values()
        assert f'#include "{scheme.header}.h"' in text and f"what the {scheme} method is built from" in text
    assert list(readable_files(structure_of(Rod()), IMPLICIT)) == [
        "integrator.c",
        "functions.c",
        "by_parameters.c",
        "solvers.c",
    ]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(kernel, "_known", Cache())
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GRISAILLE_DEBUG", "1")
    return tmp_path / "cache"


def swing(**options: bool) -> Task:
    k = build_kernel(pendulum(), **options)
    task = task_of(k, 0.0, 2.0, p=PENDULUM, x=HANGING, times=[1.0, 2.0], rtol=1e-8)
    k.call(EXPLICIT, task)
    return task


def test_sources_are_kept_where_the_message_says_and_digits_stay(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(UserWarning, match="generated C is kept in") as said:
        looked_at = swing()
    (kept,) = place.glob("*.sources")
    assert str(kept) in str(said[0].message) and kept.parent == folder()
    text = (kept / "model.c").read_text(encoding="utf-8")
    assert "/* tension */" in text and (kept / "gr_explicit.h").is_file()
    (library,) = place.glob("*-*-*.so") if sys.platform.startswith("linux") else (None,)
    if library is not None:
        assert b".debug_info" in library.read_bytes() and str(kept).encode() in library.read_bytes()
    assert build_cache.cache_contents().bytes > sum(f.stat().st_size for f in kept.iterdir())
    monkeypatch.delenv("GRISAILLE_DEBUG")
    assert np.array_equal(swing().y, looked_at.y)
    build_cache.clear()
    assert list(place.iterdir()) == []


def test_hostile_names_are_compiled_as_comments(place: Path) -> None:
    names = "".join(HOSTILE), HOSTILE[0]
    system = implicit_decay(p=names[0], u=names[1])
    system = replace(system, residual_texts=(HOSTILE[3],), observed_names=(HOSTILE[5],), state_names=(HOSTILE[4],))
    with pytest.warns(UserWarning, match="kept in"):
        k = build_kernel(system)
        task = task_of(
            k, 0.0, 1.0, p=[0.5], x=[1.0], z=[0.7], breaks=[0.0, 1.0], coef=np.zeros((1, 1, 1)), times=[1.0], rtol=1e-8
        )
        k.call(EXPLICIT, task)
    assert task.status == Status.DONE and task.y[0, 0] > 0
    (text,) = (path.read_text(encoding="utf-8") for path in place.glob("*.sources/model.c"))
    assert "x* / int injected = 1; / *" in text and "int injected" not in without_comments(text)


@pytest.mark.parametrize("value", [None, "", "0", "no"])
def test_ordinary_builds_are_what_they_were(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRISAILLE_DEBUG", raising=False)
    if value is not None:
        monkeypatch.setenv("GRISAILLE_DEBUG", value)
    system = pendulum()
    text = c_source(system, False, differentiate(system))
    assert "tension" not in text and "-g" not in CSource(text, 10).flags
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        swing()


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_sources_do_not_leave_the_cache_folder_through_a_link(place: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder() / build_cache.sources_folder("a" * 64).name).symlink_to(elsewhere)
    with pytest.raises(CompilationError, match="is a link"):
        build_cache.keep_sources("a" * 64, {"model.c": "int x;"})
    assert list(elsewhere.iterdir()) == []
    build_cache.clear()
    assert elsewhere.is_dir() and not list(place.glob("*.sources"))


def test_kept_sources_count_and_go_when_there_is_no_room(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = build_cache.keep_sources("b" * 64, {"model.c": "x" * 1000})
    os.utime(old, (1e9, 1e9))
    monkeypatch.setattr(build_cache, "MAX_CACHE_BYTES", 1500)
    new = build_cache.keep_sources("c" * 64, {"model.c": "y" * 1000})
    assert new.is_dir() and not old.exists() and build_cache.cache_contents().bytes == 1000
