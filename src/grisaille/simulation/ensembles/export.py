"""An ensemble as a folder that runs where there are a graphics processor, NumPy and CuPy, and nothing of this package.

=============  ====================================================================================================
kernel.cu      the generated step, the headers and the kernels as one text, for CUDA and for C compilers
arrays.npz     parameters, starts, signals, filters and streams of random numbers, at every parameter value
kernel.json    sizes, names, times, the layout of the structure that kernels are given
run.py         compiles and runs it, and writes answer.npz; launch.py is what it needs
=============  ====================================================================================================
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from grisaille.bound_experiment import ExperimentPoint
from grisaille.compilation.batch import BatchInput
from grisaille.compilation.batch_native import BatchStructure
from grisaille.compilation.cuda.batch_cuda import are_alike, make_job
from grisaille.compilation.cuda.cuda_source import one_text
from grisaille.compilation.cuda.device_directions import split_directions
from grisaille.compilation.fused_step import FusedStep
from grisaille.compilation.implicit_as_states import LINEAR_EFFORT
from grisaille.errors import DataError, SimulationError
from grisaille.simulation.ensembles.devices import why_unfit
from grisaille.simulation.ensembles.disturbances import Disturbances
from grisaille.simulation.ensembles.engines import FusedEngine
from grisaille.simulation.ensembles.ensemble import prepare
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.ensembles.graphics_engine import GraphicsEngine
from grisaille.simulation.ensembles.reducers import make_reducers
from grisaille.simulation.ensembles.rough_signals import without_rough_signals
from grisaille.writing import whole_folder


@dataclass(frozen=True, eq=False)
class Exported:
    """What was written."""

    folder: Path
    values: int
    realizations: int
    steps: int
    """Of each realization."""
    instructions: int
    """Of each step."""

    def __str__(self) -> str:
        return (
            f"{self.folder}: {self.values} x {self.realizations} realizations of {self.steps} steps with "
            f"{self.instructions} instructions; python {self.folder}/run.py runs it where there is CuPy"
        )


def export_ensembles(
    points: Sequence[ExperimentPoint],
    options: EnsembleOptions,
    folder: str | Path,
    values: Mapping[str, Sequence[float]],
) -> Exported:
    """Write the ensembles of one model and record at several parameter values.

    values : what the points differ in, for the labels of the answer
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is a file: name a folder.")
    if target.exists() and any(target.iterdir()):
        raise DataError(f"The folder {target} is not empty: name another one, or remove what it holds.")
    moments = options.reduce is not None
    if moments and any(r.needs_rows for r in make_reducers(options.reduce)[0]):
        raise DataError("reduce= of an exported kernel is 'mean', 'variance' or both; without it every path is kept.")
    step, batches, names = _batches(points, options)
    parts = [part for batch in batches for part in split_directions(batch, step.ns)]
    job = make_job(step, parts)
    told = {
        "model": points[0].structure.model.name, "names": names, "time": points[0].times.tolist(),
        "directions": list(points[0].names), "values": {n: list(map(float, v)) for n, v in values.items()},
        "parts": len(parts) // len(batches), "moments": moments, "rows": not moments, "sizes": dict(job.sizes),
        "instructions": step.instructions,
        "batch": [[n, "pointer" if kind is ctypes.c_void_p else "long"] for n, kind, *_ in BatchStructure._fields_],
    }  # fmt: skip
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(target, "The kernel") as made:
        (made / "kernel.cu").write_text(one_text(step.source), encoding="utf-8")
        (made / "kernel.json").write_text(json.dumps(told), encoding="utf-8")
        arrays: dict[str, Any] = {**job.arrays, **{f"signal_{i}": s for i, s in enumerate(job.signals)}}
        np.savez_compressed(made / "arrays.npz", **arrays)
        for name, source in (("launch.py", "launch.py"), ("run.py", "exported.py")):
            text = (resources.files("grisaille.compilation.cuda") / source).read_text(encoding="utf-8")
            (made / name).write_text(text.replace("from grisaille.compilation.cuda.launch", "from launch"), "utf-8")
    steps = (len(job.arrays["grid"]) - 1) * job.substeps
    return Exported(target, len(points), int(options.realizations), steps, step.instructions)


def _batches(
    points: Sequence[ExperimentPoint], options: EnsembleOptions
) -> tuple[FusedStep, list[BatchInput], list[str]]:
    """Return one batch for each point, on the grid and with the steps of the first one."""
    points = [without_rough_signals(p) for p in points]
    disturbances = Disturbances(points[0].structure.model, points[0].structure.system)
    options = replace(options, device="cuda")
    engine_of, setting, carried = prepare(points[0], options, disturbances)
    why = why_unfit(engine_of, setting)
    if not why and engine_of is not FusedEngine:
        why = "only what draws its disturbances on the way is exported: between='linear', and models that are not stiff"
    if why:
        raise SimulationError(f"This ensemble does not run on a graphics processor: {why}.")
    if carried is not None and carried.effort is not LINEAR_EFFORT:
        raise SimulationError(
            f"This ensemble is not exported: {', '.join(carried.original.implicit_names)} are found by iteration "
            f"inside its steps, and whether they were is checked afterwards. device='cuda' runs it."
        )
    fixed = replace(options, substeps=setting.substeps)
    engines = [GraphicsEngine(prepare(p, fixed, disturbances)[1], "cuda", len(points)) for p in points]
    batches = [e.batch(slice(0, points[0].times.size)) for e in engines]
    if not are_alike(batches) or any(e.step is not engines[0].step for e in engines):
        raise SimulationError(
            "The parameter values change the grid, the inputs or the kind of steps, so that they do not run as one "
            "kernel: give step=, or export each value to a folder of its own."
        )
    names: list[Any] = [points[0].structure.system.observed_names[i] for i in setting.observed]
    return engines[0].step, batches, names
