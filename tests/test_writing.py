"""Files on disks without room: refused in words, nothing unfinished, what was there stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from grisaille.cli import main
from grisaille.errors import DataError
from grisaille.writing import whole_folder, write_whole

MODEL = """
import grisaille as gr

class Decay(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.01, 10.0))
    x = gr.Variable(1.0)
    y = gr.Output(x, noise=0.05)
    equations = [gr.der(x) == -k * x]
"""
SMALL = """
import resource, sys
import numpy as np
import grisaille as gr

class Decay(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.01, 10.0))
    x = gr.Variable(1.0)
    y = gr.Output(x, noise=0.05)
    equations = [gr.der(x) == -k * x]

t = np.linspace(0, 10, 50)
fit = gr.fit(Decay(), gr.Experiment(t, outputs={"y": np.exp(-0.7 * t)}), ["k"], gr.OutputError())
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for call in (lambda: fit.save(sys.argv[1] + "/a.nc"), lambda: fit.report(sys.argv[1] + "/a.html")):
    try:
        call()
    except gr.DataError as error:
        print("refused:", error)
print("k is still", round(float(fit["k"]), 2))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits on the size of files are set as POSIX has them")
def test_a_fit_survives_a_disk_without_room(tmp_path: Path) -> None:
    """HDF5 ended the whole process there."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", SMALL, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused: The") == 2 and "k is still 0.7" in done.stdout
    assert "make room, or give another place" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="limits on the size of files are set as POSIX has them")
def test_compiled_models_go_to_a_passing_folder(tmp_path: Path) -> None:
    code = """
import resource, sys
from grisaille.compilation import build_cache
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    build_cache.store_library("a" * 40, "b" * 16, bytes(9000))
except Exception as error:
    print(type(error).__name__, error)
"""
    place = tmp_path / "cache"
    environment = {**os.environ, "GRISAILLE_CACHE": str(place)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=60, env=environment
    )
    assert "CompilationError The compiled model (9 kB) cannot be kept in" in done.stdout, done.stderr
    assert not list(place.iterdir())


def test_the_passing_folder_is_found_again(tmp_path, monkeypatch) -> None:
    from grisaille.compilation import build_cache

    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))
    full, written = build_cache.folder(), build_cache.write

    def write(place: Path, name: str, library: bytes) -> Path:
        if place == full:
            raise OSError(28, "No space left on device")
        return written(place, name, library)

    monkeypatch.setattr(build_cache, "write", write)
    kept = build_cache.store_library("c" * 40, "d" * 16, b"a library")
    assert kept.parent != full and build_cache.find("c" * 40, "d" * 16) == kept


def test_what_was_there_stays(tmp_path: Path, monkeypatch) -> None:
    target = write_whole(tmp_path / "a.txt", b"before", "The text")

    def refuse(source: str, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(DataError, match=r"The text cannot be written as .*0.0 kB: No space left on device"):
        write_whole(target, b"after", "The text")
    assert target.read_bytes() == b"before" and list(tmp_path.iterdir()) == [target]


def test_places_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no folder"):
        write_whole(tmp_path / "no" / "a.txt", b"", "The text")
    with pytest.raises(DataError, match="that is a folder"):
        write_whole(tmp_path, b"", "The text")


@pytest.mark.skipif(os.name != "posix", reason="limits on the size of files are set as POSIX has them")
def test_commands_leave_nothing_unfinished(tmp_path: Path) -> None:
    """Half of a folder and empty files stood there, under "[Errno 28] No space left on device"."""
    (tmp_path / "decay.py").write_text(MODEL)
    begin = (
        "import resource, matplotlib\n"
        "from grisaille.cli import main\n"
        "import grisaille.estimation.persistence.netcdf, grisaille.reporting.plots\n"
        "matplotlib.use('Agg')\n"
        "main(['simulate', 'decay.py:Decay', '--times', '0:1:0.01', '--quiet'])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))\n"
    )
    times = ["--times", "0:1:0.01"]
    commands = [
        ["new", "motor", "motor"], ["schema", "--output", "s.json"],
        ["simulate", "decay.py:Decay", *times, "--output", "a.csv"],
        ["simulate", "decay.py:Decay", *times, "--output", "a.nc"],
        ["simulate", "decay.py:Decay", *times, "--plot", "a.png"],
    ]  # fmt: skip
    code = f"{begin}for words in {commands}:\n    print(main(words))\n"
    environment = {**os.environ, "GRISAILLE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment
    )
    assert done.stdout.split() == ["2"] * 5, done.stderr
    assert done.stderr.count("make room, or give another place") == 5, done.stderr
    assert {p.name for p in tmp_path.iterdir()} <= {"decay.py", "cache"}


def test_folders_are_there_completely_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        with pytest.raises(DataError, match=f"The problem cannot be written as .*{name}': No space"):
            fill(tmp_path / name, fails=True)
    assert [p.name for p in tmp_path.iterdir()] == ["empty"] and not list((tmp_path / "empty").iterdir())
    for name in ("new", "empty"):
        fill(tmp_path / name, fails=False)
        assert sorted(p.name for p in (tmp_path / name).rglob("*")) == ["a.txt", "data"]


def fill(place: Path, fails: bool) -> None:
    with whole_folder(place, "The problem") as made:
        (made / "data").mkdir()
        (made / "data" / "a.txt").write_text("1")
        if fails:
            raise OSError(28, "No space left on device")


def test_simulations_are_read_as_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("decay.py").write_text(MODEL)
    for ending in ("nc", "csv"):
        assert main(["simulate", "decay.py:Decay", "--times", "0:1:0.1", "--output", f"a.{ending}", "--quiet"]) == 0
    read = xr.open_dataset("a.nc", engine="h5netcdf")
    assert np.allclose(read["x"], np.exp(-0.5 * read["time"]), rtol=1e-4) and read.attrs["status"].startswith(
        "completed"
    )
    assert pd.read_csv("a.csv")["x"].tolist() == read["x"].values.tolist()
