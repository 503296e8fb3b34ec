"""What all tests share: where reference data are, and a cache of their own."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import pytest

# Before NumPy is imported: a thread for each core that waits for the next small product costs more than all products
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import matplotlib  # noqa: E402 - the lines above come first

from grisaille.compilation import find_compiler  # noqa: E402

matplotlib.use("Agg")
BEGIN = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--no-more-after``: what ``scripts/check quick`` has no time for is left to continuous integration."""
    parser.addoption("--no-more-after", type=float, metavar="SECONDS", help="skip tests that would begin later")


def pytest_configure(config: pytest.Config) -> None:
    """Compiled models are kept beside pytest's own cache: a second run is quicker, the user's cache is not touched.

    They are built with little optimization or none, which takes half of the time and gives the same numbers: no level
    reorders arithmetic. ``tests/compilation`` builds as users do.
    """
    os.environ.setdefault("GRISAILLE_OPTIMIZATION", "quick")
    folder = config.cache.mkdir("compiled-models")
    folder.chmod(0o700)
    os.environ["GRISAILLE_CACHE"] = str(folder)
    _keep_bytecode_of_programs(config)


def _keep_bytecode_of_programs(config: pytest.Config) -> None:
    """Programs that tests start read compiled modules (0.7 s each otherwise), also where bytecode is not written."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(config.cache.mkdir("bytecode")))


def pytest_collection_finish() -> None:
    """Thousands of collected items live to the end: the garbage collector need not walk through them again and again.

    Without this, a seventh of the processor time of tests is spent there.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_sessionstart(session: pytest.Session) -> None:
    if find_compiler() is None:
        raise pytest.UsageError("The tests need a C compiler, and none was found: install gcc, clang or ziglang.")
    session.config.stash[BEGIN] = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    seconds = item.config.getoption("--no-more-after")
    if seconds is not None and time.monotonic() - item.config.stash[BEGIN] > seconds:
        pytest.skip(f"not begun within {seconds:.0f} s: continuous integration runs it")


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """The folder named by ``GRISAILLE_REFERENCE_DATA``; tests that ask for it are skipped without it."""
    folder = os.environ.get("GRISAILLE_REFERENCE_DATA")
    if not folder:
        pytest.skip("GRISAILLE_REFERENCE_DATA is not set")
    path = Path(folder)
    assert path.is_dir(), f"GRISAILLE_REFERENCE_DATA={folder} is not a folder"
    return path
