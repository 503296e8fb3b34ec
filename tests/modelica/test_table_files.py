"""Tables in files: texts, MATLAB files of all versions, CSV; and which files are opened at all."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from modelica.texts import model
from scipy.io import savemat

import grisaille as gr
from grisaille.modelica import Unfit
from grisaille.modelica.tables import ResourceFolders, files_of, read_table

ROWS = np.array([[0.0, 0.0, 1.0], [1.0, 2.0, 1.5], [2.5, -1.0, 2.0]])
TEXT = """#1
# weather, two tables
double other(1,2) # not this one
 7, 8
double tab1(3,3)   # three rows
0 0 1   1.  +2.0
1.5     # rows may be broken
2.5; -1e0; .2e1
float tab2(2,2)
0 1
1 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.txt").write_text(TEXT)
    (tmp_path / "t.csv").write_text("time;a;b\n[s];;\n" + "\n".join(";".join(map(str, row)) for row in ROWS.tolist()))
    savemat(tmp_path / "v4.mat", {"tab1": ROWS, "n": np.array([[3.0]])}, format="4")
    savemat(tmp_path / "v6.mat", {"tab1": ROWS}, do_compression=False)
    savemat(tmp_path / "v7.mat", {"tab1": ROWS.astype(np.float32), "words": "text"}, do_compression=True)
    with h5py.File(tmp_path / "v73.mat", "w", userblock_size=512) as file:
        file["tab1"] = ROWS.T
    return tmp_path


@pytest.mark.parametrize("name", ["t.txt", "v4.mat", "v6.mat", "v7.mat", "v73.mat"])
def test_every_format_gives_the_same_rows(folder: Path, name: str) -> None:
    with files_of(ResourceFolders(folder)):
        np.testing.assert_array_equal(read_table(name, "tab1"), ROWS)
        with pytest.raises(Unfit, match=r"has no table 'nothing'; it has .*tab1"):
            read_table(name, "nothing")


def test_csv_with_titles(folder: Path) -> None:
    with files_of(ResourceFolders(folder)):
        np.testing.assert_array_equal(read_table("t.csv", "Values", ";", 2), ROWS)
        with pytest.raises(Unfit, match=r"'time' in line 1.*nHeaderLines"):
            read_table("t.csv", "Values", ";", 0)
        with pytest.raises(Unfit, match="delimiter"):
            read_table("t.csv", "Values", ",", 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("double tab1(1,2)\n1 2", "does not begin with '#1'"),
        ("#1\ndouble tab1(2,2)\n1 2 3", "4 numbers, and holds 3"),
        ("#1\ndouble tab1(1,2)\n1 2 3", "2 numbers, and holds 3"),
        ("#1\ndouble tab1(1,2)\n1 nan", "'nan', which is not a number"),
        ("#1\ndouble tab1(1,2)\n1 1e999", "not finite in row 1, column 2"),
        ("#1\ndouble tab1(0,2)\n", "is empty"),
    ],
)
def test_texts_that_are_no_tables(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "t.txt").write_text(text)
    with files_of(ResourceFolders(tmp_path)), pytest.raises(Unfit, match=words):
        read_table("t.txt", "tab1")


@pytest.mark.parametrize("name", ["v4.mat", "v6.mat", "v7.mat", "v73.mat"])
def test_damaged_matlab_files_are_refused_in_words(folder: Path, name: str) -> None:
    whole, rng = (folder / name).read_bytes(), np.random.default_rng(8)
    with files_of(ResourceFolders(folder)):
        for k in range(60):
            damaged = bytearray(whole[: rng.integers(1, len(whole))] if k % 3 == 0 else whole)
            for place in rng.integers(0, len(damaged), 4):
                damaged[place] = rng.integers(256)
            (folder / f"damaged{k}.mat").write_bytes(damaged)
            try:
                assert read_table(f"damaged{k}.mat", "tab1").ndim == 2
            except Unfit as unfit:
                assert "damaged" in str(unfit)  # at least the name of the file


def test_only_files_beside_the_text_and_in_packages_are_opened(folder: Path) -> None:
    package, outside = folder / "Lib", folder / "other"
    for inside in (package / "Resources" / "Data", outside):
        inside.mkdir(parents=True)
        (inside / "a.txt").write_text(TEXT)
    (package / "package.mo").write_text("package Lib end Lib;")
    (package / "link.txt").symlink_to(outside / "a.txt")
    with files_of(ResourceFolders(package, (package,))):
        for name in (
            "modelica://Lib/Resources/Data/a.txt",
            "Resources/Data/a.txt",
            f"file://{package}/Resources/Data/a.txt",
        ):
            assert len(read_table(name, "tab1")) == 3
        for name in (
            "../other/a.txt",
            str(outside / "a.txt"),
            "link.txt",
            "modelica://Lib/../other/a.txt",
            "/etc/passwd",
        ):
            with pytest.raises(Unfit, match="files are never opened"):
                read_table(name, "tab1")
    with files_of(ResourceFolders(None, (folder,))):
        assert len(read_table("modelica://Lib/Resources/Data/a.txt", "tab1")) == 3


TABLE = """
class 'Table'
  extends ExternalObject;
  function constructor
    input String 'tableName';
    input String 'fileName';
    input Real 'table'[:, :];
    input Integer 'columns'[:];
    output 'Table' 'made';
  external "C" 'made' = ModelicaStandardTables_CombiTimeTable_init3('fileName', 'tableName', 'table', size('table', 1),
    size('table', 2), START, 'columns', size('columns', 1), HOW, OUTSIDE, SHIFT, 1, true, ";", 2);
  end constructor;
end 'Table';
function 'value'
  input 'Table' 'id';
  input Integer 'column';
  input Real 'u';
  input Real 'next';
  input Real 'before';
  output Real 'y';
external "C" 'y' = ModelicaStandardTables_CombiTimeTable_getValue('id', 'column', 'u', 'next', 'before');
end 'value';
"""
BODY = """
  parameter String file = Modelica.Utilities.Files.loadResource("FILE");
  parameter Boolean csv = Modelica.Utilities.Strings.findLast(file, ".CSV", caseSensitive = false) > 0;
  parameter 'Table' 'id' = 'Table'(if csv then "Values" else "tab1", file, fill(0.0, 0, 2), {2, 3});
  Real y[2];
  Real x(start = 0.0, fixed = true);
equation
  for i in 1:2 loop
    y[i] = 'value'('id', i, time, 0.0, 0.0);
  end for;
  der(x) = y[1];
"""


def read(folder: Path, file: str, how: int = 1, outside: int = 1, start: float = 0.0, shift: float = 0.0) -> gr.Model:
    text = TABLE
    for word, value in (("START", start), ("HOW", how), ("OUTSIDE", outside), ("SHIFT", shift)):
        text = text.replace(word, str(value))
    (folder / "m.bmo").write_text(model(BODY.replace("FILE", file), text))
    return gr.read_modelica(folder / "m.bmo")


@pytest.mark.parametrize("file", ["t.txt", "t.csv", "v7.mat"])
def test_a_run_with_a_table_over_time(folder: Path, file: str) -> None:
    t = np.array([0.0, 0.5, 1.0, 2.0, 2.5, 4.0])
    result = gr.simulate(read(folder, file, start=0.4, shift=0.5), t)
    late = np.interp(t - 0.5, ROWS[:, 0], ROWS[:, 1])
    np.testing.assert_allclose(result["y[1]"], np.where(t >= 0.4, late, 0.0), atol=1e-12)
    assert result["x"].values[3] == pytest.approx(1.75, abs=1e-6)


def test_leaving_a_time_table_without_extrapolation(folder: Path) -> None:
    made = read(folder, "t.txt", outside=4)
    gr.simulate(made, np.array([0.0, 2.5]))
    with pytest.raises(gr.SimulationError, match=r"the time of the table stays between 0 and 2\.5"):
        gr.simulate(made, np.array([0.0, 2.0, 2.6]))


def test_the_refusal_names_the_file_and_the_line(folder: Path) -> None:
    with pytest.raises(gr.ModelError, match=r"(?s)m\.bmo.*line.*'\.\./t\.txt' is not read"):
        read(folder, "../t.txt")
