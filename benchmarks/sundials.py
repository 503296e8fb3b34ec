"""SUNDIALS from compiled code: the equations printed as C beside ``sundials_driver.c`` and built with the C compiler.

Needs SUNDIALS 6 with its headers (Debian: ``apt-get install libsundials-dev``); without them the two solvers are left
out of the comparison. Equations and Jacobians are printed by the same printer as our own kernels.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import casadi as ca
import numpy as np
from reference_problems import RTOL, Case, Solver

from grisaille.compilation.derivatives import as_function
from grisaille.compilation.printer import PRELUDE, print_function

HERE = Path(__file__).resolve().parent
LIBRARIES = (
    "-lsundials_cvode",
    "-lsundials_ida",
    "-lsundials_nvecserial",
    "-lsundials_sunlinsoldense",
    "-lsundials_sunmatrixdense",
    "-lm",
)
_numbers = np.ctypeslib.ndpointer(np.float64, flags="C")
_counts = np.ctypeslib.ndpointer(np.int64, flags="C")


def why_not() -> str | None:
    """What is missing for these two solvers, or None."""
    compiler = shutil.which("cc")
    if compiler is None:
        return "no C compiler (cc)"
    probe = "#include <sundials/sundials_config.h>\n#if SUNDIALS_VERSION_MAJOR != 6\n#error other\n#endif\n"
    command = [compiler, "-E", "-", "-o", "/dev/null"]
    found = subprocess.run(command, input=probe, text=True, capture_output=True, check=False).returncode == 0
    return None if found else "no headers of SUNDIALS 6 (Debian: apt-get install libsundials-dev)"


class CompiledSundials:
    """One problem's equations and both solvers in a shared library."""

    def __init__(self, case: Case) -> None:
        self.case = case
        folder = Path(tempfile.mkdtemp(prefix="sundials-"))
        (folder / "model.h").write_text(_header(case))
        target = folder / "driver.so"
        command = ["cc", "-O2", "-shared", "-fPIC", f"-I{folder}", str(HERE / "sundials_driver.c"), "-o", str(target)]
        subprocess.run([*command, *LIBRARIES], check=True)
        library = ctypes.CDLL(str(target))
        self._cvode, self._ida = library.run_cvode, library.run_ida
        self._cvode.argtypes = [ctypes.c_double, ctypes.c_double, _numbers, _numbers, _counts]
        self._ida.argtypes = [ctypes.c_double, ctypes.c_double, _numbers, _numbers, _numbers, _counts]

    def cvode(self) -> Solver:
        form, end, counts = self.case.reduced, self.case.problem.end, np.zeros(3, np.int64)

        def solve(rtol: float) -> np.ndarray:
            x = form.x0.copy()
            return x if self._cvode(end, rtol, form.atol * (rtol / RTOL), x, counts) >= 0 else np.zeros(0)

        return Solver(solve, self.case.digits_of_reduced)

    def ida(self) -> Solver:
        form, end, counts = self.case.implicit, self.case.problem.end, np.zeros(3, np.int64)

        def solve(rtol: float) -> np.ndarray:
            x, rates = form.x0.copy(), form.rates0.copy()
            return x if self._ida(end, rtol, form.atol * (rtol / RTOL), x, rates, counts) >= 0 else np.zeros(0)

        return Solver(solve, self.case.digits_of_implicit)


def _header(case: Case) -> str:
    ode, dae = case.reduced, case.implicit
    cj = ca.SX.sym("cj")
    iteration = ca.jacobian(dae.f, dae.x) + cj * ca.jacobian(dae.f, dae.rates)
    functions = {
        "model_f": ((ode.t, ode.x), ode.f, ("t", "y")),
        "model_fj": ((ode.t, ode.x), ca.jacobian(ode.f, ode.x), ("t", "y")),
        "model_r": ((dae.t, dae.x, dae.rates), dae.f, ("t", "y", "yp")),
        "model_rj": ((dae.t, dae.x, dae.rates, cj), iteration, ("t", "y", "yp", "cj")),
    }
    texts = [print_function(as_function(n, list(a), f), n, names) for n, (a, f, names) in functions.items()]
    sizes = f"#define N_ODE {ode.x.numel()}\n#define N_DAE {dae.x.numel()}\n#define GR_FN static inline\n"
    return "\n".join([sizes, PRELUDE, *texts])
