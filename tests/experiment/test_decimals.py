"""Decimal signs are found where cells leave no doubt, and asked for where they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from grisaille import DataError
from grisaille.experiment import table_with_decimal


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("t;y\n0;1,5\n1;1,200\n", ","),
        ("t;y\n0;0,125\n1;2\n", ","),
        ("t,y\n0,1.200\n1,950\n", "."),
        ("t;y\n0;1.25\n1;950\n", "."),
    ],
)
def test_signs_that_cells_tell(text: str, sign: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert table_with_decimal(tmp_path / "a.csv").decimal == sign


@pytest.mark.parametrize("text", ["t;y\n0;1,200\n1;950\n", "t;y\n0;1.200\n1;950\n", 't,y\n0,"1,200"\n1,950\n'])
def test_signs_that_may_separate_thousands_are_asked_for(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=r"which is 1\.200 or 1200"):
        table_with_decimal(tmp_path / "a.csv")
    assert table_with_decimal(tmp_path / "a.csv", decimal=".").decimal == "."


def test_encodings_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t;y\n0;1\n", encoding="utf-16")
    with pytest.raises(DataError, match="encoding='utf-16'"):
        table_with_decimal(tmp_path / "a.csv")
    assert list(table_with_decimal(tmp_path / "a.csv", encoding="utf-16").columns) == ["t", "y"]
    with pytest.raises(DataError, match="'nonsense', which is not known"):
        table_with_decimal(tmp_path / "a.csv", encoding="nonsense")
