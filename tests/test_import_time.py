"""``import grisaille`` is quick, because what is heavy is loaded when first used."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ["matplotlib", "pandas", "rich", "scipy", "xarray"]
PROBE = f"""
import json, sys, time
begin = time.perf_counter()
import grisaille
seconds = time.perf_counter() - begin
print(json.dumps([seconds, [name for name in {HEAVY!r} if name in sys.modules]]))
"""


def probe() -> tuple[float, list[str]]:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    seconds, loaded = json.loads(done.stdout)
    return seconds, loaded


def test_nothing_heavy_is_loaded() -> None:
    assert probe()[1] == []


def test_import_takes_less_than_a_second() -> None:
    """The best of three: other work on the machine can only slow an import down."""
    assert min(probe()[0] for _ in range(3)) < 1.0


def test_a_fit_does_not_wait_for_what_it_may_be_asked_later() -> None:
    """Pictures, pages, studies and profiles are loaded when first asked for."""
    later = ("matplotlib", "grisaille.reporting", "grisaille.study", "grisaille.assessment.profile")
    code = f"import sys, grisaille as gr; gr.fit, gr.load; print([n for n in {later!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
