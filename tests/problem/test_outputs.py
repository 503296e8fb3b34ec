"""``[outputs.y]`` of problem.toml: laws of measurements with names of the model, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from problem.folders import PROBLEM, table, write

import grisaille as gr
from grisaille.problem import create_from_csv, lint

LAW = """
[outputs.y]
distribution = { kind = "censored", of = { kind = "student", df = 4, scale = "k" } }
"""


def test_laws_and_names_of_the_model(tmp_path: Path) -> None:
    problem = gr.load_problem(write(tmp_path, PROBLEM + LAW))
    assert "y = level [m]  Censored(of=Student(df=4, scale=k))" in str(problem.model)
    marked = table().replace("\n9.0,0.2,", "\n9.0,0.2,<")
    (tmp_path / "data" / "run.csv").write_text(marked, "utf-8")
    assert gr.load_problem(tmp_path).experiments[0].marks["y"].sum() == -1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[outputs.z]\nnoise = 0.1', "'z' is not an output of Tank. It has: y."),
        ('[outputs.y]\nnoise = "kk"', "'kk' is not a parameter, an input or a variable of Tank. Did you mean 'k'?"),
        ('[outputs.y]\nnoise = 0.1\ndistribution = { kind = "poisson" }', "has both noise and distribution"),
        ("[outputs.y]", "has neither noise nor distribution"),
        ('[outputs.y]\ndistribution = { kind = "poison" }', 'Did you mean "poisson"?'),
        ('[outputs.y]\ndistribution = { kind = "laplace" }', "a laplace distribution has scale, got none"),
        ('[outputs.y]\ndistribution = { kind = "laplace", scale = -1 }', "scale must be positive, got -1.0"),
        ('[outputs.y]\ndistribution = { kind = "laplace", scale = true }', "give a number, or the name of a parameter"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_once(tmp_path: Path, text: str, said: str) -> None:
    found = lint(write(tmp_path, f"{PROBLEM}\n{text}\n"))
    assert len(found.errors) == 1, str(found)
    assert said in str(found.errors[0]) and "outputs" in str(found.errors[0])


def test_cells_with_limits_need_a_law(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "data" / "run.csv").write_text(table().replace("\n9.0,0.2,", "\n9.0,0.2,<"), "utf-8")
    (error,) = lint(tmp_path).errors
    assert "1 sample of output 'y' is known by a limit alone" in str(error)


def test_first_models_of_files_with_limits_are_censored(tmp_path: Path) -> None:
    t, rng = np.linspace(0, 10, 31), np.random.default_rng(0)
    y = 3 * np.exp(-t / 3) + 0.1 + 0.1 * rng.normal(size=31)
    cells = ["<0.4" if v < 0.4 else f"{v:.4f}" for v in y]
    rows = "".join(f"{a:g},{c},1\n" for a, c in zip(t, cells, strict=True))
    (tmp_path / "run.csv").write_text(f"t,conc [mg],pump\n{rows}", "utf-8")
    read = create_from_csv(tmp_path / "run.csv", tmp_path / "mine")
    assert [c.name for c in read.outputs] == ["conc"] and [c.name for c in read.inputs] == ["pump"]
    assert lint(tmp_path / "mine").errors == []
    problem = gr.load_problem(tmp_path / "mine")
    assert "Censored(of=Normal(std=sigma_conc))" in str(problem.model) and "sigma_conc" in problem.estimate
