"""Runs an exported kernel beside which it lies, with NumPy and CuPy alone: ``python run.py --help``."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from typing import Any

import numpy as np

from grisaille.compilation.cuda.launch import (
    DeviceJob,
    DeviceResult,
    Graphics,
    Host,
    fixed_branches,
    load,
    run,
    structure_layout,
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs the ensemble of this folder and writes what it gives.")
    parser.add_argument("--folder", default=os.path.dirname(os.path.abspath(__file__)), help="of the kernel")
    parser.add_argument("--output", default="answer.npz", help="file for the answer (default: answer.npz)")
    parser.add_argument("--single", action="store_true", help="steps in single precision")
    parser.add_argument("--contracted", action="store_true", help="a*b + c in one rounding: faster, other last digits")
    parser.add_argument(
        "--emulate", action="store_true", help="on the processor, one thread after the other (needs cc)"
    )
    parser.add_argument("--repeat", type=int, default=1, help="run so many times, and tell the time of each")
    given = parser.parse_args()
    job, told = load(given.folder)
    begin = time.perf_counter()
    machine = emulated(given.folder) if given.emulate else graphics(given.folder, job, given.single, given.contracted)
    print(f"{told['model']}: {machine.name}, compiled in {time.perf_counter() - begin:.2f} s")
    if isinstance(machine, Graphics):
        print(machine.told())
    for _ in range(given.repeat):
        begin = time.perf_counter()
        found = run(job, machine, structure_layout(told["batch"]), moments=told["moments"], rows=told["rows"])
        print(f"{job.values // told['parts']} x {job.count} realizations in {time.perf_counter() - begin:.3f} s")
    arrays: dict[str, Any] = answer(job, told, found)
    np.savez(given.output, **arrays)
    bad = int((arrays["failed"] >= 0).sum())
    print(
        f"{given.output} holds the answer"
        + (f"; {bad} realizations became infinite and spoil their mean" if bad else "")
    )


def graphics(folder: str, job: DeviceJob, single: bool = False, contracted: bool = False) -> Graphics:
    """Return the device with the kernels of a folder."""
    with open(os.path.join(folder, "kernel.cu"), encoding="utf-8") as file:
        return Graphics(fixed_branches(job) + file.read(), single=single, contracted=contracted)


def emulated(folder: str) -> Host:
    """Return the same kernels as loops on the processor."""
    flags = ["-O2", "-shared", "-fPIC", "-std=c99", "-ffp-contract=off", "-w", "-x", "c"]
    with tempfile.TemporaryDirectory(prefix="grisaille-", ignore_cleanup_errors=True) as place:
        library = os.path.join(place, "kernel.so")
        command = [os.environ.get("CC", "cc"), *flags, os.path.join(folder, "kernel.cu"), "-o", library, "-lm"]
        subprocess.run(command, check=True)
        # once loaded, a library is no longer looked for in its folder
        return Host(library)


def answer(job: DeviceJob, told: dict[str, Any], found: DeviceResult) -> dict[str, np.ndarray]:
    """Return labelled arrays: (value, time, quantity), with the realization after the value and directions before the
    quantity where there are any.
    """
    each, most = told["parts"], max(1, len(job.arrays["member"]) - 1)
    failed = found.failed.reshape(-1, each, *found.failed.shape[1:]).max(axis=1)
    labels = {"time": np.array(told["time"]), "names": np.array(told["names"]), "failed": failed}
    labels |= {"directions": np.array(told["directions"], dtype=str)} if job.ns else {}
    labels |= {f"value_{n}": np.array(v) for n, v in told["values"].items()}
    # directions that were dealt out to threads are beside one another again
    if found.y is not None and found.sy is not None:
        labels |= {"y": found.y[::each]} | ({"d_y": _joined(found.sy, each, 3)} if job.ns else {})
    if not found.moments:
        return labels
    mean, spread = (found.moments[n][::each] for n in ("mean", "spread"))
    labels |= {"mean": mean, "variance": spread / most}
    if job.ns:
        smean, scross = (_joined(found.moments[n], each, 2) for n in ("smean", "scross"))
        labels |= {"d_mean": smean, "d_variance": 2 * scross / most}
    return labels


def _joined(found: np.ndarray, each: int, axis: int) -> np.ndarray:
    """Return parts of directions along an axis of the answer."""
    parts = found.reshape(-1, each, *found.shape[1:])
    return np.concatenate([parts[:, k] for k in range(each)], axis=axis)


if __name__ == "__main__":
    main()
