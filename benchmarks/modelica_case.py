"""One Modelica text, read and simulated in a process of its own that is ended when it is late.

``values`` is what the suites ask; run as a program it takes one JSON object and answers with one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any


def values(asked: dict[str, Any], limit: float) -> dict[str, Any]:
    """Return the trajectories at ``asked["times"]``, or ``{"error": …}`` with the stage that failed.

    ``source`` is a path or text, ``name`` a model, ``path`` folders of libraries, ``parameters`` values to be
    replaced and ``names`` the variables wanted.
    """
    environment = {"GRISAILLE_OPTIMIZATION": "-O0", **os.environ}
    child = subprocess.Popen(
        [sys.executable, __file__, json.dumps(asked)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        out, err = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return {"error": f"not done in {limit:g} s", "stage": "late"}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
    try:
        return json.loads(out.decode().splitlines()[-1])
    except (ValueError, IndexError):
        return {"error": f"the process fell: {err.decode(errors='replace')[-300:]}", "stage": "fell"}


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    import grisaille as gr

    stage = "read"
    try:
        model = gr.read_modelica(asked["source"], name=asked.get("name"), path=asked.get("path", []))
        rates = {n: n for n in asked["names"] if n.startswith("der(")}
        model = model.with_outputs(rates) if rates else model
        stage = "simulated"
        changes = asked.get("parameters") or None
        rtol = min(asked.get("rtol", 1e-8), 1e-6)
        result = gr.simulate(model, np.array(asked["times"]), parameters=changes, rtol=rtol)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "stage": stage}
    found = {}
    for name in asked["names"]:
        at = result[name].values if name in result else _constant(model, name)
        if at is not None:
            full = np.broadcast_to(np.asarray(at, dtype=float), len(asked["times"]))
            found[name] = [float(v) if np.isfinite(v) else None for v in full]
    return {"values": found, "status": result.attrs["status"], "all": [str(n) for n in result.data_vars][:200]}


def _constant(model: Any, name: str) -> float | None:
    return model.parameters[name].value if name in model.parameters else None


def cause(error: str) -> str:
    """Return a message without its line, names and numbers, by which refusals are counted."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    chosen = next((s for s in lines if re.search(r"(^|\W)line \d+", s)), lines[0] if lines else "")
    chosen = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", chosen)
    chosen = re.sub(r"^\w*Error: |line \d+:?|-?\d+(\.\d+)?(e-?\d+)?", "", chosen)
    return " ".join(chosen.split())[:110]


def counted(rows: list[dict[str, Any]]) -> str:
    """Return the totals, and how many rows failed from each cause."""
    kinds: dict[str, int] = {}
    causes: dict[str, list[str]] = {}
    for row in rows:
        kinds[row["verdict"]] = kinds.get(row["verdict"], 0) + 1
        if row["verdict"] not in ("right", "no reference"):
            causes.setdefault(f"{row['verdict']}: {row.get('cause', '')}", []).append(row["name"])
    lines = [f"{len(rows)} cases: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))]
    for known, names in sorted(causes.items(), key=lambda pair: -len(pair[1])):
        lines.append(f"{len(names):4}  {known}  [{', '.join(names[:4])}{', …' if len(names) > 4 else ''}]")
    return "\n".join(lines)


def kept(store: Path | None) -> dict[str, dict[str, Any]]:
    """Return the rows that an earlier run wrote, by their names."""
    if store is None or not store.exists():
        return {}
    rows = [json.loads(line) for line in store.read_text("utf-8").splitlines() if line]
    return {row["name"]: row for row in rows}


if __name__ == "__main__":
    said, sys.stdout = sys.stdout, sys.stderr
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        answer = _answer(json.loads(sys.argv[1]))
    answer["notes"] = [str(note.message)[:300] for note in notes]
    print(json.dumps(answer), file=said)
