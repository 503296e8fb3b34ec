"""Where things stand in a TOML file."""

from __future__ import annotations

from pathlib import Path

import pytest

from grisaille.problem import UnreadableDocument, find_lines, read_document, show_place

TEXT = '''# a comment with [brackets] and key = value
title = "[not] a = header"
long = """
inside = 1
"""
names = [
    "a",  # ] still open
    "b",
]

[parameters]
k = { guess = 1.0, bounds = [0, 1] }
"r.R" = 2.0
start.x = 1

[[experiments]]
file = "a.csv"
[experiments.start]
x = 1.0

[[experiments]]
file = "b.csv"
inputs = { u = "u#1" }
'''


def test_lines_of_keys_and_tables() -> None:
    lines = find_lines(TEXT)
    assert lines["title",] == 2 and lines["long",] == 3 and lines["names",] == 6
    assert lines["parameters",] == 11 and lines["parameters", "k"] == 12 and lines["parameters", "r.R"] == 13
    assert lines["parameters", "start"] == 14 and lines["parameters", "start", "x"] == 14
    assert lines["experiments", 0] == 16 and lines["experiments", 0, "start", "x"] == 19
    assert lines["experiments", 1] == 21 and lines["experiments", 1, "inputs"] == 23
    assert not any("inside" in place for place in lines)


def test_the_nearest_line_around_a_value(tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text(TEXT)
    document = read_document(path)
    assert document.line(("parameters", "k", "bounds", 1)) == 12
    assert document.line(("experiments", 1, "missing")) == 21
    assert document.line(("nowhere",)) is None


def test_windows_files(tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert read_document(path).line(("experiments", 1, "inputs")) == 23


def test_files_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_bytes("title = 'ok'\n# Füllstand\n".encode("latin-1"))
    with pytest.raises(UnreadableDocument, match="save it as UTF-8") as refusal:
        read_document(path)
    assert refusal.value.line == 2


def test_places_read_like_the_file() -> None:
    assert show_place(("experiments", 0, "inputs")) == "experiments[1].inputs"
    assert show_place(("parameters", "start(x)", "guess")) == 'parameters."start(x)".guess'
