"""What all tests share: where reference data are, whether a C compiler is there, and a cache of their own."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib
import pytest

from grisaille.compilation.compiler import find_compiler

matplotlib.use("Agg")


def pytest_configure(config: pytest.Config) -> None:
    """Compiled models are kept beside pytest's own cache: a second run is quicker, the user's cache is not touched.

    They are built with little optimization or none, which takes half of the time and gives the same numbers: no level
    reorders arithmetic. ``tests/compilation`` builds as users do.
    """
    os.environ.setdefault("GRISAILLE_OPTIMIZATION", "quick")
    folder = config.cache.mkdir("compiled-models")
    folder.chmod(0o700)
    os.environ["GRISAILLE_CACHE"] = str(folder)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked ``compiled`` are skipped where there is no C compiler."""
    if find_compiler() is None:
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason="no C compiler was found"))


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """The folder named by ``GRISAILLE_REFERENCE_DATA``; tests that ask for it are skipped without it."""
    folder = os.environ.get("GRISAILLE_REFERENCE_DATA")
    if not folder:
        pytest.skip("GRISAILLE_REFERENCE_DATA is not set")
    path = Path(folder)
    assert path.is_dir(), f"GRISAILLE_REFERENCE_DATA={folder} is not a folder"
    return path
