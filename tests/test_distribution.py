"""Source and wheel as they are handed out: complete, and enough for a fit in an environment that has nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy
import pytest

import grisaille

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "grisaille"
PROGRAM = """
import grisaille as gr

class Tank(gr.Model):
    k = gr.Parameter(0.5)
    h = gr.Variable(start=1.0)
    y = gr.Output(h, noise=0.01)
    equations = [gr.der(h) == -k * h]

data = gr.simulate(Tank(k=0.7), [0.0, 1.0, 2.0])
fit = gr.fit(Tank(), gr.Experiment([0.0, 1.0, 2.0], outputs={"y": data["y"].values}), ["k"], gr.OutputError())
print(gr.__version__, gr.__file__, round(float(fit["k"]), 6))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that is built from it."""
    pytest.importorskip("hatchling", reason="the extra test brings hatchling, which builds the distributions")
    folder = tmp_path_factory.mktemp("distribution")
    build(ROOT, "sdist", folder)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "source", filter="data")
    build(next((folder / "source").iterdir()), "wheel", folder)
    return folder


def build(root: Path, target: str, folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder], cwd=root, check=True)


@pytest.fixture(scope="module")
def python(distribution: Path) -> Path:
    """The interpreter of a new environment with the wheel; what it depends on is where this interpreter has it.

    A ``.pth`` file adds the folder of dependencies, not what ``.pth`` files in it name: editable packages stay outside.
    """
    home = distribution / "environment"
    venv.create(home, symlinks=os.name != "nt")
    found = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wheel = next(distribution.glob("*.whl"))
    pip = [sys.executable, "-m", "pip", "--python", found, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True)
    site = next(home.rglob("site-packages"))
    (site / "dependencies.pth").write_text(str(Path(numpy.__file__).parent.parent))
    return found


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=True).stdout


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(distribution: Path) -> None:
    wheel = next(distribution.glob("*.whl"))
    assert wheel.name == f"grisaille-{grisaille.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (p for p in SOURCE.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    assert inside == {p.relative_to(SOURCE.parent).as_posix() for p in files}


def test_the_source_has_what_contributors_need(distribution: Path) -> None:
    (root,) = (distribution / "source").iterdir()
    wanted = """
        CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE README.md SECURITY.md VISION.md pyproject.toml mkdocs.yml
        scripts/check scripts/environment.py tests/conftest.py docs/index.md benchmarks src/grisaille_reproductions
    """.split()
    assert [name for name in wanted if not (root / name).exists()] == []


def test_a_fit_in_a_clean_environment(python: Path, tmp_path: Path) -> None:
    version, place, estimate = run(python, "-c", PROGRAM, cwd=tmp_path).split()
    assert version == grisaille.__version__ and Path(place).is_relative_to(python.parent.parent)
    assert float(estimate) == pytest.approx(0.7, abs=1e-4)


def test_the_command_is_installed(python: Path, tmp_path: Path) -> None:
    command = python.with_name("grisaille.exe" if os.name == "nt" else "grisaille")
    assert grisaille.__version__ in run(command, "--version", cwd=tmp_path)
    run(command, "new", "two-tank", "tanks", cwd=tmp_path)
    assert (tmp_path / "tanks" / "problem.toml").is_file()


def test_the_citation_has_the_version() -> None:
    assert f"\nversion: {grisaille.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
