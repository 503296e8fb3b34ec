"""What is compiled here is built as users have it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def optimized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRISAILLE_OPTIMIZATION", raising=False)
