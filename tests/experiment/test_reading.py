"""Text files: separators, decimal commas, comments, units, runs."""

from __future__ import annotations

import io

import numpy as np
import pytest

from grisaille.errors import DataError
from grisaille.experiment import Experiment

EXPECTED = Experiment([0.0, 0.5, 1.0], {"u": [1.0, 2.5, -3e-2]}, {"y": [10.0, np.nan, 12.0]})


def read(text, **options):
    return Experiment.from_csv(io.StringIO(text), "t", ["u"], ["y"], **options)


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_separators_are_found(sign):
    text = "t,u,y\n0,1,10\n0.5,2.5,\n1,-3e-2,12\n".replace(",", sign)
    assert read(text) == EXPECTED


@pytest.mark.parametrize("missing", ["", "NA", "nan", "NaN", "null", "-", " "])
def test_words_for_not_measured(missing):
    assert read(f"t,u,y\n0,1,10\n0.5,2.5,{missing}\n1,-3e-2,12\n") == EXPECTED


def test_decimal_comma():
    assert read("t;u;y\n0;1;10,0\n0,5;2,5;\n1;-3e-2;12\n", decimal=",") == EXPECTED


def test_comments_blank_lines_quotes_spaces_and_a_byte_order_mark(tmp_path):
    file = tmp_path / "run.csv"
    text = '# made by hand\n\n"t" , "u", y\n 0 , 1, "10"\n# pause\n0.5, 2.5,\n\n1,-3e-2,12\n\n'
    file.write_text(text, "utf-8-sig")
    data = Experiment.from_csv(file, "t", ["u"], ["y"])
    assert data == EXPECTED.replace(name="run")


def test_other_comment_signs():
    assert read("t,u,y\n0,1,10\n% no\n0.5,2.5,\n1,-3e-2,12\n", comment="%") == EXPECTED


def test_units_below_the_header():
    data = read("t,u,y\n[s],[N],-\n0,1,10\n0.5,2.5,\n1,-3e-2,12\n")
    assert dict(data.units) == {"u": "N"} and data == EXPECTED.replace(units={"u": "N"})


def test_a_first_row_of_text_and_numbers_is_data():
    data = Experiment.from_csv(io.StringIO("run,t,y\nA,0,1\nA,1,2\n"), "t", [], ["y"])
    assert len(data.output_times) == 2 and not data.units


def test_a_first_row_of_a_date_and_nothing_is_data():
    data = Experiment.from_csv(io.StringIO("t,y\n2024-01-01,\n2024-01-02,2\n"), "t", [], ["y"], unit="d")
    assert data.output_times.tolist() == [0.0, 1.0]


def test_units_can_be_demanded():
    data = read("t,u,y\n1,1,1\n0,1,10\n0.5,2.5,\n1,-3e-2,12\n", units_row=True)
    assert dict(data.units) == {"u": "1", "y": "1"}


RUNS = """run,t,u,phi,T,x0,w
A,0,1,1,300,0.1,1
A,1,2,2,300,0.1,2
B,0,3,3,310,0.2,1
B,2,4,4,310,0.2,0
"""


def test_runs_become_named_experiments():
    a, b = Experiment.from_csv(
        io.StringIO(RUNS),
        "t",
        {"plant.u": "u", "g": 9.81},
        {"y": "phi"},
        by="run",
        constants={"plant.T": "T", "m": 2.0},
        start={"x": "x0", "v": 0.0},
        weights={"y": "w"},
        hold={"plant.u": "foh"},
    )
    assert (a.name, b.name) == ("A", "B")
    assert b == Experiment(
        [0, 2],
        {"plant.u": [3, 4], "g": 9.81},
        {"y": [3, 4]},
        name="B",
        hold={"plant.u": "foh"},
        constants={"plant.T": 310, "m": 2},
        start={"x": 0.2, "v": 0},
        weights={"y": [1, 0]},
    )
    assert a.constants["plant.T"] == 300.0


def test_a_single_run_keeps_the_name_it_is_given():
    data = Experiment.from_csv(io.StringIO("t,y\n0,1\n"), "t", [], ["y"], name="first", constants={"k": 2})
    assert data.name == "first" and data.constants["k"] == 2.0


def test_files_without_time_hold_independent_rows():
    data = Experiment.from_csv(io.StringIO("y,x\n1,7\n2,7\n"), inputs=["x"], outputs=["y"])
    assert data.is_static and data == Experiment(inputs={"x": [7, 7]}, outputs={"y": [1, 2]})


def test_a_large_file_is_quick(tmp_path):
    file = tmp_path / "large.csv"
    t = np.arange(50_000) / 1000
    np.savetxt(file, np.column_stack([t, np.sin(t), np.cos(t)]), delimiter=",", header="t,u,y", comments="")
    data = Experiment.from_csv(file, "t", ["u"], ["y"])
    np.testing.assert_array_equal(data.outputs["y"].values, np.cos(t))


@pytest.mark.parametrize("title", ["Plant 7;;", "Plant 7"])
def test_a_title_above_the_header_is_named(title):
    with pytest.raises(DataError, match=r"Line 1 of the table holds 'Plant 7' alone, and line 2 has 3 cells"):
        read(f"{title}\nt;u;y\n0;1;10\n0.5;2.5;\n1;-3e-2;12\n", separator=";")


def test_numbers_are_written_without_underscores():
    """Python reads 1_000 as a thousand; a table's owner may have meant something else."""
    with pytest.raises(DataError, match=r"holds '1_0' in line 2 .*which is not a number.*Drop the underscores"):
        read("t,u,y\n0,1,1_0\n0.5,2.5,\n1,-3e-2,12\n")


@pytest.mark.parametrize(
    ("cell", "decimal", "words"),
    [
        ("1.000,5", ",", "Drop separators of thousands"),
        ("1,234.5", ".", "Drop separators of thousands"),
        ("1'234.5", ".", "Drop separators of thousands"),
        ("1\u202f234", ".", "Drop separators of thousands"),
        ("\u22121.5", ".", "Write the sign of negative numbers as '-'"),
        ("1.5D+03", ".", "Write exponents with an e"),
    ],
)
def test_numbers_in_other_ways_of_writing_are_refused_with_a_remedy(cell, decimal, words):
    with pytest.raises(DataError, match=rf"which is not a number\. {words}"):
        read(f"t;u;y\n0;1;{cell}\n1;2;\n", separator=";", decimal=decimal)


@pytest.mark.parametrize("dates", [("26.03.2025", "27.03.2025", "28.03.2025"), ("1.4.2025", "2.4.2025", "3.4.2025"),
                                   ("01.04.2025 06:00", "02.04.2025 06:00", "03.04.2025 06:00")])  # fmt: skip
def test_dates_with_points_have_the_day_first(dates):
    rows = "\n".join(f"{d};{k};{k}" for k, d in enumerate(dates))
    data = Experiment.from_csv(io.StringIO(f"t;u;y\n{rows}\n"), "t", ["u"], ["y"], unit="d")
    assert data.output_times.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("date", ["31.02.2025", "13.13.2025", "03/04/2025"])
def test_dates_that_are_none_or_unclear_are_refused(date):
    with pytest.raises(DataError, match=r"neither a number nor a date|no row says whether the day"):
        Experiment.from_csv(io.StringIO(f"t,y\n{date},1\n01.03.2025,2\n"), "t", [], ["y"], unit="d")
