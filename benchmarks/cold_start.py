"""How long a user waits the first time: import, first trajectory with compilation, and again from the cache.

Each is a process of its own. The one that finds the cache filled has no compiler: an empty ``PATH``, and the
``ziglang`` wheel hidden. That it compiled nothing shows in the cache, which still holds one library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import grisaille

HERE = Path(__file__).resolve().parent
IMPORT = """
import json, time
begin = time.perf_counter()
import grisaille
print(json.dumps(time.perf_counter() - begin))
"""
FIRST = """
import json, time
import grisaille as gr
from grisaille.compilation import cache
from pendulum_study import Pendulum
begin = time.perf_counter()
run = gr.simulate(Pendulum(), [0.0, 1.0, 2.0], inputs={"u": 0.1, "w": 0.0})
print(json.dumps([time.perf_counter() - begin, run.attrs["status"], cache.inspect().files]))
"""


WITHOUT_ZIG = "import sys\nsys.modules['ziglang'] = None\n"


@dataclass(frozen=True)
class ColdStart:
    """Seconds: importing, model → first trajectory with an empty cache, the same from the cache without a compiler."""

    importing: float
    compiling: float
    cached: float
    compiled_again: bool


def measure_cold_start(rounds: int = 3) -> ColdStart:
    """The best of some rounds; other work on the machine can only make it longer."""
    importing = min(float(_python(IMPORT, {})) for _ in range(rounds))
    pairs = [_first_and_second() for _ in range(rounds)]
    again = any(files != 1 for _, _, files in pairs)
    return ColdStart(importing, min(p[0] for p in pairs), min(p[1] for p in pairs), again)


def _first_and_second() -> tuple[float, float, int]:
    with tempfile.TemporaryDirectory(prefix="cold-start-") as folder:
        first, _, _ = _python(FIRST, {"GRISAILLE_CACHE": folder})
        second, _, files = _python(WITHOUT_ZIG + FIRST, {"GRISAILLE_CACHE": folder, "PATH": "", "CC": ""})
    return first, second, files


def _python(code: str, changed: dict[str, str]) -> object:
    package = str(Path(grisaille.__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": package, **changed}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"a fresh process failed:\n{done.stderr}")
    return json.loads(done.stdout)
