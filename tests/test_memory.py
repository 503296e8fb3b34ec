"""Memory is asked for before it is used: what is available, and refusals in words where it does not do."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import grisaille as gr
from grisaille import memory
from grisaille.errors import InsufficientMemoryError


class Tank(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.1, 2.0))
    h = gr.Variable(0.5)
    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.3)
    y = gr.Output(h, noise=0.01)
    equations = [gr.der(h) == 1 + w - k * h]


TIMES = np.linspace(0.0, 10.0, 1001)


@pytest.fixture
def small(monkeypatch):
    """A machine with little memory left, asked for every size."""
    monkeypatch.setattr(memory, "_bounds", lambda: iter([memory.Available(50 << 20, "on this machine")]))


def test_four_million_trajectories_are_refused_with_what_fits_and_the_remedy():
    with pytest.raises(InsufficientMemoryError, match=r"4000000 realizations .* would fit\. .*reduce='mean'"):
        gr.simulate(Tank(), np.linspace(0.0, 10.0, 1_000_001), realizations=4_000_000)


def test_what_fits_is_what_is_said_to_fit(small):
    given = {"realizations": 10_000}
    with pytest.raises(MemoryError) as refused:
        gr.simulate(Tank(), TIMES, **given)
    fitting = int(str(refused.value).split(" realizations would fit")[0].split()[-1])
    names = 3
    assert fitting == pytest.approx((50 << 20) / (2 * 8 * 1001 * names), rel=0.01)
    with pytest.raises(InsufficientMemoryError, match="output times would fit"):
        gr.simulate(Tank(), np.linspace(0.0, 10.0, 3_000_000))


def test_a_fit_is_refused_before_it_is_posed(small):
    t = 0.1 * np.arange(100_000)
    data = gr.Experiment(t, {}, {"y": np.ones(t.size)})
    with pytest.raises(InsufficientMemoryError, match=r"A fit of 1 unknowns to 100000 measurements .* by gr.KalmanML"):
        gr.fit(Tank(), data, method=gr.KalmanML())


def test_starts_and_surfaces_are_refused_before_they_are_made(small):
    """Two thousand million starts were NumPy's ``MemoryError``; a grid of lists was made until the system ended it."""
    data = gr.Experiment([0.0, 1.0, 2.0], {}, {"y": [0.5, 0.9, 1.2]})
    given = {"method": gr.OutputError(), "executor": "serial"}
    for starts in ({"starts": 10**9}, {"starts": 10**9, "sampling": "latin"}):
        with pytest.raises(InsufficientMemoryError, match=r"1000000000 starts of 1 unknowns .* starts would fit"):
            gr.multistart(Tank(), data, ["k"], **starts, **given)
    grid = {"k": np.linspace(0.2, 1.0, 10**4), "start(h)": np.linspace(0.2, 1.0, 10**4)}
    with pytest.raises(InsufficientMemoryError, match="100000000 starts of 2 unknowns"):
        gr.multistart(Tank(), data, ["k", "start(h)"], sampling=grid, **given)
    fit = gr.fit(Tank(), data, ["k", "start(h)"], given["method"])
    with pytest.raises(InsufficientMemoryError, match=r"100000 by 100000 points .* 1280 by as many would fit"):
        fit.surface("k", "start(h)", points=100_000)


def test_available_is_the_least_of_machine_groups_and_limits(tmp_path, monkeypatch):
    process, groups = tmp_path / "proc", tmp_path / "cgroup"
    (process / "self").mkdir(parents=True)
    (groups / "job").mkdir(parents=True)
    (process / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 8000 kB\nSwapFree: 1000 kB\n")
    (process / "self" / "cgroup").write_text("0::/job/step\n")
    monkeypatch.setattr(memory, "_PROC", process)
    monkeypatch.setattr(memory, "_CGROUPS", groups)
    monkeypatch.setattr(sys, "platform", "linux")
    assert memory.available_memory().bytes == 9000 * 1024
    for name, text in {"max": "1000000", "current": "700000", "stat": "inactive_file 100000\nanon 5\n"}.items():
        (groups / "job" / f"memory.{name}").write_text(text)
    found = memory.available_memory()
    assert found.bytes == 400_000 and "control group" in found.bound
    memory.share_memory(1000, 4)
    try:
        assert memory.available_memory().bound == "to each of the study's 4 processes"
    finally:
        memory.share_memory(None, 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space are Linux's")
def test_a_limit_of_the_process_is_respected():
    code = """
import resource
from grisaille import memory
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), -1))
memory.require_memory(150 << 20, "This", "")
try:
    memory.require_memory(300 << 20, "This", "Less.")
except memory.InsufficientMemoryError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.startswith("This would take 300 MiB of memory, and 200 MiB are available to this process")
