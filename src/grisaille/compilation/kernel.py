"""The kernel of a model: its functions as NumPy callables and, with a compiler, as a library with the integrators.

Argument order ``(t, x, z, u, p)`` throughout. The callables always run in CasADi's virtual machine; the library holds
the same functions printed as C together with gr_explicit.h and gr_implicit.h, which run whole trajectories at once.
Kernels depend on equations only, never on values, and are kept for the life of the process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.compiler import find_compiler, is_switched_off
from grisaille.compilation.derivatives import PARAMETRIC, PLAIN, differentiate
from grisaille.compilation.evaluation import Evaluation, numpy_matrix, numpy_vector, sparse_matrix
from grisaille.compilation.kernel_source import c_source, kinds, linked_sources, when_tables
from grisaille.compilation.library import Library, build_library, build_linked, no_compiler
from grisaille.compilation.memo import Memo
from grisaille.compilation.sparse import source as sparse_source
from grisaille.compilation.sparse.room import with_room
from grisaille.compilation.task import Task, TaskStructure
from grisaille.errors import CompilationError
from grisaille.structure.system import System

if TYPE_CHECKING:
    from scipy.sparse import csc_array


@dataclass(frozen=True, eq=False)
class Kernel:
    """Callables of ``(t, x, z, u, p)``; vectors 1-D, matrices 2-D. Those after ``S`` only if ``sensitive``."""

    nx: int
    nz: int
    nu: int
    np: int
    nc: int
    ny: int
    nm: int
    """Last entries of z that are relations of the others."""
    sides: int
    """Switches of x and z."""
    ne: int
    """Relations that are held between events; only the compiled integrators change them."""
    sensitive: bool
    sparse: bool
    """Compiled with the nonzeros of its matrices only (``kernels/gr_sparse.h``)."""
    library: Library | None
    jacobian: Callable[..., csc_array]
    """What ``J`` gives, as its entries."""
    F: Evaluation
    J: Evaluation
    C: Evaluation
    CJ: Evaluation
    O: Evaluation  # noqa: E741
    S: Evaluation
    FP: Evaluation
    CP: Evaluation
    OJ: Evaluation
    OP: Evaluation

    @property
    def is_compiled(self) -> bool:
        return self.library is not None

    def work_size(self, entry: str, ns: int) -> int:
        """Doubles of scratch memory that a compiled entry needs for ``ns`` sensitivity directions."""
        return int(self._entry(f"{entry}_work", ctypes.c_long)(ns))

    def call(self, entry: str, task: Task) -> None:
        """Runs ``"gr_explicit"`` or ``"gr_implicit"`` on the task, which holds the answer; allocates ``task.work``."""
        size = self.work_size(entry, task.ns)
        if task.work.size < size:
            task.work = np.zeros(size)
        if self.sparse and self.library is not None:
            with_room(self.library, task, lambda: self._run(entry, task))
        else:
            self._run(entry, task)

    def _run(self, entry: str, task: Task) -> None:
        packed = task.pack()
        self._entry(entry, ctypes.POINTER(TaskStructure))(ctypes.byref(packed))
        task.unpack(packed)

    def _entry(self, name: str, argument: object) -> ctypes._NamedFuncPointer:
        if self.library is None:
            raise CompilationError(f"This kernel is interpreted, it has no {name} in C; use the Python integrator.")
        return self.library.function(name, argument)


def build_kernel(
    system: System, *, sensitive: bool = False, compiled: bool | None = None, sparse: bool | None = None
) -> Kernel:
    """The kernel of a reduced system.

    ``compiled=None`` compiles, or takes an earlier build from the cache, unless GRISAILLE_COMPILER=none; ``True``
    insists; ``False`` interprets. ``sparse=None`` keeps the nonzeros of large compiled models only. A compiled one with
    derivatives by parameters also serves where none are asked for: same digits, 1.00 to 1.05 times the time per step.
    """
    own = (_content(system), len(system.pieces), kinds(system), *when_tables(system), sparse, *_mode(compiled))
    other = None if sensitive else _known.peek((*own, True))
    if other is not None and other.is_compiled:
        return other
    return _known.get((*own, sensitive), lambda: _build(system, sensitive, compiled, sparse))


_known: Memo[Kernel] = Memo()


def _content(system: System) -> str:
    arguments = [system.t, system.x, system.z, system.u, system.p]
    formulas = [system.rhs, system.residual, system.constraints, system.observed, system.gaps, system.gap_rates]
    if system.modes and (r := system.reactions) is not None:
        formulas += [r.conditions, r.memory, r.values, r.rates, *(t.instant for t in r.ticks)]
    return str(ca.Function("content", arguments, formulas).serialize())


def _mode(compiled: bool | None) -> tuple[object, ...]:
    if compiled is False or is_switched_off():
        return (compiled, None)
    compiler = find_compiler()
    return (compiled, None if compiler is None else compiler.identity)


def _build(system: System, sensitive: bool, compiled: bool | None, sparse: bool | None) -> Kernel:
    if compiled is False or is_switched_off():
        sparse = False
    elif sparse is None:
        sparse = sparse_source.is_worth_it(system)
    functions = differentiate(system, sensitive=sensitive, sparse=sparse)
    library = None if compiled is False else _load(system, sensitive, sparse, functions)
    if library is None and compiled:
        raise no_compiler()
    calls = {name: _callable(name, functions) for name in (*PLAIN, *PARAMETRIC)}
    return Kernel(
        nx=system.nx, nz=system.nz, nu=system.nu, np=system.np, nc=system.nc, ny=system.ny,
        nm=len(system.pieces), sides=functions["S"].numel_out(0), ne=len(system.modes), sensitive=sensitive,
        sparse=sparse, library=library, jacobian=sparse_matrix(functions["J"]), **calls,
    )  # fmt: skip


def _callable(name: str, functions: Mapping[str, ca.Function]) -> Evaluation:
    if name in functions:
        return (numpy_vector if name in ("F", "C", "O", "S") else numpy_matrix)(functions[name])

    def absent(*_: object) -> NDArray[np.float64]:
        raise CompilationError(f"{name} is a parameter derivative; build the kernel with sensitive=True to have it.")

    return absent


def _load(system: System, sensitive: bool, sparse: bool, functions: Mapping[str, ca.Function]) -> Library | None:
    if sparse:
        library = build_linked(linked_sources(system, functions))
    else:
        count = sum(f.n_instructions() for f in functions.values())
        library = build_library(c_source(system, sensitive, functions), count)
    if library is not None:
        library.check_size("gr_task_size")
    return library
