"""Files beside a benchmark are the first that its imports find: none may have the name of a package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_no_benchmark_hides_a_package(name: str) -> None:
    """``coverage.py`` hid the package that numba imports, and ``simulate.py`` failed."""
    known = {"coverage", "numba", "scipy", "numpy", "jax", "diffrax", "casadi", "pandas", "statsmodels", "sksundae"}
    assert name not in known | set(sys.stdlib_module_names)
