"""The kernel of a model: its functions as NumPy callables and, with a compiler, as libraries with the integrators.

Argument order ``(t, x, z, u, p)`` throughout. The callables always run in CasADi's virtual machine; a library holds
the same functions printed as C together with an integrator, which runs whole trajectories at once (``integrators``).
Kernels depend on equations only, never on values, and are kept for the life of the process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.cache import Cache
from grisaille.compilation.casadi_evaluation import Evaluation, numpy_matrix, numpy_vector, sparse_matrix
from grisaille.compilation.compiler import find_compiler
from grisaille.compilation.debugging import is_debugging
from grisaille.compilation.derivatives import PARAMETER_DERIVATIVES, PLAIN_FUNCTIONS, differentiate
from grisaille.compilation.integrators import WHOLE, CompiledIntegrator, Integrators, first_build
from grisaille.compilation.kernel_source import (
    Sources,
    can_be_linked,
    linked_sources,
    relation_kinds,
    when_tables,
    whole_sources,
)
from grisaille.compilation.schemes import Scheme
from grisaille.compilation.sparse import source as sparse_source
from grisaille.compilation.sparse.factor_memory import with_factor_memory
from grisaille.compilation.task import Task
from grisaille.errors import CompilationError
from grisaille.structure.system import System

if TYPE_CHECKING:
    from scipy.sparse import csc_array

MAX_INSTRUCTIONS_WITH_SENSITIVITIES = 3000
"""Instructions of a model's functions up to which it is compiled with derivatives by parameters before they are asked
for, if these have not many more: a fit then finds everything compiled, and the first run waits 0.1 s longer."""


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
    bends: int
    """Where F bends: gaps, and values that are whole there."""
    ne: int
    """Relations that are held between events."""
    sensitive: bool
    sparse: bool
    """With the nonzeros of its matrices only (``kernels/gr_sparse_factors.h``)."""
    integrators: Integrators
    jacobian: Callable[..., csc_array]
    """What ``J`` gives, as its entries."""
    F: Evaluation
    J: Evaluation
    C: Evaluation
    CJ: Evaluation
    O: Evaluation  # noqa: E741
    S: Evaluation
    B: Evaluation
    BW: Evaluation
    FP: Evaluation
    CP: Evaluation
    OJ: Evaluation
    OP: Evaluation

    def build(self, *schemes: Scheme) -> None:
        """Build the integrators that will be called, at the same time."""
        self.integrators.build(*schemes)

    def work_size(self, scheme: Scheme, ns: int) -> int:
        """Return doubles of scratch memory that a compiled scheme needs for ``ns`` sensitivity directions."""
        return int(self.integrators.of(scheme).work(ns))

    def call(self, scheme: Scheme, task: Task) -> None:
        """Run the scheme, or the one that takes its fixed steps, on the task, which holds the result; allocates
        ``task.work``.
        """
        taken, before = scheme.taking(task.fixed_step), task.steps + task.rejected
        integrator = self.integrators.of(taken)
        size = int(integrator.work(task.ns))
        if task.work.size < size:
            task.work = np.zeros(size)
        if self.sparse:
            with_factor_memory(integrator.library, task, lambda: _run(integrator, task))
        else:
            _run(integrator, task)
            self.integrators.count(taken, task.steps + task.rejected - before, task.ns)


def _run(integrator: CompiledIntegrator, task: Task) -> None:
    packed = task.pack()
    integrator.run(ctypes.byref(packed))
    task.unpack(packed)


def build_kernel(system: System, *, sensitive: bool = False, sparse: bool | None = None) -> Kernel:
    """Return the kernel of a reduced system; nothing is compiled before an integrator is called.

    ``sparse=None`` keeps the nonzeros of large models only. A kernel with derivatives by parameters also serves where
    none are asked for, with the same digits.
    """
    own = (system.content, len(system.pieces), relation_kinds(system), *when_tables(system), sparse, *_mode())
    other = None if sensitive else _known.peek((*own, True))
    return other or _known.get((*own, sensitive), lambda: _build(system, sensitive, sparse))


_known: Cache[Kernel] = Cache()


def _mode() -> tuple[object, ...]:
    compiler = find_compiler()
    return (None if compiler is None else compiler.identity, is_debugging(), first_build())


def _build(system: System, sensitive: bool, sparse: bool | None) -> Kernel:
    sparse = sparse_source.is_worth_it(system) if sparse is None else sparse
    functions = differentiate(system, sensitive=sensitive, sparse=sparse)
    integrators = Integrators(*_sources(system, sensitive, sparse, functions, None), _instructions(functions))
    calls = {name: _callable(name, functions) for name in (*PLAIN_FUNCTIONS, *PARAMETER_DERIVATIVES)}
    return Kernel(
        nx=system.nx, nz=system.nz, nu=system.nu, np=system.np, nc=system.nc, ny=system.ny,
        nm=len(system.pieces), sides=functions["S"].numel_out(0),
        bends=functions["B"].numel_out(0) + functions["BW"].numel_out(0), ne=len(system.modes), sensitive=sensitive,
        sparse=sparse, integrators=integrators, jacobian=sparse_matrix(functions["J"]), **calls,
    )  # fmt: skip


def _instructions(functions: Mapping[str, ca.Function]) -> int:
    return sum(f.n_instructions() for f in functions.values())


def _callable(name: str, functions: Mapping[str, ca.Function]) -> Evaluation:
    if name in functions:
        return (numpy_vector if name in ("F", "C", "O", "S", "B", "BW") else numpy_matrix)(functions[name])

    def absent(*_: object) -> NDArray[np.float64]:
        raise CompilationError(f"{name} is a parameter derivative; build the kernel with sensitive=True to have it.")

    return absent


def sources_with_words(system: System) -> Sources:
    """Return the C files that a run is built from, with the user's words as comments."""
    sparse = sparse_source.is_worth_it(system)
    first, whole = _sources(system, False, sparse, differentiate(system, sparse=sparse), True)
    return whole or first


def _sources(
    system: System, sensitive: bool, sparse: bool, functions: Mapping[str, ca.Function], words: bool | None
) -> tuple[Sources, Sources | None]:
    """Return what is built first, and what where steps are many: linked integrators, and integrators in one file.
    Sparse kernels are always linked; debuggers are given one file.
    """
    if sparse:
        return linked_sources(system, functions, words), None
    more = functions if sensitive else _functions_of_a_fit(system, functions)
    whole = _whole_sources(system, sensitive, functions, more, words)
    if words or is_debugging() or first_build() == WHOLE or not can_be_linked(system):
        return whole, None
    return linked_sources(system, more, words, sparse=False), whole


def _whole_sources(
    system: System, sensitive: bool, functions: Mapping[str, ca.Function], more: Mapping[str, ca.Function],
    words: bool | None,
) -> Sources:  # fmt: skip
    """Return the sources in one file for each integrator, without the derivatives that only a fit needs in frozen
    explicit steps: these compile quickly, and those of two states take 1.1 times as long where derivatives could be
    asked for.
    """
    own = cache(lambda: whole_sources(system, sensitive, functions, words))
    if more is functions:
        return lambda scheme: own()(scheme)
    shared = cache(lambda: whole_sources(system, True, more, words))
    return lambda scheme: (own if scheme.is_quick_to_build else shared)()(scheme)


def _functions_of_a_fit(system: System, functions: Mapping[str, ca.Function]) -> Mapping[str, ca.Function]:
    """Return the functions with the derivatives that a fit will need, if they are not many more."""
    if _instructions(functions) > MAX_INSTRUCTIONS_WITH_SENSITIVITIES:
        return functions
    more = differentiate(system, sensitive=True)
    return functions if _instructions(more) > 2 * MAX_INSTRUCTIONS_WITH_SENSITIVITIES else more
