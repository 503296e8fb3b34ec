"""One Modelica file, as far as it gets: read, built, simulated, compared. A program of its own, killed when it is late.

Takes one JSON object as its argument and writes one after each stage.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

STAGES = ("read", "built", "simulated", "verified")
SUFFIXES = (".bmo", ".mo")
LEAST, MOST, ROWS = 1e-9, 1e-6, 201


def run(asked: Mapping[str, Any], tell: Callable[..., None]) -> None:
    """Tell what was reached; raises where it does not go on."""
    import numpy as np

    from grisaille.errors import DataError
    from grisaille.modelica.reading import read_with_settings
    from grisaille.simulation.simulate import simulate
    from grisaille.structure.analysis import analyze
    from grisaille.study.reference_signals import read_reference

    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        model, settings = read_with_settings(_unpacked(Path(asked["file"]), Path(place)), asked["name"], asked["path"])
    tell(read=True, read_seconds=_since(begin))
    begin = time.perf_counter()
    analyze(model)
    tell(built=True, built_seconds=_since(begin))
    begin = time.perf_counter()
    reference = read_reference(Path(asked["reference"])) if asked["reference"] else None
    if reference is not None and not reference.signals:
        raise DataError(f"{Path(asked['reference']).name} has no signals beside its times.")
    first, last = float(settings.get("StartTime", 0.0)), float(settings.get("StopTime", 1.0))
    times = np.linspace(first, last, ROWS) if reference is None else reference.times
    if len(times) < 2 or times[-1] <= times[0]:
        times = times[0] + np.array([0.0, 1.0])  # a model that is solved at its start only
    tolerance = min(max(float(settings.get("Tolerance", MOST)), LEAST), MOST)
    result = simulate(model, times, rtol=tolerance)
    if result.sizes["time"] != len(times):
        raise RuntimeError(f"{result.sizes['time']} of {len(times)} times answered: {result.attrs.get('status')}")
    tell(simulated=True, simulated_seconds=_since(begin))
    if reference is None:
        return
    missing = [name for name in reference.signals if name not in result]
    worst, passed = ("", 0.0), 0
    for name in reference.signals:
        if name in result:
            values = np.broadcast_to(np.asarray(result[name].values, dtype=float), len(times))
            compared = reference.compare(name, values[: len(reference.times)])
            passed += compared.agrees
            worst = max(worst, (name, compared.error), key=lambda pair: pair[1])
    tell(
        verified=passed == len(reference.signals), signals=len(reference.signals), signals_passed=passed,
        missing=missing[:10], worst_signal=worst[0], worst_error=min(worst[1], 1e300),
    )  # fmt: skip


def _unpacked(file: Path, place: Path) -> Path:
    from grisaille.study.reference_signals import unpacked

    if file.suffix != ".gz":
        return file
    (place / file.stem).write_bytes(unpacked(file))
    return place / file.stem


def _since(begin: float) -> float:
    return round(time.perf_counter() - begin, 2)


def main() -> None:
    """Everything that is told goes to standard output, one line each; what others print goes to standard error."""
    said, sys.stdout = sys.stdout, sys.stderr
    reached: dict[str, Any] = {}

    def tell(**what: object) -> None:
        reached.update(what)
        print(json.dumps(what), file=said, flush=True)

    try:
        run(json.loads(sys.argv[1]), tell)
    except BaseException as error:  # whatever it is, it is told
        stage = next((s for s in STAGES if not reached.get(s)), STAGES[-1])
        tell(stopped=stage, error=f"{type(error).__name__}: {error}"[:2000])


if __name__ == "__main__":
    main()
