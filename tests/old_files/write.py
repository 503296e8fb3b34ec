"""Write ``files``: records, saved fits, stores, a checkpoint, a problem folder, and what they say.

Run once, by version 0.1.0; running it again would make the test of old files a test of nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from grisaille.estimators.simulated_pem import Checkpoint
from old_files import questions
from old_files.answers import said_by_fit, said_by_study
from old_files.public import public_signatures


def write() -> None:
    files = questions.FILES
    files.mkdir()
    (files / "records.json").write_text(json.dumps(_records(), indent=1))
    said = {}
    for name in questions.fits():
        fit = questions.fitted(name)
        fit.intervals()
        fit.save(files / f"{name}.nc")
        said[name] = said_by_fit(fit)
    said["monte_carlo"] = said_by_study(questions.monte_carlo(files / "monte_carlo.db", 3))
    said["multistart"] = said_by_study(questions.multistart(files / "multistart.db", 3))
    said["bootstrap"] = said_by_study(questions.bootstrap(files / "bootstrap.db", 3))
    _interrupted(files / "checkpoint.json")
    (files / "said.json").write_text(json.dumps(said, indent=1, ensure_ascii=False))
    (files / "public.json").write_text(json.dumps(public_signatures()))


def _interrupted(path: Path) -> None:
    """Leave a checkpoint by a Ctrl-C behind the second point that is written."""
    write, points = Checkpoint.write, []

    def write_and_stop(self: Checkpoint, theta: np.ndarray) -> None:
        write(self, theta)
        points.append(theta)
        if len(points) == 2:
            raise KeyboardInterrupt

    Checkpoint.write = write_and_stop
    try:
        questions.checkpointed(path)
    except KeyboardInterrupt:
        pass
    finally:
        Checkpoint.write = write


def _records() -> dict:
    times = np.linspace(0.0, 4.0, 21).round(6)
    points = np.linspace(0.0, 3.0, 24).round(6)
    bent = (np.sin(points) + 0.05 * np.cos(40 * points)).round(9)
    return {
        "A": _tank(times, 1, 1.0),
        "B": _tank(times, 2, 0.7),
        "points": {"time": None, "inputs": {"u": points.tolist()}, "outputs": {"y": bent.tolist()}},
    }


def _tank(times: np.ndarray, seed: int, level: float) -> dict:
    random = np.random.default_rng(seed)
    u = level * np.where(times < 2.0, 1.0, 0.2)
    x, decay = [0.5], np.exp(-0.7 * 0.2)
    for known in u[:-1]:
        x.append(decay * x[-1] + (1 - decay) / 0.7 * 1.2 * known + 0.06 * random.standard_normal())
    y = (np.array(x) + 0.03 * random.standard_normal(len(times))).round(9).tolist()
    y[4] = None
    return {"time": times.tolist(), "inputs": {"u": u.round(9).tolist()}, "outputs": {"y": y}}


if __name__ == "__main__":
    write()
