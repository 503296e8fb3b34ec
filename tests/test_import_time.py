"""``import grisaille`` and the first trajectory are quick, because what is heavy is loaded when first used."""

from __future__ import annotations

import json
import subprocess
import sys

MODEL = """
class Tank(gr.Model):
    k, a = gr.Parameter(0.5), gr.Parameter(2.0)
    h, q = gr.Variable(start=1.0), gr.Variable(start=1.0)
    equations = [gr.der(h) == -q, a * q**3 + q == k * h]
"""


def loaded(code: str, names: list[str]) -> list[str]:
    """Those of the modules that a fresh interpreter has loaded after the code."""
    program = f"import json, sys\nimport grisaille as gr\n{code}\n"
    program += f"print(json.dumps([name for name in {names!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_import_loads_the_modelling_language_alone() -> None:
    heavy = ["casadi", "h5py", "matplotlib", "pandas", "rich", "scipy", "xarray", "grisaille.structure"]
    assert loaded("", heavy) == []


def test_a_trajectory_loads_what_it_needs_alone() -> None:
    """Not SciPy, whose linear algebra takes longer to import than the run, nor dask, which xarray would look for."""
    later = ["dask.array", "matplotlib", "scipy", "grisaille.disturbance", "grisaille.simulation.ensembles.ensemble"]
    run = "assert float(gr.simulate(Tank(), [0.0, 1.0])['h'].values[-1]) < 1.0"
    assert loaded(f"{MODEL}{run}", [*later, "xarray"]) == ["xarray"]


def test_values_need_no_labels() -> None:
    run = "assert gr.Simulator(Tank(), [0.0, 1.0]).values({'k': 0.6})['h'][-1] < 1.0"
    assert loaded(f"{MODEL}{run}", ["pandas", "scipy", "xarray"]) == []


def test_a_fit_does_not_wait_for_what_it_may_be_asked_later() -> None:
    """Pictures, pages, studies and profiles are loaded when first asked for."""
    later = ["matplotlib", "grisaille.reporting", "grisaille.study", "grisaille.assessment.profile"]
    assert loaded("gr.fit, gr.load", later) == []
