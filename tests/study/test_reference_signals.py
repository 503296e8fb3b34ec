"""The criterion for agreement with another tool's signals, at its edges."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from grisaille.errors import DataError
from grisaille.study import ReferenceSignals, read_reference

T = np.linspace(0.0, 1.0, 101)


def reference(y: np.ndarray, times: np.ndarray = T) -> ReferenceSignals:
    return ReferenceSignals(times, {"y": y})


@pytest.mark.parametrize(("off", "agrees"), [(0.0099, True), (0.0103, False)])
def test_a_hundredth_of_the_range(off: float, agrees: bool) -> None:
    assert reference(np.sin(6.28 * T)).compare("y", np.sin(6.28 * T) + 2.0 * off).agrees is agrees


@pytest.mark.parametrize(("wrong", "agrees"), [(2, True), (3, False)])
def test_two_in_a_hundred_may_lie_outside(wrong: int, agrees: bool) -> None:
    x = T.copy()
    x[:wrong] = np.nan
    assert reference(T).compare("y", x).agrees is agrees


@pytest.mark.parametrize(("x", "agrees"), [(0.0, True), (0.5, True), (1.0, True), (1.2, False)])
def test_at_a_jump_everything_between_its_sides_is_right(x: float, agrees: bool) -> None:
    times = np.array([0.0, 1.0, 1.0, 2.0])
    jump = reference(np.array([0.0, 0.0, 1.0, 1.0]), times)
    assert jump.times.tolist() == [0.0, 1.0, 2.0]
    assert jump.compare("y", np.array([0.0, x, 1.0])).agrees is agrees


@pytest.mark.parametrize(("level", "off", "agrees"), [(100.0, 9e-4, True), (100.0, 2e-3, False), (0.0, 9e-7, True)])
def test_constants_have_a_part_of_their_size_and_zeros_a_millionth(level: float, off: float, agrees: bool) -> None:
    assert reference(np.full_like(T, level)).compare("y", np.full_like(T, level + off)).agrees is agrees


def test_packed_and_plain_files_are_the_same(tmp_path: Path) -> None:
    text = 'time,"r[1,2]",w\n0,1,2\n1,3,4\n'
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text.encode()))
    for path in tmp_path.iterdir():
        assert {n: v.tolist() for n, v in read_reference(path).signals.items()} == {"r[1,2]": [1, 3], "w": [2, 4]}


@pytest.mark.parametrize("text", ["time,y\n0,1\n1\n", "time,y\n1,1\n0,1\n", "time,y\n", "time,y\n0,a\n"])
def test_files_that_are_no_tables(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=r"a\.csv"):
        read_reference(tmp_path / "a.csv")
