"""The study of coverage, small: sets are drawn and fitted, and intervals hold the truth about as often as claimed."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from scipy.stats import binom

FILE = Path(__file__).parents[2] / "benchmarks" / "interval_coverage.py"
SPEC = importlib.util.spec_from_file_location("coverage_study", FILE)
assert SPEC is not None and SPEC.loader is not None
coverage = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = coverage
SPEC.loader.exec_module(coverage)


@pytest.mark.parametrize(("name", "sets"), [("ou41", 12), ("vanderpol", 5), ("pendulum", 5)])
def test_intervals_hold_the_truth(name, sets, tmp_path):
    store = tmp_path / "coverage.json"
    total = coverage.run(name, sets, store)
    assert total["sets"] == total["converged"] == sets
    least = binom.ppf(1e-5, sets, 0.95)
    hits = {k: v for k, v in total.items() if k.startswith("hit ")}
    assert len(hits) >= 2 and all(v >= least for v in hits.values())
    # the store is where the next call goes on
    assert json.loads(store.read_text())[name]["sets"] == sets
    assert coverage.run(name, sets, store) == total


def test_the_allowed_counts_are_those_of_the_exact_test():
    assert coverage.allowed(1000) == (926, 971)
