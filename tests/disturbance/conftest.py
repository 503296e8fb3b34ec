"""The C twins, built by each compiler at hand."""

from __future__ import annotations

import ctypes

import pytest
from disturbance.headers import build


@pytest.fixture(scope="session", params=["default", "optimized", "zig"])
def native(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = build(request.param, tmp_path_factory.mktemp(request.param))
    if library is None:
        pytest.skip(f"the compiler for the build {request.param!r} was not found")
    return library
