"""Ensembles on a graphics processor, here as loops over its threads: the same digits as the processor's own code.

Kernels, windows, blocks of moments and the way back to names are those that a device runs; arithmetic is C's, so that
every number must be equal. Random numbers and quotients of a real device are compared by ``benchmarks/gpu.py``.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from zoo.mechanics import Pendulum

import grisaille as gr
from grisaille.cli import main
from grisaille.compilation import build_library, find_compiler
from grisaille.compilation.cuda import batch_cuda, device, launch, one_text, task_source
from grisaille.simulation.ensembles import devices, graphics_engine, graphics_tasks

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")


class Tank(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.1, 2.0))
    q = gr.Parameter(1.0)
    h = gr.Variable(0.5)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.3)
    y = gr.Output(h**2, noise=0.01)
    equations = [gr.der(h) == q + u + w - k * h / (1 + h**2)]


class Shaken(gr.Model):
    """A disturbance and its derivative."""

    k = gr.Parameter(0.4)
    h = gr.Variable(0.3)
    w = gr.Disturbance(gr.spectra.resonance(frequency=3.0, damping=0.3), scale=0.8)
    y = gr.Output(gr.sin(h), noise=0.01)
    equations = [gr.der(h) == w * gr.der(w) - k * h**3]


class White(gr.Model):
    k, s = gr.Parameter(0.7), gr.Parameter(0.4)
    h = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(h, noise=0.01)
    equations = [gr.der(h) == 1 - k * h + s * h * w]


class Implicit(gr.Model):
    k = gr.Parameter(0.5)
    h, z = gr.Variable(0.5), gr.Variable(0.5)
    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.3)
    y = gr.Output(h, noise=0.01)
    equations = [gr.der(h) == w - k * z, z + 0.1 * z**5 == h]


TIMES = np.linspace(0.0, 2.0, 21)
FORCE = {"u": (TIMES, np.sin(3 * TIMES))}


class HostTasks:
    """The kernel as a loop over its threads: slow, for comparison."""

    name = "emulated"

    def __init__(self, source: str) -> None:
        library = build_library(source, 1000)
        assert library is not None
        self.kernel = ctypes.CDLL(str(library.path)).gr_cuda_tasks_kernel

    def put(self, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array).copy()

    def fetch(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def address(self, array: np.ndarray) -> int:
        return int(array.ctypes.data)

    def free(self) -> None:
        return None

    def run(self, tasks: np.ndarray, count: int, is_implicit: bool) -> None:
        self.kernel(ctypes.c_void_p(self.address(tasks)), ctypes.c_long(count), ctypes.c_long(is_implicit))


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[launch.DeviceJob]]:
    """A device that runs its threads one after the other; the jobs it was given."""
    jobs: list[launch.DeviceJob] = []

    def machine(source: str, job: launch.DeviceJob, single: bool = False) -> launch.Host:
        jobs.append(job)
        library = build_library(one_text(source), 1000)
        assert library is not None
        return launch.Host(str(library.path))

    monkeypatch.setattr(batch_cuda, "machine_for", machine)
    monkeypatch.setattr(
        graphics_tasks, "machine_for_tasks", lambda system, sensitive: HostTasks(task_source(system, sensitive))
    )
    here = device.Availability("emulated", "")
    monkeypatch.setattr(devices, "find_device", lambda: here)
    monkeypatch.setattr(devices, "require_graphics_device", lambda: here.name)
    yield jobs


def equal(a: xr.Dataset, b: xr.Dataset) -> bool:
    return all(np.array_equal(a[n].values, b[n].values, equal_nan=True) for n in a.data_vars) and set(a) == set(b)


@pytest.mark.parametrize(
    ("model", "inputs", "names"),
    [
        (Tank(), FORCE, ["k", "start(h)", "scale(w)"]),
        (Shaken(), None, ["k"]),
        (Pendulum(), {"u": 0.5}, ["k"]),
        (White(), None, ["k", "s"]),
    ],
    ids=["tank", "derivative", "index 3", "white"],
)
def test_every_digit_is_that_of_the_processor(emulated, monkeypatch, model, inputs, names) -> None:
    monkeypatch.setattr(launch, "MAX_WINDOW_BYTES", 4000)
    monkeypatch.setitem(launch.run.__kwdefaults__, "most", 4000)
    options = {"realizations": 37, "seed": 5, "sensitivities": names, "reduce": ["mean", "variance"], "hold": "foh"}
    here = gr.simulate(model, TIMES, inputs, **options)
    there = gr.simulate(model, TIMES, inputs, **options, device="cuda")
    assert equal(here, there)
    assert there.attrs["device"] == "cuda: emulated" and "on cuda" in there.attrs["solver"]
    # every direction has its own threads, and the grid was cut into windows
    assert emulated[-1].ns == 1 and emulated[-1].values == len(names)


def test_paths_and_quantiles_too(emulated) -> None:
    options = {"realizations": 5, "antithetic": True, "step": 0.05}
    assert equal(
        gr.simulate(Tank(), TIMES, FORCE, **options), gr.simulate(Tank(), TIMES, FORCE, device="cuda", **options)
    )
    options["reduce"] = "quantiles"
    assert equal(
        gr.simulate(Tank(), TIMES, FORCE, **options), gr.simulate(Tank(), TIMES, FORCE, device="cuda", **options)
    )


def test_realizations_that_fail_are_left_out_there_as_well(emulated) -> None:
    class Runaway(gr.Model):
        h = gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=1.0)
        equations = [gr.der(h) == h**2 * w]

    options = {"realizations": 40, "reduce": "mean", "strict": False, "step": 0.02}
    with pytest.warns(UserWarning):
        here = gr.simulate(Runaway(), 2 * TIMES, **options)
    with pytest.warns(UserWarning):
        there = gr.simulate(Runaway(), 2 * TIMES, **options, device="cuda")
    assert equal(here, there) and len(here.attrs["failed_realizations"])
    assert np.array_equal(here.attrs["failed_realizations"], there.attrs["failed_realizations"])


def test_a_fit_and_its_grid_are_those_of_the_processor(emulated) -> None:
    run = gr.simulate(Tank(), TIMES, FORCE, realizations=1, seed=3, noise=True)
    data = gr.Experiment(TIMES, FORCE, {"y": run["y"].values[0]})
    options = {"realizations": 16, "search": "grid", "points": 7, "step": 0.1}
    fits = [gr.fit(Tank(), data, ["k"], gr.SimulatedPEM(**options, device=d), progress=False) for d in ("cpu", "cuda")]
    assert fits[0].parameters.equals(fits[1].parameters)
    assert any(job.values == 7 for job in emulated), "the points of the grid in one run"
    assert any("cuda: emulated" in note for note in fits[1].notes)
    assert not any("simulated on" in note for note in fits[0].notes)


def test_without_a_device_it_is_refused_or_said(monkeypatch) -> None:
    had = "cupy" in sys.modules
    data = gr.Experiment(TIMES, FORCE, {"y": np.zeros(len(TIMES))})
    monkeypatch.setattr(device.importlib.util, "find_spec", lambda name: None)
    device.find_device.cache_clear()
    try:
        with pytest.raises(gr.SimulationError, match=r'CuPy is not installed: pip install "grisaille\[gpu\]"'):
            gr.simulate(Tank(), TIMES, FORCE, realizations=3, device="cuda")
        with pytest.raises(gr.SimulationError, match=r"^device='cuda': CuPy is not installed"):
            gr.fit(Tank(), data, ["k"], gr.SimulatedPEM(realizations=3, device="cuda"))
        run = gr.simulate(Tank(), TIMES, FORCE, realizations=3, device="auto")
    finally:
        device.find_device.cache_clear()
    assert run.attrs["device"].startswith("cpu: CuPy is not installed") and ("cupy" in sys.modules) == had
    assert equal(run, gr.simulate(Tank(), TIMES, FORCE, realizations=3))


def test_what_does_not_fit_is_refused_with_a_reason_and_runs_here_under_auto(emulated, monkeypatch) -> None:
    class Bell(gr.Model):
        h = gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.3)
        equations = [gr.der(h) == w - h, gr.when(h < 0.5, gr.reinit(h, 1.0))]

    reason = r"gr\.when\(.*\) is followed on processors only"
    with pytest.raises(gr.SimulationError, match=reason):
        gr.simulate(Bell(), TIMES, realizations=3, device="cuda")
    assert re.search(reason, gr.simulate(Bell(), TIMES, realizations=3, device="auto").attrs["device"])
    with pytest.raises(gr.SimulationError, match="double precision only"):
        gr.simulate(Implicit(), TIMES, realizations=3, method="frozen-implicit", device="cuda-single")
    for model, options in (
        (Implicit(), {"method": "frozen-implicit"}),
        (Tank(), {"between": "spline", "inputs": FORCE}),
    ):
        run = gr.simulate(model, TIMES, realizations=3, device="auto", **options)
        assert "sampled on the processor" in run.attrs["device"]
    monkeypatch.setattr(devices, "MAX_DEVICE_INSTRUCTIONS", 20)
    reason = r"the equations and their derivatives have \d+ instructions, and kernels are compiled up to 20"
    implicit = {"realizations": 3, "method": "frozen-implicit"}
    with pytest.raises(gr.SimulationError, match=reason):
        gr.simulate(Implicit(), TIMES, device="cuda", **implicit)
    assert re.search(reason, gr.simulate(Implicit(), TIMES, device="auto", **implicit).attrs["device"])
    with pytest.raises(gr.DataError, match="give realizations="):
        gr.simulate(Tank(), TIMES, FORCE, device="cuda")
    with pytest.raises(gr.GrisailleError, match="device is 'gpu'"):
        gr.simulate(Tank(), TIMES, FORCE, realizations=3, device="gpu")


class Stiff(gr.Model):
    """Index 1, a fast mode and a slow one; the disturbance moves with a parameter."""

    k = gr.Parameter(2.0)
    fast, slow, z = gr.Variable(1.0), gr.Variable(0.2), gr.Variable(0.1)
    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.3)
    equations = [
        gr.der(fast) == -2000 * (fast - gr.cos(slow)), gr.der(slow) == w - k * z, z + 0.1 * z**3 == slow * fast
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (Implicit(), {"method": "frozen-explicit"}),
        (Stiff(), {"method": "frozen-implicit", "sensitivities": ["k", "scale(w)"]}),
        (Tank(), {"between": "spline", "inputs": FORCE}),
        (Tank(), {"between": "exact", "inputs": FORCE, "sensitivities": ["k", "q"]}),
        (White(), {"between": "exact"}),
    ],
    ids=["explicit integrator", "stiff", "spline", "exact", "white and exact"],
)
def test_what_is_sampled_beforehand_has_the_processors_digits(emulated, monkeypatch, model, options) -> None:
    # two runs of the device for 70 realizations
    monkeypatch.setattr(graphics_engine, "MAX_SAMPLED_BYTES", 1)
    monkeypatch.setattr(graphics_tasks, "MAX_TASK_BYTES", 1)
    shared = {"realizations": 70, "reduce": ["mean", "variance"], "seed": 3, "times": TIMES[:6]}
    here, there = (gr.simulate(model, **shared, **options, device=d) for d in ("cpu", "cuda"))
    assert equal(here, there) and there.attrs["device"] == "cuda: emulated" and "on cuda" in there.attrs["solver"]


def test_implicit_unknowns_are_solved_inside_the_steps_there(emulated) -> None:
    options = {"realizations": 9, "reduce": ["mean", "variance"], "sensitivities": ["k"], "step": 0.1}
    here = gr.simulate(Implicit(), TIMES, **options, method="fused")
    there = gr.simulate(Implicit(), TIMES, **options, device="cuda")
    assert equal(here, there) and there.attrs["device"] == "cuda: emulated"
    solved = gr.simulate(Implicit(), TIMES, **options, rtol=1e-9)
    assert "implicit" in solved.attrs["solver"] or "explicit" in solved.attrs["solver"]
    for name in solved.data_vars:
        np.testing.assert_allclose(here[name], solved[name], rtol=1e-5, atol=1e-6)


def test_small_runs_stay_here_under_auto(emulated, monkeypatch) -> None:
    assert "too few" in gr.simulate(Tank(), TIMES, FORCE, realizations=3, device="auto").attrs["device"]
    monkeypatch.setattr(devices, "MIN_REALIZATIONS_PER_CORE", 0)
    assert "to compile" in gr.simulate(Tank(), TIMES, FORCE, realizations=3, device="auto").attrs["device"]
    monkeypatch.setattr(devices, "MIN_PROCESSOR_SECONDS", 0.0)
    assert gr.simulate(Tank(), TIMES, FORCE, realizations=3, device="auto").attrs["device"] == "cuda: emulated"


def test_too_little_memory_is_a_sentence_with_what_fits(emulated, monkeypatch) -> None:
    class Small(launch.Host):
        def free(self) -> int:
            return 1 << 20

        def empty(self, shape, dtype):
            raise launch.OutOfDeviceMemory("no")

    make = batch_cuda.machine_for

    def machine(source, job, single=False):
        made = make(source, job, single)
        made.__class__ = Small
        return made

    monkeypatch.setattr(batch_cuda, "machine_for", machine)
    with pytest.raises(gr.SimulationError, match=r"do not fit into the 0\.000977 GiB .* \d+ realizations would fit"):
        gr.simulate(Tank(), TIMES, FORCE, realizations=100_000, reduce="mean", device="cuda")


def test_the_pendulum_study_is_that_of_the_processor(emulated, monkeypatch) -> None:
    from grisaille_reproductions import abdalmoaty_together
    from grisaille_reproductions.abdalmoaty import PROGRAM
    from grisaille_reproductions.abdalmoaty_estimates import Extent, on_grid, simulate_data

    monkeypatch.setattr(abdalmoaty_together, "BATCH", 2)
    data = [simulate_data(PROGRAM, 3, 600, device) for device in ("cpu", "cuda")]
    assert np.array_equal(*data) and len(emulated) == 1 and emulated[0].values == 2, "data sets of all seeds in one run"
    extent = Extent(3, (600,), 4, 2.0)
    here, there = (on_grid(PROGRAM, extent, device) for device in ("cpu", "cuda"))
    assert all(np.array_equal(here[600][m], there[600][m]) for m in here[600])
    assert any(job.values == len(extent.grid) for job in emulated)


def test_directions_of_a_thread_fill_the_device() -> None:
    count = graphics_engine.directions_of_a_thread
    assert count(0, 500) == 0 and count(12, 500) == 1 and count(12, 10_000) == 4 and count(12, 10**6) == 12


def test_windows_hold_every_row_once() -> None:
    kept = np.array([0, 0, 3, 5, 5, 9, 12])
    for most in (1 << 20, 16, 1):
        found = launch.cut_into_windows(kept, 12, 1, 8, most)
        assert [w.first for w in found] == [0, *(w.last for w in found[:-1])] and found[-1].last == kept.size
        assert [w.begin for w in found] == [0, *(w.end for w in found[:-1])] and found[-1].end == 12
        for w in found:
            assert all(w.begin <= k <= w.end for k in kept[w.first : w.last])


def test_an_exported_folder_runs_by_itself(tmp_path: Path, capsys) -> None:
    model = tmp_path / "tank.py"
    model.write_text(
        "import grisaille as gr\n\n\nclass Tank(gr.Model):\n    k = gr.Parameter(0.5)\n    h = gr.Variable(0.5)\n"
        "    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.3)\n    y = gr.Output(h**2)\n"
        "    equations = [gr.der(h) == 1 + w - k * h]\n"
    )
    folder = tmp_path / "kernel"
    words = [f"{model}:Tank", str(folder), "--times", "0:2:0.1", "--values", "k=0.4:0.6:0.1", "--realizations", "33"]
    assert main(["export-kernel", *words, "--sensitivity", "k", "--observe", "y", "--seed", "4"]) == 0
    assert "3 x 33 realizations" in capsys.readouterr().out
    answer = tmp_path / "answer.npz"
    told = subprocess.run(
        [sys.executable, folder / "run.py", "--emulate", "--output", answer], capture_output=True, text=True, check=True
    ).stdout
    assert "emulated" in told
    assert not any("import casadi" in p.read_text() for p in folder.glob("*.py"))
    found = np.load(answer)
    assert np.array_equal(found["value_k"], [0.4, 0.5, 0.6]) and list(found["names"]) == ["y"]
    from grisaille.loading import load_model

    for i, k in enumerate((0.4, 0.5, 0.6)):
        run = gr.simulate(
            load_model(f"{model}:Tank"), TIMES, parameters={"k": found["value_k"][i]}, realizations=33, seed=4,
            reduce=["mean", "variance"], sensitivities=["k"],
        )  # fmt: skip
        assert np.array_equal(found["mean"][i, :, 0], run["y_mean"].values), k
        assert np.array_equal(found["variance"][i, :, 0], run["y_variance"].values)
        assert np.array_equal(found["d_mean"][i, :, 0, 0], run["d(y_mean)"].values[:, 0])
    assert main(["export-kernel", *words]) == 2 and "is not empty" in capsys.readouterr().err
    file = tmp_path / "a file"
    file.write_text("")
    words[1] = str(file)
    assert main(["export-kernel", *words]) == 2 and "is a file" in capsys.readouterr().err


def test_exported_paths_have_their_directions_beside_one_another(tmp_path: Path) -> None:
    model = tmp_path / "tank.py"
    model.write_text(
        "import grisaille as gr\n\n\nclass Tank(gr.Model):\n    k = gr.Parameter(0.5)\n    q = gr.Parameter(1.0)\n"
        "    h = gr.Variable(0.5)\n    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.3)\n"
        "    equations = [gr.der(h) == q + w - k * h]\n\n\n"
        "class Late(Tank):\n    equations = [gr.der(Tank.h) == Tank.w - gr.delay(Tank.h, 0.5)]\n"
    )
    folder, answer = tmp_path / "kernel", tmp_path / "answer.npz"
    words = ["--times", "0:2:0.1", "--realizations", "5", "--seed", "4", "--reduce", "none"]
    assert (
        main(["export-kernel", f"{model}:Tank", str(folder), *words, "--sensitivity", "k", "--sensitivity", "q"]) == 0
    )
    subprocess.run(
        [sys.executable, folder / "run.py", "--emulate", "--output", answer], capture_output=True, check=True
    )
    found = np.load(answer)
    from grisaille.loading import load_model

    run = gr.simulate(load_model(f"{model}:Tank"), TIMES, realizations=5, seed=4, sensitivities=["k", "q"])
    place = list(found["names"]).index("h")
    assert list(found["directions"]) == ["k", "q"] and found["failed"].shape == (1, 5)
    assert np.array_equal(found["y"][0, :, :, place], run["h"].values)
    assert np.array_equal(found["d_y"][0, :, :, :, place], run["d(h)"].values)
