"""Some damaged files of each kind: the content they had, or a refusal in words.

``python tests/fuzz/files.py --count 2000`` tries thousands.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.files import run

COUNTS = {"fit": 15, "store": 60, "folder": 60, "modelica": 80}


@pytest.mark.parametrize("kind", COUNTS)
def test_loaded_as_it_was_or_refused(kind: str, tmp_path: Path) -> None:
    verdicts = run(kind, COUNTS[kind], seed=1, folder=tmp_path)
    assert [v for v in verdicts if v.is_fault] == []
    assert len({v.outcome for v in verdicts}) > 1
