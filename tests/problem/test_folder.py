"""``gr.load_problem``: what a folder becomes, and that it fits as ``gr.fit`` would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from problem.folders import changed, write

import grisaille as gr
from grisaille.problem import at_values, create, make_method, templates


def test_a_fit_from_a_folder_is_that_of_python(tmp_path: Path) -> None:
    problem = gr.load_problem(write(tmp_path))
    assert problem.estimate == ("k", "start(level)") and problem.guess == {"k": 0.4} and problem.seed == 1
    data = gr.Experiment.from_csv(tmp_path / "data" / "run.csv", time="t", inputs=["inflow"], outputs=["y"])
    fitted = problem.fit()
    directly = gr.fit(problem.model, data, ["k", "start(level)"], gr.OutputError(), guess={"k": 0.4},
                      bounds={"k": (0.01, 10.0)})  # fmt: skip
    np.testing.assert_array_equal(fitted.estimate.theta, directly.estimate.theta)
    np.testing.assert_allclose(fitted.estimate.theta, [0.5, 1.5], rtol=1e-4)


def test_values_priors_and_starts(tmp_path: Path) -> None:
    text = changed(
        "area = 2.0", "area = 3.0", "guess = 0.4,", 'prior = { kind = "lognormal", median = 0.5, log_std = 0.2 },',
        'time = "t"\n', 'time = "t"\nstart = { level = { kind = "normal", mean = 1.4, std = 0.1 } }\n',
        'estimate = ["k", "start(level)"]', 'estimate = ["k"]',
    )  # fmt: skip
    problem = gr.load_problem(write(tmp_path, text))
    assert problem.model.parameters["area"].value == 3.0
    assert problem.priors == {"k": gr.LogNormal(0.5, 0.2)}
    assert problem.experiments[0].start == {"level": gr.Normal(1.4, 0.1)}
    assert list(problem.fit().names) == ["k", "start(level)"]


def test_names_marked_as_unknown_are_estimated(tmp_path: Path) -> None:
    """Without ``estimate``: what the model bounds and what the file says more about, but not what it knows."""
    text = changed('estimate = ["k", "start(level)"]\n', "", "area = 2.0", "area = { guess = 2.0 }")
    assert gr.load_problem(write(tmp_path, text)).estimate == ("k", "area")
    text = changed('estimate = ["k", "start(level)"]\n', "", "area = 2.0", "area = { guess = 2.0 }",
                   "k = { guess = 0.4, bounds = [0.01, 10.0] }", "k = 0.5")  # fmt: skip
    assert gr.load_problem(write(tmp_path, text)).estimate == ("area",)


def test_several_files_and_an_unknown_start(tmp_path: Path) -> None:
    text = changed("data/run.csv", "data/*.csv", 'time = "t"\n', 'time = "t"\nstart = { level = "unknown" }\n')
    folder = write(tmp_path, text)
    (folder / "data" / "again.csv").write_text((folder / "data" / "run.csv").read_text())
    problem = gr.load_problem(folder)
    assert [e.name for e in problem.experiments] == ["again", "run"]
    assert problem.experiments[0].start == {"level": None}


def test_the_seed_goes_to_estimators_that_have_one(tmp_path: Path) -> None:
    text = changed('name = "OutputError"', 'name = "SimulatedPEM"', "seed = 1", "seed = 7")
    assert gr.load_problem(write(tmp_path, text)).method.seed == 7
    text = text.replace('"SimulatedPEM"', '"SimulatedPEM"\nseed = 3')
    assert gr.load_problem(write(tmp_path, text)).method.seed == 3


def test_studies(tmp_path: Path) -> None:
    problem = gr.load_problem(write(tmp_path))
    study = problem.study(executor="serial")
    assert len(study) == 3 and study.counts["converged"] == 3
    np.testing.assert_allclose(study.truth, problem.fit().estimate.theta, rtol=1e-12)
    starts = problem.study("multistart", 2, executor="serial", ranges={"k": (0.2, 1.0), "start(level)": (1.0, 2.0)})
    assert len(starts) == 2 and starts.counts["converged"] == 2
    with pytest.raises(gr.DataError, match="'ranges' is not a setting of bootstrap studies"):
        problem.study("bootstrap", ranges={})
    with pytest.raises(gr.DataError, match="give monte-carlo, multistart or bootstrap"):
        problem.study("jackknife")


def test_the_truth_of_a_study_is_in_the_model(tmp_path: Path) -> None:
    model = gr.load_problem(write(tmp_path)).model
    moved = at_values(model, {"k": 0.7, "scale(w)": 0.3, "start(level)": 2.0}, with_starts=True)
    assert moved.parameters["k"].value == 0.7
    result = gr.simulate(moved, [0.0, 1.0], inputs={"inflow": 0.0})
    assert float(result["level"][0]) == 2.0
    wide = gr.simulate(moved, [0.0, 1.0], inputs={"inflow": 0.0}, realizations=1, seed=1)
    given = {"inputs": {"inflow": 0.0}, "parameters": {"scale(w)": 0.3}, "realizations": 1, "seed": 1}
    once = gr.simulate(model, [0.0, 1.0], **given)
    np.testing.assert_allclose(wide["w"], once["w"])


def test_levels_have_a_truth_in_studies(tmp_path: Path) -> None:
    """Scales and noise that a likelihood estimates are judged against those the data are drawn with."""
    text = changed('estimate = ["k", "start(level)"]', 'estimate = ["k", "scale(w)", "noise(y)"]',
                   'name = "OutputError"\ncompiled = true', 'name = "KalmanML"')  # fmt: skip
    problem = gr.load_problem(write(tmp_path, text))
    study = problem.study(runs=1, truth="guess", executor="serial")
    assert study.truth.to_dict() == {"k": 0.4, "scale(w)": 0.1, "noise(y)": 0.01}
    louder = problem.study(runs=1, truth="guess", noise={"y": 0.02}, executor="serial")
    assert louder.truth["noise(y)"] == 0.02


def test_folders_are_named_by_their_file_too(tmp_path: Path) -> None:
    assert gr.load_problem(write(tmp_path) / "problem.toml").title == "A tank"


@pytest.mark.parametrize("name", sorted(templates()))
def test_templates_are_sound(name: str, tmp_path: Path) -> None:
    problem = gr.load_problem(create(name, tmp_path / "new"))
    assert problem.notes == ()
    assert problem.title == templates()[name]
    assert (tmp_path / "new" / "README.md").is_file()


def test_new_folders_overwrite_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(gr.DataError, match="exists and is not empty; nothing was written"):
        create("two-tank", tmp_path)
    with pytest.raises(gr.DataError, match=r"There is no template 'two-tanks'. Did you mean 'two-tank'"):
        create("two-tanks", tmp_path / "new")
    with pytest.raises(gr.DataError, match="there is no folder"):
        create("two-tank", tmp_path / "a" / "b")


def test_folders_that_ask_for_interpreted_models_are_read() -> None:
    assert make_method("OutputError", {"compiled": False, "rtol": 1e-7}, None) == gr.OutputError(rtol=1e-7)
