"""Medical Akzo Nobel with CVODE's banded solver, and with KLU where SUNDIALS has it, called from compiled code.

The equations are printed as C by the printer of our own kernels, as straight lines, and compiled with -O2; unknowns are
interleaved (u, v of one point beside each other), so that two entries on either side of the diagonal are enough.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import casadi as ca
import numpy as np
from large_models import AKZO_END, AKZO_REFERENCE

from grisaille.compilation.derivatives import as_function
from grisaille.compilation.printer import PRELUDE, print_function

HERE = Path(__file__).resolve().parent
POINTS = 200
LIBRARIES = ("-lsundials_cvode", "-lsundials_nvecserial", "-lsundials_sunlinsolband", "-lsundials_sunmatrixband")
KLU = ("-DWITH_KLU", "-I/usr/include/suitesparse", "-lsundials_sunlinsolklu", "-lsundials_sunmatrixsparse", "-lklu")


class Cvode:
    """CVODE on Medical Akzo Nobel; ``has_klu`` says whether this SUNDIALS can use KLU."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="sundials-"))
        (folder / "model.h").write_text(_header())
        self.has_klu = self._build(folder, KLU)
        if not self.has_klu and not self._build(folder, ()):
            raise RuntimeError("SUNDIALS 6 is not there (Debian: apt-get install libsundials-dev).")
        self._run = ctypes.CDLL(str(folder / "driver.so")).run_cvode

    def _build(self, folder: Path, more: tuple[str, ...]) -> bool:
        command = ["cc", "-O2", "-shared", "-fPIC", f"-I{folder}", str(HERE / "sundials_sparse_driver.c")]
        command += ["-o", str(folder / "driver.so"), *LIBRARIES, *more, "-lm"]
        done = subprocess.run(command, capture_output=True, check=False)
        return done.returncode == 0

    def solve(self, rtol: float, atol: float, klu: bool = False) -> tuple[float, float, list[int]]:
        """Seconds of processor time, digits, and counts of steps, right-hand sides, Jacobians."""
        x = np.tile([0.0, 1.0], POINTS)
        phi, counts = np.array([2.0, 0.0]), np.zeros(3, np.int64)
        numbers = [ctypes.c_double(v) for v in (5.0, AKZO_END, rtol, atol)]
        begin = time.thread_time()
        flag = self._run(ctypes.c_int(klu), *numbers, *(ctypes.c_void_p(a.ctypes.data) for a in (phi, x, counts)))
        seconds = time.thread_time() - begin
        if flag < 0:
            raise RuntimeError(f"CVODE ended with {flag}.")
        at = [int(name[2:-1]) for name in AKZO_REFERENCE]
        errors = np.abs(x[0::2][at] / np.array(list(AKZO_REFERENCE.values())) - 1)
        return seconds, -float(np.log10(errors.max())), counts.tolist()


def _header() -> str:
    t, y, phi = ca.SX.sym("t"), ca.SX.sym("y", 2 * POINTS), ca.SX.sym("phi")
    u, v, step, k, c = y[0::2], y[1::2], 1.0 / POINTS, 100.0, 4.0
    zeta = np.arange(1, POINTS + 1) * step
    before, after = ca.vertcat(phi, u[:-1]), ca.vertcat(u[1:], u[-1])
    alpha, beta = 2 * (zeta - 1) ** 3 / c**2, (zeta - 1) ** 4 / c**2
    du = alpha * (after - before) / (2 * step) + beta * (before - 2 * u + after) / step**2 - k * u * v
    f = ca.vertcat(*(part for pair in zip(ca.vertsplit(du), ca.vertsplit(-k * u * v), strict=True) for part in pair))
    J = ca.jacobian(f, y)
    rows, columns = J.sparsity().get_triplet()
    names = ("t", "y", "phi")
    return "\n".join(
        [
            f"#define N_ODE {2 * POINTS}\n#define N_ENTRIES {J.nnz()}\n#define BAND 2\n#define GR_FN static inline",
            f"static const long row[N_ENTRIES] = {{{','.join(map(str, rows))}}};",
            f"static const long column[N_ENTRIES] = {{{','.join(map(str, columns))}}};",
            PRELUDE,
            print_function(as_function("model_f", [t, y, phi], f), "model_f", names),
            print_function(as_function("model_j", [t, y, phi], J, sparse=True), "model_j", names, sparse=True),
        ]
    )
