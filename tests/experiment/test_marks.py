"""Samples known by a limit alone: how they are read, kept, cut, resampled and written, and what refuses them."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille.errors import DataError

CSV = "t,lod,y,z\n0,0.1,1.5,3\n1,0.1,<0.1,2\n2,0.2,NA,1\n3,0.1, ≥ 25,1\n4,.1,0.7,\n"
MARKS = [0, -1, 0, 1, 0]
VALUES = [1.5, 0.1, np.nan, 25.0, 0.7]


def run() -> Any:
    return gr.Experiment.from_csv(io.StringIO(CSV), "t", ["lod"], ["y", "z"], name="A")


def test_cells_of_a_file_are_limits() -> None:
    assert run().marks["y"].tolist() == MARKS
    np.testing.assert_array_equal(run().outputs["y"].values, VALUES)
    assert list(run().marks) == ["y"]
    assert "1 at or below and 1 at or above a limit" in str(run().summary())


def test_a_decimal_comma_and_a_first_row_of_limits_are_read() -> None:
    text = "y;z\n<0,1;<1\n≤0,25;2\n2,5;2\n"
    read = gr.Experiment.from_csv(io.StringIO(text), outputs=["y"], decimal=",")
    assert read.outputs["y"].values.tolist() == [0.1, 0.25, 2.5]
    assert read.marks["y"].tolist() == [-1, -1, 0]


@pytest.mark.parametrize(
    "given",
    [
        [1.5, "<0.1", None, ">25", 0.7],
        np.array(["1.5", "<= 1e-1", "", ">=25", "0.7"]),
        (np.arange(5.0), ["1.5", "<0.1", "nan", ">25.0", 0.7]),
        pd.Series(["1.5", "<0.1", None, ">25", "0.7"]),
    ],
)
def test_texts_among_values_are_limits(given: Any) -> None:
    read = gr.Experiment(np.arange(5.0), {}, {"y": given})
    assert read.marks["y"].tolist() == MARKS
    np.testing.assert_array_equal(read.outputs["y"].values, VALUES)


def test_marks_are_part_of_what_an_experiment_is() -> None:
    marked, plain = run(), run().replace(marks={})
    assert not plain.marks
    assert marked != plain
    assert marked == plain.replace(marks={"y": MARKS})
    for copy in (
        pickle.loads(pickle.dumps(marked)), gr.Experiment.from_dataset(marked.to_dataset()),
        gr.Experiment.from_frame(marked.to_frame(), inputs=["lod"], outputs=["y", "z"], name="A"),
    ):  # fmt: skip
        assert copy == marked
        assert copy.marks["y"].tolist() == MARKS
        assert not copy.marks["y"].flags.writeable


def test_experiments_without_marks_are_what_they_were() -> None:
    plain = gr.Experiment([0.0, 1.0], {}, {"y": [1.0, 2.0]})
    assert plain.fingerprint == "81ca66d8c974f00cda17869121d57cd03abd222f10d0a80b893d01c306d582ae"


def test_parts_have_the_marks_of_their_samples() -> None:
    first, second = run().split(time=2)
    assert first.marks["y"].tolist() == MARKS[:2]
    assert second.marks["y"].tolist() == MARKS[2:]
    rows = gr.Experiment(outputs={"y": ["1", ">3", "0.5", "<0.1"]})
    dealt = [(v, m) for part in rows.split(0.5, seed=1) for v, m in zip(part.outputs["y"].values.tolist(),
             part.marks.get("y", np.zeros(2)).tolist(), strict=True)]  # fmt: skip
    assert sorted(dealt) == [(0.1, -1), (0.5, 0), (1.0, 0), (3.0, 1)]


def test_limits_have_no_mean_and_keep_their_nearest() -> None:
    with pytest.raises(DataError, match=r"2 samples of output 'y' are known by a limit alone.*outputs='nearest'"):
        run().resample(2.0)
    nearest = run().resample(2.0, outputs="nearest")
    assert nearest.outputs["y"].values.tolist() == [1.5, 0.1, 0.7]
    assert nearest.marks["y"].tolist() == [0, -1, 0]


def test_other_values_need_other_marks() -> None:
    marked = run()
    assert marked.replace(outputs={"y": marked.outputs["y"]}).marks["y"].tolist() == MARKS
    assert not marked.replace(outputs={"z": marked.outputs["z"]}).marks
    doubled = 2 * marked.outputs["y"].values
    with pytest.raises(DataError, match=r"2 samples are known by a limit alone: say marks=experiment\.marks"):
        marked.replace(outputs={"y": doubled})
    assert marked.replace(outputs={"y": doubled}, marks=marked.marks).marks["y"].tolist() == MARKS
    assert marked.replace(outputs={"y": [1, "<2", 3, 4, 5]}).marks["y"].tolist() == [0, -1, 0, 0, 0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gr.Experiment([0, 1], {}, {"y": ["1", "2"]}), "holds '1' in row 0, which is not a number"),
        (lambda: gr.Experiment([0, 1], {}, {"y": ["<1", "x"]}), "holds 'x' in row 1, which is not a number"),
        (lambda: gr.Experiment([0, 1], {"u": [1, "<2"]}, {"y": [1, 2]}), "Input 'u' holds"),
        (lambda: gr.Experiment.from_csv(io.StringIO(CSV), "t", ["y"], ["z"]), "Only outputs have samples that are"),
        (lambda: gr.Experiment([0, 1], {}, {"y": [1, 2]}, marks={"y": [0, 2]}), "hold 2 in row 1: give -1"),
        (lambda: gr.Experiment([0, 1], {}, {"y": [1, 2]}, marks={"x": [0, 1]}), "which is not among outputs="),
        (lambda: gr.Experiment([0, 1], {}, {"y": [1, "<2"]}, marks={"y": [0, 1]}), "give one of both"),
    ],
)
def test_what_is_no_limit_is_refused(make: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        make()


def test_models_without_limits_refuse_them_by_name() -> None:
    class Level(gr.Model):
        a = gr.Parameter(1.0)
        y = gr.Output(a)
        c = gr.Output(a, distribution=gr.laws.Laplace(scale=0.1))

    for output, law in (("y", r"gr\.Normal"), ("c", r"gr\.laws\.Laplace")):
        data = gr.Experiment(outputs={output: [1.0, "<0.5", 1.2]}, name="A")
        said = rf"Experiment 'A': 1 sample of output '{output}' is known by a limit.* '<0\.5'.*Censored\(of={law}"
        with pytest.raises(DataError, match=said):
            gr.fit(Level(), data, ["a"])
    gr.Experiment(outputs={"y": ["<0.5", 1.0, 1.2]}, skip=1).check(Level())


def test_a_plot_shows_limits_as_triangles() -> None:
    (axes,) = run().plot("y").axes
    assert {line.get_marker() for line in axes.lines} == {".", "v", "^"}
