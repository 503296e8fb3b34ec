"""Results of OpenModelica and Dymola: both layouts, aliases, parameters, units, events, damage; written here."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grisaille as gr

T = np.array([0.0, 0.5, 1.0, 1.0, 2.0])
X = np.array([1.0, 0.8, 0.5, 0.5, 0.2])
U = np.array([0.0, 0.0, 0.0, 3.0, 3.0])
NAMES = ["time", "x", "u", "minus x", "tank.A", "minus.A"]
WORDS = ["Time in [s]", "Level [m|cm]", "Flow[m3/s:#(type=Real)]", "", "Area [m2]", "state [:#(type=Integer)]"]
INFO = np.array([[0, 1, 0, -1], [2, 2, 0, -1], [2, 3, 0, -1], [2, -2, 0, -1], [1, 2, 0, 0], [1, -2, 0, 0]])


def matrix(name: str, values: Any, kind: str = "d", text: bool = False, order: str = "<") -> bytes:
    array = np.asarray(values)
    code = {"d": 0, "f": 10, "i": 20, "B": 50}[kind] + (1 if text else 0) + (1000 if order == ">" else 0)
    head = struct.pack(f"{order}5i", code, *array.shape, 0, len(name) + 1)
    return head + name.encode() + b"\0" + array.astype(f"{order}{'u1' if kind == 'B' else kind}").tobytes(order="F")


def letters(texts: list[str]) -> np.ndarray:
    width = max(map(len, texts))
    return np.array([list(t.ljust(width).encode()) for t in texts])


def write(path: Path, layout: str, kind: str = "d", order: str = "<") -> Path:
    turn = (lambda a: np.asarray(a).T) if layout == "binTrans" else np.asarray
    parts = [
        matrix("Aclass", letters(["Atrajectory", "1.1", "", layout]), "B", True, order),
        matrix("name", turn(letters(NAMES)), "B", True, order),
        matrix("description", turn(letters(WORDS)), "B", True, order),
        matrix("dataInfo", turn(INFO), "i", False, order),
        matrix("data_1", turn(np.array([[0.0, 1.5], [2.0, 1.5]])), kind, False, order),
        matrix("data_2", turn(np.column_stack([T, X, U])), kind, False, order),
    ]
    path.write_bytes(b"".join(parts))
    return path


@pytest.mark.parametrize(
    ("layout", "kind", "order"), [("binTrans", "d", "<"), ("binNormal", "f", "<"), ("binNormal", "d", ">")]
)
def test_both_layouts(tmp_path: Path, layout: str, kind: str, order: str) -> None:
    data = gr.Experiment.from_mat(
        write(tmp_path / "Tank_res.mat", layout, kind, order),
        inputs={"q": "u"},
        outputs={"h": "x", "down": "minus x"},
        constants={"A": "tank.A", "b": "minus.A"},
        start={"level": "x", "other": 2.0},
        hold="zoh",
    )
    assert data.name == "Tank_res" and data.clock.unit == "s"
    assert dict(data.units) == {"q": "m3/s", "h": "m"}
    assert dict(data.constants) == {"A": 1.5, "b": -1.5} and dict(data.start) == {"level": 1.0, "other": 2.0}
    np.testing.assert_array_equal(data.time, [0.0, 0.5, 1.0, 2.0])
    np.testing.assert_allclose(data.outputs["h"].values, [1.0, 0.8, 0.5, 0.2], rtol=1e-7)
    np.testing.assert_array_equal(data.outputs["down"].values, -data.outputs["h"].values)
    np.testing.assert_array_equal(data.inputs["q"].values, [0.0, 0.0, 3.0, 3.0])  # after the event at 1


@pytest.mark.parametrize("head", ['"time","x","u"', "Time,x [m],u", "time;x;u\ns;m;m3/s"])
def test_csv(tmp_path: Path, head: str) -> None:
    sign = ";" if ";" in head else ","
    rows = [sign.join(map(repr, row)) for row in np.column_stack([T, X, U]).tolist()]
    (tmp_path / "Tank_res.csv").write_text("\n".join([head, *rows]))
    data = gr.Experiment.from_mat(tmp_path / "Tank_res.csv", inputs=["u"], outputs=["x"])
    np.testing.assert_array_equal(data.outputs["x"].values, [1.0, 0.8, 0.5, 0.2])
    np.testing.assert_array_equal(data.inputs["u"].values, [0.0, 0.0, 3.0, 3.0])
    assert data.units.get("x", "") == ("m" if "m" in head.replace("time", "").replace("Time", "") else "")


def test_mistakes(tmp_path: Path) -> None:
    file = write(tmp_path / "a.mat", "binTrans")
    for wanted, words in (
        ({"outputs": ["xx"]}, "no column 'xx'.*'x'"),
        ({"outputs": ["x"], "constants": ["u"]}, "not constant"),
        ({"outputs": "x"}, "give a list"),
        ({"outputs": ["x"], "start": {"h": "nothing"}}, "no column 'nothing'"),
    ):
        with pytest.raises(gr.DataError, match=words):
            gr.Experiment.from_mat(file, **wanted)
    with pytest.raises(gr.DataError, match="There is no file"):
        gr.Experiment.from_mat(tmp_path / "b.mat", outputs=["x"])
    (tmp_path / "c.mat").write_text("no file of MATLAB")
    with pytest.raises(gr.DataError, match=r"c\.mat is no MATLAB file"):
        gr.Experiment.from_mat(tmp_path / "c.mat", outputs=["x"])


def test_matrices_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "a.mat").write_bytes(matrix("k", [[1.0]]))
    with pytest.raises(gr.DataError, match="holds no Aclass"):
        gr.Experiment.from_mat(tmp_path / "a.mat", outputs=["x"])


def test_a_header_that_asks_for_more_than_the_file_holds(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.mat", "binTrans").read_bytes()
    huge = whole.replace(struct.pack("<2i", 3, 5), struct.pack("<2i", 2**30, 2**30))
    (tmp_path / "a.mat").write_bytes(huge)
    with pytest.raises(gr.DataError, match="goes beyond its end"):
        gr.Experiment.from_mat(tmp_path / "a.mat", outputs=["x"])


def test_damaged_files_are_refused_in_words_or_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    wholes = [write(tmp_path / "a.mat", layout).read_bytes() for layout in ("binTrans", "binNormal")]
    refused = 0
    for k in range(250):
        damaged = bytearray(wholes[k % 2])
        if k % 5 == 0:
            damaged = damaged[: rng.integers(len(damaged))]
        for place in rng.integers(0, max(len(damaged), 1), rng.integers(1, 5)):
            damaged[place : place + 1] = bytes([rng.integers(256)])
        (tmp_path / "b.mat").write_bytes(damaged)
        try:
            gr.Experiment.from_mat(tmp_path / "b.mat", ["u"], ["x", "minus x"], constants=["tank.A"])
        except gr.DataError as error:
            refused += 1
            assert "b.mat" in str(error) or "'" in str(error)
    assert refused > 50
