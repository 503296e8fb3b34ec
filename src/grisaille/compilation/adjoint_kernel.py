"""The adjoint of a model's frozen steps, compiled (gr_adjoint.h): many parameters for the price of a few runs."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.derivatives import differentiate
from grisaille.compilation.kernel_source import MODEL_ARGUMENTS, c_source, solver_source
from grisaille.compilation.printer import print_function
from grisaille.compilation.schemes import Scheme
from grisaille.compilation.shared_library import CSource, SharedLibrary, build_library, build_linked
from grisaille.compilation.sparse import source as sparse_source
from grisaille.compilation.sparse.factor_memory import with_factor_memory
from grisaille.compilation.task import Task, TaskStructure
from grisaille.structure.system import System

Floats = NDArray[np.float64]


class AdjointStructure(ctypes.Structure):
    """The memory layout of ``gr_adjoint``."""

    _fields_ = (
        ("task", ctypes.POINTER(TaskStructure)), ("room", ctypes.c_long), ("taken", ctypes.c_long),
        ("path", ctypes.c_void_p), ("weights", ctypes.c_void_p), ("lambda_", ctypes.c_void_p),
        ("gradient", ctypes.c_void_p), ("work", ctypes.c_void_p),
    )  # fmt: skip


@dataclass(frozen=True)
class AdjointKernel:
    """Forward runs that keep their steps, and the way back through them."""

    nx: int
    nz: int
    nu: int
    np: int
    ny: int
    library: SharedLibrary

    @property
    def point_size(self) -> int:
        """Numbers kept for each step."""
        return int(self.library.function("gr_adjoint_point")())

    def forward(self, task: Task, path: Floats) -> int:
        """Run the task to its end, or to ``Status.MORE`` where the path is full; return how many points it has."""
        size = int(self.library.function("gr_forward_work")())
        if task.work.size < size:
            task.work = np.zeros(size)
        nothing = 3 * [np.zeros(1)]
        return with_factor_memory(self.library, task, lambda: self._run("gr_adjoint_forward", task, path, 0, *nothing))

    def back(self, task: Task, path: Floats, taken: int, weights: Floats, by_state: Floats, gradient: Floats) -> None:
        """Add to ``gradient`` and propagate ``by_state`` from the end of the task to its start."""

        def run() -> tuple[Floats, Floats]:
            state, slopes = by_state.copy(), gradient.copy()
            self._run("gr_adjoint_back", task, path, taken, weights, state, slopes)
            return state, slopes

        by_state[:], gradient[:] = with_factor_memory(self.library, task, run)

    def _run(self, entry: str, task: Task, path: Floats, taken: int, *vectors: Floats) -> int:
        """Return how many points the path has then; ``vectors``: weights, derivatives by the state, gradient."""
        packed = task.pack()
        work = np.zeros(int(self.library.function("gr_adjoint_work")()))
        adjoint = AdjointStructure(
            ctypes.pointer(packed), len(path) // self.point_size, taken, path.ctypes.data,
            *(vector.ctypes.data for vector in vectors), work.ctypes.data,
        )  # fmt: skip
        self.library.function(entry, ctypes.POINTER(AdjointStructure))(ctypes.byref(adjoint))
        task.unpack(packed)
        return int(adjoint.taken)


def build_adjoint(system: System, scheme: Scheme, sparse: bool | None = None) -> AdjointKernel:
    """Return the adjoint of a scheme's frozen steps of a reduced system without modes; raises where there is no
    compiler.

    sparse : keep the nonzeros of matrices only; None decides by size, as ``build_kernel`` does
    """
    sparse = sparse_source.is_worth_it(system) if sparse is None else sparse
    functions, pulled = differentiate(system, sparse=sparse), _pulled(system)
    text = c_source(system, False, functions, sparse)
    printed = "\n".join(print_function(f, f"gr_{name}", (*MODEL_ARGUMENTS, "l")) for name, f in pulled.items())
    count = sum(f.n_instructions() for f in pulled.values())
    text = f'{text}\n{printed}\n#define GR_IMPLICIT_STEPS {int(scheme.is_implicit)}\n#include "gr_adjoint.h"\n'
    library = build_linked([CSource(text, count), solver_source()]) if sparse else build_library(text, count)
    library.check_size("gr_adjoint_size", AdjointStructure)
    return AdjointKernel(system.nx, system.nz, system.nu, system.np, system.ny, library)


def _pulled(system: System) -> dict[str, ca.Function]:
    """Return products of transposed Jacobians with a vector l, by the backward mode: a few times the cost of the
    formula.
    """
    unknowns = ca.vertcat(system.x, system.z)
    rates = ca.vertcat(system.rhs, system.residual)
    wanted = {
        "FV": (rates, unknowns), "FQ": (rates, system.p), "OV": (system.observed, unknowns),
        "OQ": (system.observed, system.p), "CV": (system.constraints, system.x), "CQ": (system.constraints, system.p),
    }  # fmt: skip
    return {name: _product(name, system, *pair) for name, pair in wanted.items()}


def _product(name: str, system: System, formula: ca.SX, by: ca.SX) -> ca.Function:
    weights = ca.SX.sym("l", formula.numel())
    empty = not formula.numel() or not by.numel()
    found = ca.SX.zeros(by.numel(), 1) if empty else ca.jtimes(ca.SX(formula), by, weights, True)
    arguments = [system.t, system.x, system.z, system.u, system.p, weights]
    return ca.Function(name, arguments, [ca.densify(ca.cse(ca.SX(found)))])
