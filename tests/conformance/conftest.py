"""Models of the zoo are built quickly: each runs a few times only."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def quick_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISAILLE_OPTIMIZATION", "-O0")
