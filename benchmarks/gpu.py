"""Ensembles on a graphics processor: the pendulum study complete, one iteration of Gauss–Newton, scaling, white noise.

    python benchmarks/gpu.py                   on a machine with a device, CuPy and this package
    python benchmarks/gpu.py --export FOLDER   on a machine with this package: kernels, and the processor's own answers
    python benchmarks/gpu.py --run FOLDER      on a machine with a device, NumPy and CuPy alone

Answers are compared with those of the processor before any time is printed. Times are those of whole runs, with what is
copied to the device and back; compilation is told beside them. Needs a device with 8 GiB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

VALUES, REALIZATIONS, SETS, BATCH, TRANSIENT = 81, 500, 1000, 50, 500
LENGTHS = (1000, 5000, 10_000, 50_000)
CORES = 2
"""Of the processor that ratios are given to: its processor time is divided by them."""
CHECKED, FEW = (0, 30, 80), 64
"""Values and realizations that the processor simulates as well."""
DOUBLES = 132 * 64 * 1.98e9
"""Double-precision operations of an H200 in a second, fused ones counted once."""
BYTES = 4.3e12
"""That a copy moves there in a second, read and written."""


def export(folder: Path, samples: int) -> None:
    """Write kernels, and what the processor makes of a part of them."""
    import grisaille as gr
    from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities
    from grisaille.disturbance import Purpose, Stream
    from grisaille.simulation.ensembles.disturbances import Disturbances
    from grisaille.simulation.ensembles.ensemble import run_ensemble
    from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
    from grisaille.simulation.ensembles.export import export_ensembles
    from grisaille_reproductions.abdalmoaty import PROGRAM, SPACING, times

    trial = BoundExperiment(
        PROGRAM.model(),
        times(samples),
        moves=EstimatedQuantities.named(["k"]),
        inputs=PROGRAM.inputs(samples),
        hold="foh",
    )
    options = EnsembleOptions(
        REALIZATIONS, seed=1, purpose=Purpose.MODEL, step=SPACING, rtol=1e-4, substeps=1, observed=("phi",),
        reduce=["mean", "variance"],
    )  # fmt: skip
    grid = np.arange(3.85, 10.25 + 0.04, 0.08)
    points = [trial.at(np.array([k])) for k in grid]
    print(export_ensembles([p.without_derivatives() for p in points], options, folder / "fig1", {"k": grid}))
    print(export_ensembles([trial.at(np.array([6.25]))], options, folder / "slope", {"k": [6.25]}))
    small, known = (
        replace(options, realizations=FEW),
        Disturbances(points[0].structure.model, points[0].structure.system),
    )
    expected: dict[str, Any] = {}
    began = time.process_time()
    for i in CHECKED:
        found = run_ensemble(points[i].without_derivatives(), small, None, known).statistics
        expected |= {f"mean_{i}": found["mean"].values, f"variance_{i}": found["variance"].values}
    steps = len(CHECKED) * FEW * (samples * 10)
    expected["seconds"] = (time.process_time() - began) / CORES / steps
    began = time.process_time()
    found = run_ensemble(trial.at(np.array([6.25])), small, None, known).statistics
    expected["seconds_slope"] = (time.process_time() - began) / CORES / (FEW * samples * 10)
    expected |= {"slope": found["mean"].slopes, "variance_slope": found["variance"].slopes}
    seeds = [1000 + first for first in range(0, SETS, BATCH)]
    streams = [Stream.of(s, Purpose.DATA, "w") for s in seeds]
    expected["data_streams"] = np.array([[(*s.key, 0)] for s in streams], dtype=np.uint32)
    noises = [Stream.of(s, Purpose.NOISE, "phi") for s in seeds]
    expected["noise_keys"] = np.array([s.key for s in noises])
    expected["normals"] = noises[0].normals(np.arange(8)[:, None], np.arange(1000), 1).reshape(8, 1000)
    run = gr.simulate(
        PROGRAM.model(), times(samples), PROGRAM.inputs(samples), hold="foh", noise=True, step=SPACING, rtol=1e-4,
        realizations=4, seed=seeds[1],
    )  # fmt: skip
    expected["data"] = run.phi.values
    np.savez_compressed(folder / "expected.npz", **expected)
    _export_white(folder)
    Path(folder / "gpu.py").write_text(Path(__file__).read_text("utf-8"), "utf-8")


def _export_white(folder: Path) -> None:
    """A level under multiplicative white noise, and its mean by the processor."""
    import grisaille as gr
    from grisaille.simulation.ensembles.ensemble import run_ensemble
    from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
    from grisaille.simulation.ensembles.export import export_ensembles
    from grisaille.simulation.posing import pose

    class Level(gr.Model):
        k, s = gr.Parameter(0.7), gr.Parameter(0.4)
        h = gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.3)
        y = gr.Output(h)
        equations = [gr.der(h) == 1 - k * h + s * h * w]

    point = pose(Level(), np.linspace(0, 50, 501), None, None, None, hold=None, sensitivities=("k",), breaks=())
    options = EnsembleOptions(2000, seed=1, observed=("y",), reduce=["mean", "variance"])
    print(export_ensembles([point], options, folder / "white", {}))
    began = time.process_time()
    found = run_ensemble(point, options)
    np.savez(
        folder / "white" / "expected.npz", mean=found.statistics["mean"].values, slope=found.statistics["mean"].slopes,
        seconds=(time.process_time() - began) / CORES,
    )  # fmt: skip


def export_robot(folder: Path) -> None:
    """The delta robot with twelve sensitivities; the processor's own engine gives times and, to its rtol, means."""
    from grisaille.simulation.ensembles.ensemble import run_ensemble
    from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
    from grisaille.simulation.ensembles.export import export_ensembles
    from grisaille.simulation.posing import pose
    from grisaille_reproductions.abdalmoaty_delta_robot import ALL, OUTPUTS, SAMPLING, STEP, reference
    from grisaille_reproductions.delta_robot import DeltaRobot

    t = SAMPLING * np.arange(401)
    inputs = {f"legs[{k}].reference": reference(t, k) for k in range(3)}
    point = pose(DeltaRobot(), t, inputs, None, None, hold="foh", sensitivities=ALL, breaks=())
    options = EnsembleOptions(500, seed=1, step=STEP, rtol=1e-4, observed=OUTPUTS, reduce=["mean", "variance"])
    print(export_ensembles([point], options, folder / "robot", {}))
    small = replace(options, realizations=8)
    run_ensemble(point, small)
    began = time.process_time()
    found = run_ensemble(point, small).statistics["mean"]
    seconds = (time.process_time() - began) / CORES / 8
    np.savez(folder / "robot" / "expected.npz", mean=found.values, seconds=seconds)


class Bench:
    """Runs what was exported; nothing of the package is imported."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder / "fig1"))
        import launch

        self.launch, self.folder = launch, folder
        self.expected = np.load(folder / "expected.npz")
        self.fig, self.told = launch.load(str(folder / "fig1"))
        self.slope, _ = launch.load(str(folder / "slope"))
        self.batch = launch.layout(self.told["batch"])

    def machine(self, name: str, job: Any, number: int = 0, **options: Any) -> Any:
        """Machines with different numbers run at the same time."""
        began = time.perf_counter()
        text = (self.folder / name / "kernel.cu").read_text("utf-8")
        made = self.launch.Graphics(f"/* {number} */\n{self.launch.fixed(job)}{text}", **options)
        print(f"{name} {options or ''}: {made.told()}, compiled in {time.perf_counter() - began:.2f} s")
        return made

    def run(self, job: Any, machine: Any, rows: bool = False, **options: Any) -> tuple[float, Any]:
        began = time.perf_counter()
        found = self.launch.run(job, machine, self.batch, moments=not rows, rows=rows, ends=False, **options)
        return time.perf_counter() - began, found

    def sized(self, job: Any, count: int, values: Any = None, cells: int | None = None) -> Any:
        """A part of a job, or more of it; starts of its realizations come again."""
        sizes, arrays, signals = {**job.sizes, "count": count}, {**job.arrays, "member": np.arange(count)}, job.signals
        for name, dimensions in (("x0", 3), ("sx0", 4)):
            if arrays[name].ndim == dimensions:
                arrays[name] = np.take(arrays[name], np.arange(count) % job.count, axis=1)
        if values is not None:
            sizes["values"] = len(values)
            arrays |= {n: job.arrays[n][values] for n in self.launch.EACH}
        if cells is not None:
            arrays |= {"grid": job.arrays["grid"][: cells + 1], "which": job.arrays["which"][:cells]}
            arrays["kept"] = job.arrays["kept"][job.arrays["kept"] <= cells]
            width = [3 * cells + 1 if h == 2 else cells + 1 for h in job.arrays["held"]]
            signals = [s[:w] for s, w in zip(signals, width, strict=True)]
        return self.launch.Job(sizes, arrays, signals)


def check(name: str, found: np.ndarray, expected: np.ndarray, limit: float = 1e-12) -> None:
    """Prints the largest difference; ends the program where it is above the limit."""
    off = float(np.abs(found - expected).max() / np.abs(expected).max())
    print(f"  {name}: {off:.1e} of the processor's")
    if not off <= limit:
        raise SystemExit(f"{name} differs by {off:.2e}, more than {limit:g}: no times are printed.")


def study(bench: Bench) -> None:
    """Fig. 1: model realizations on the grid, output error, data sets with noise, criteria, estimates."""
    import cupy

    fig, known = bench.fig, bench.expected
    machines = [bench.machine("fig1", fig, number) for number in range(3)]
    _, found = bench.run(bench.sized(fig, FEW, list(CHECKED)), machines[0])
    for v, i in enumerate(CHECKED):
        check(f"mean at value {i}", found.moments["mean"][v], known[f"mean_{i}"])
        check(f"variance at value {i}", found.moments["spread"][v] / (FEW - 1), known[f"variance_{i}"])
    z = bench.launch.normals(machines[0], bench.batch, tuple(map(int, known["noise_keys"][0])), (8, 1000))
    if not np.array_equal(machines[0].fetch(z), known["normals"]):
        raise SystemExit("normals are not those of the processor, bit for bit.")
    print("  normals: those of the processor, bit for bit")
    sets = SETS // BATCH
    data = bench.sized(fig, BATCH, [0] * sets)
    p = np.repeat(bench.slope.arrays["p"], sets, axis=0)
    data = replace(data, arrays={**data.arrays, "p": p, "stream": known["data_streams"]})
    alone = bench.sized(fig, 1)
    alone = replace(alone, arrays={**alone.arrays, "reading": 0.0 * alone.arrays["reading"]})

    def simulated(which: int) -> Any:
        if which == 0:
            return bench.run(fig, machines[0])[1].moments
        if which == 1:
            return bench.run(alone, machines[1])[1].moments["mean"]
        y = bench.run(data, machines[2], rows=True, fetched=False)[1].y[..., 0]
        with machines[2].queue:
            for v, key in enumerate(known["noise_keys"]):
                y[v] += 0.002 * bench.launch.normals(machines[2], bench.batch, tuple(map(int, key)), y.shape[1:])
        machines[2].queue.synchronize()
        return y.reshape(SETS, -1)

    for _ in range(2):
        began = time.perf_counter()
        with ThreadPoolExecutor(3) as pool:
            moments, quiet, y = pool.map(simulated, range(3))
        made = time.perf_counter() - began
        grid = np.asarray(bench.told["values"]["k"])
        estimates = _estimates(cupy, grid, moments, quiet, y)
        total = time.perf_counter() - began
    check("data set 50", cupy.asnumpy(y[BATCH : BATCH + 4]), known["data"])
    single, _ = bench.run(fig, machines[0])
    instructions = 390.0  # of a step with its draw and filter, counted in the text, quotients as ten
    steps = VALUES * REALIZATIONS * (len(fig.arrays["grid"]) - 1)
    moved = 2 * 8 * VALUES * REALIZATIONS * len(fig.arrays["kept"])
    print(f"Fig. 1 complete: {total:.2f} s, of which simulation {made:.2f} s (model realizations alone {single:.2f} s)")
    share, bytes_share = steps * instructions / single / DOUBLES, moved / single / BYTES
    print(f"  model realizations: {100 * share:.0f} % of the double-precision operations of the device, "
          f"{100 * bytes_share:.1f} % of its bytes; {steps * float(known['seconds']) / single:.0f} times two cores "
          f"of the processor that made the expected answers")  # fmt: skip
    for (n, method), e in estimates.items():
        print(f"  N = {n}, {method}: mean {e.mean():.3f}, median {np.median(e):.2f}, std {e.std(ddof=1):.3f}")
    np.savez(Path.cwd() / "fig1-estimates.npz", **{f"{method} {n}": e for (n, method), e in estimates.items()})


def _estimates(
    cupy: Any, grid: np.ndarray, moments: Any, quiet: np.ndarray, y: Any
) -> dict[tuple[int, str], np.ndarray]:
    """The best value of the grid for each data set, by length and method."""
    found = {}
    for n in LENGTHS:
        if n >= y.shape[1]:
            continue
        # the first row is the start
        used = slice(1 + TRANSIENT, 1 + n)
        z = cupy.ascontiguousarray(y[:, used])
        for method in ("proposed", "corrected", "output error"):
            mean = cupy.asarray(quiet if method == "output error" else moments["mean"])[:, used, 0]
            cost = (mean**2).sum(axis=1) - 2 * z @ mean.T
            if method == "corrected":
                variance = cupy.asarray(moments["spread"])[:, used, 0] / (REALIZATIONS - 1)
                cost -= variance.sum(axis=1) / REALIZATIONS
            found[n, method] = grid[cupy.asnumpy(cost.argmin(axis=1))]
    return found


def gauss_newton(bench: Bench) -> None:
    """Mean, variance and their slopes by one parameter."""
    known, machine = bench.expected, bench.machine("slope", bench.slope)
    _, found = bench.run(bench.sized(bench.slope, FEW), machine)
    check("slope of the mean", found.moments["smean"][0], known["slope"])
    check("slope of the variance", 2 * found.moments["scross"][0] / (FEW - 1), known["variance_slope"])
    for count in (500, 4000, 40_500):
        job = bench.sized(bench.slope, count)
        seconds = min(bench.run(job, machine)[0] for _ in range(2))
        ratio = count * (len(job.arrays["grid"]) - 1) * float(known["seconds_slope"]) / seconds
        print(f"one iteration with a sensitivity, M = {count}: {seconds:.3f} s, {ratio:.0f} times two cores")


def scaling(bench: Bench) -> None:
    """Exponents of the time in M and N once the device is full."""
    machine, one = bench.machine("fig1", bench.fig), bench.sized(bench.fig, 1, [40])
    counts = [2**17, 2**19, 2**21, 2**23, 2**24]
    times = [min(bench.run(bench.sized(one, m, cells=1000), machine)[0] for _ in range(2)) for m in counts]
    _told("M", counts, times)
    cells = [5000, 20_000, 80_000, 250_000, 500_000]
    times = [min(bench.run(bench.sized(one, 2**18, cells=k), machine)[0] for _ in range(2)) for k in cells]
    _told("N", [k // 10 for k in cells], times)


def _told(name: str, sizes: list[int], times: list[float]) -> None:
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    print(
        f"time over {name}: exponent {slope:.3f}; "
        + ", ".join(f"{s}: {t:.4f} s" for s, t in zip(sizes, times, strict=True))
    )


def white(bench: Bench) -> None:
    """A scheme for white noise, every cell halved as often as the processor does."""
    folder = bench.folder / "white"
    job, _ = bench.launch.load(str(folder))
    known, machine = np.load(folder / "expected.npz"), bench.machine("white", job)
    seconds, found = bench.run(job, machine)
    seconds, found = bench.run(job, machine)
    check("mean under white noise", found.moments["mean"][0], known["mean"])
    check("its slope", found.moments["smean"][0], known["slope"])
    print(f"white noise, M = {job.count}, {(len(job.arrays['grid']) - 1) * job.substeps} steps: {seconds:.4f} s, "
          f"{float(known['seconds']) / seconds:.0f} times two cores, pilot included there")  # fmt: skip


def robot(bench: Bench) -> None:
    """Twelve sensitivities of a long step, where they were exported."""
    folder = bench.folder / "robot"
    if not folder.exists():
        return
    job, _ = bench.launch.load(str(folder))
    known, machine = np.load(folder / "expected.npz"), bench.machine("robot", job)
    check("mean of the robot", bench.run(bench.sized(job, 8), machine)[1].moments["mean"][0], known["mean"], 1e-4)
    for count in (500, 2000, 8000):
        more = bench.sized(job, count)
        seconds = min(bench.run(more, machine)[0] for _ in range(2))
        print(f"robot, M = {count}: {seconds:.3f} s, {count * float(known['seconds']) / seconds:.0f} times two cores")


def single(bench: Bench) -> None:
    """Steps in single precision."""
    machine = bench.machine("fig1", bench.fig, single=True)
    _, found = bench.run(bench.sized(bench.fig, FEW, list(CHECKED)), machine)
    check("mean in single precision", found.moments["mean"][1], bench.expected[f"mean_{CHECKED[1]}"], 1e-3)
    print(f"model realizations in single precision: {bench.run(bench.fig, machine)[0]:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--export", type=Path, help="write kernels and expected answers here, and end")
    parser.add_argument("--run", type=Path, help="run what was written there")
    parser.add_argument("--samples", type=int, default=50_000, help="of the pendulum's records")
    parser.add_argument("--robot", action="store_true", help="export the delta robot too: minutes")
    given = parser.parse_args()
    folder = given.export or given.run or Path(tempfile.mkdtemp())
    if given.run is None:
        export(folder, given.samples)
        if given.robot:
            export_robot(folder)
    if given.export is not None:
        return
    bench = Bench(folder)
    for part in (study, gauss_newton, scaling, white, single, robot):
        part(bench)


if __name__ == "__main__":
    main()
