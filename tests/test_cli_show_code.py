"""``grisaille show-code``: what it prints, for which schemes, and what mistakes are told."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from grisaille.cli import main

TANK = """
import grisaille as gr
from grisaille import der

class Tank(gr.Model):
    area = gr.Parameter(2.0, "m2")
    k = gr.Parameter(0.5)
    level = gr.Variable(1.0)
    out = gr.Variable()
    equations = [area * der(level) == -out, out + 0.1 * out**3 == k * gr.sqrt(level)]

class Lid(gr.Model):
    a, b = gr.Variable(), gr.Variable()
    equations = [a + b == 1]
"""
QUOTED = """
model Turned
  parameter Real k = 0.5;
  parameter Real '/injected/' = 0.5;
  Real 'a??/'(start = 1.0, fixed = true);
equation
  der('a??/') = -k * '/injected/';
end Turned;
"""
"""Names that make the end of a comment in a product, ``k*/injected/``."""


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plant.py").write_text(TANK)
    return tmp_path / "plant.py"


def test_functions_with_their_equations(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show-code", "plant.py:Tank"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("/* Tank: the functions of (t, x, z, u, p) */\n")
    assert re.search(r"out\[0\] = \S+; /\* der\(level\), from area\*der\(level\) == -out \*/", printed)
    assert "/* 0 = residual of out + 0.1*out**3 == k*sqrt(level) */" in printed and "/* z[0] = out */" in printed
    assert "gr_implicit.h" not in printed
    # the folder of the headers is one that there is
    assert (Path(re.search(r"/\* gr_….h: (.*) \*/", printed)[1]) / "gr_task.h").is_file()


@pytest.mark.parametrize("scheme", ["explicit", "implicit", "frozen-explicit", "frozen-implicit"])
def test_everything_of_a_scheme(scheme: str, plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show-code", "plant.py:Tank", "--scheme", scheme, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["model"], answer["scheme"], list(answer["files"])) == ("Tank", scheme, ["model.c"])
    header = {"explicit": "gr_explicit", "frozen-explicit": "gr_rk4"}.get(scheme, "gr_implicit")
    assert f'#include "{header}.h"\n' in answer["files"]["model.c"]
    # derivatives by parameters, which a fit needs, where building takes long
    assert ("gr_FP: " in answer["files"]["model.c"]) is (header != "gr_rk4")


def test_names_of_a_file_end_no_comment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Turned.mo").write_text(QUOTED)
    status = main(["show-code", str(tmp_path / "Turned.mo")])
    told = capsys.readouterr()
    assert status == 0, told.err
    assert "from der(a? ?/) == -k* /injected/ */" in told.out and "??" not in told.out
    left = re.sub(r"/\*.*?\*/", "", told.out, flags=re.DOTALL)
    assert "injected" not in left and "/*" not in left and "*/" not in left


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plant.py:Tank", "--scheme", "rk45"], "There is no scheme 'rk45'; there are 'auto', 'explicit', 'implicit'"),
        (["plant.py:Tank", "--scheme", "auto"], "'auto' is a choice among schemes: explicit, implicit"),
        (["plant.py:Lid"], "Lid"),
        (["plant.py:Pond"], "Pond"),
        (["pond.py:Tank"], "there is no Python file"),
    ],
)
def test_mistakes(words: list[str], said: str, plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show-code", *words]) == 2
    told = capsys.readouterr()
    assert said in told.err and told.out == ""


@pytest.mark.filterwarnings("default")
def test_a_debugged_simulation_says_where_its_source_is(
    plant: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISAILLE_CACHE", str(plant.parent / "cache"))
    monkeypatch.setenv("GRISAILLE_DEBUG", "1")
    assert main(["simulate", "plant.py:Tank", "--times", "0:1:0.5"]) == 0
    told = capsys.readouterr().err
    kept = Path(re.search(r"generated C is kept in (\S+)", told)[1])
    assert kept.parent == plant.parent / "cache" and "from area*der(level) == -out" in (kept / "model.c").read_text(
        "utf-8"
    )
    assert os.name != "posix" or kept.stat().st_mode & 0o077 == 0
    assert main(["cache", "clear"]) == 0
    assert not kept.exists()
