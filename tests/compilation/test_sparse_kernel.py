"""Sparse kernels give what dense ones give: runs, sensitivities, frozen steps, implicit unknowns, constraints."""

from __future__ import annotations

from functools import lru_cache

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm
from tasks import task_of

from grisaille.compilation import Kernel, Status, Task, build_kernel, differentiate, linked_sources
from grisaille.compilation.schemes import EXPLICIT, IMPLICIT, Scheme
from grisaille.compilation.sparse import Elimination, is_worth_it
from grisaille.structure import System

NOTHING = ca.SX(0, 1)
CELLS = 12


@pytest.fixture(autouse=True)
def quick_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISAILLE_OPTIMIZATION", "-O0")


def system_of(x: ca.SX, rhs: ca.SX, p: ca.SX, z: ca.SX = NOTHING, residual: ca.SX = NOTHING) -> System:
    texts = ("state_names", "implicit_names", "signals", "parameter_names", "observed_names", "constraint_texts",
             "constraint_levels", "residual_texts", "pivot_texts")  # fmt: skip
    return System(
        t=ca.SX.sym("t"), x=x, z=z, u=NOTHING, p=p, rhs=rhs, residual=residual, constraints=NOTHING,
        observed=ca.vertcat(x, z), pivots=NOTHING, **dict.fromkeys(texts, ()),
    )  # fmt: skip


def network(n: int = CELLS) -> System:
    """Cells in a row; the flows between them are implicit, q + a q³ = T_i − T_{i+1}, in an order that is not theirs."""
    T, q, p = ca.SX.sym("T", n), ca.SX.sym("q", n - 1), ca.SX.sym("p", 3)
    k, a, loss = ca.vertsplit(p)
    turned = [(5 * i + 2) % (n - 1) for i in range(n - 1)]
    rates = [-loss * T[i] ** 3 for i in range(n)]
    for i in range(n - 1):
        rates[i], rates[i + 1] = rates[i] - k * q[turned[i]], rates[i + 1] + k * q[turned[i]]
    flows = [q[turned[i]] + a * q[turned[i]] ** 3 - T[i] + T[i + 1] for i in range(n - 1)]
    return system_of(T, ca.vertcat(*rates), p, q, ca.vertcat(*flows))


@lru_cache(maxsize=4)
def kernel(sparse: bool) -> Kernel:
    return build_kernel(network(), sensitive=True, sparse=sparse)


def run(which: Kernel, scheme: Scheme = IMPLICIT, n: int = CELLS, directions: int = 2, **options: float) -> Task:
    T = np.zeros(n)
    T[0] = 2.0
    dp = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]])[:directions]
    p = (50.0, 0.4, 0.3)
    q = np.zeros(n - 1)
    q[2] = next(r.real for r in np.roots([0.4, 0.0, 1.0, -2.0]) if abs(r.imag) < 1e-9)
    task = task_of(which, 0.0, 1.0, p=p, x=T, z=q, dp=dp, times=np.linspace(0.0, 1.0, 7), rtol=1e-9, atol=1e-12,
                       **options)  # type: ignore[arg-type] # fmt: skip
    which.call(scheme, task)
    return task


@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        (IMPLICIT, {}),
        (EXPLICIT, {}),
        (IMPLICIT, {"fixed_step": 0.02}),
        (EXPLICIT, {"fixed_step": 2e-3}),
    ],
)
def test_runs_and_their_derivatives_are_those_of_dense_kernels(scheme: Scheme, options: dict[str, float]) -> None:
    dense, sparse = (run(kernel(which), scheme, **options) for which in (False, True))
    assert dense.status == sparse.status == Status.DONE
    assert (dense.steps, dense.newton_iterations) == (sparse.steps, sparse.newton_iterations)
    assert np.abs(dense.y - sparse.y).max() < 1e-10
    assert np.abs(dense.sy - sparse.sy).max() < 1e-8 * np.abs(dense.sy).max()


def test_kernels_share_integrators_and_those_of_one_model_its_functions_too() -> None:
    texts = []
    for n, sensitive in ((CELLS, True), (CELLS + 1, True), (CELLS + 1, False)):
        functions = differentiate(network(n), sensitive=sensitive, sparse=True)
        texts.append([source.text for source in linked_sources(network(n), functions)(IMPLICIT)])
    assert len({integrators for integrators, _, _, _ in texts}) == len({solvers for _, _, _, solvers in texts}) == 1
    assert texts[0][1] != texts[1][1] == texts[2][1] and len({slopes for _, _, slopes, _ in texts}) == 3


def test_a_kernel_with_derivatives_serves_plain_runs() -> None:
    one, other = network(CELLS + 1), network(CELLS + 1)
    plain = build_kernel(one, sparse=True)
    sensitive = build_kernel(other, sensitive=True, sparse=True)
    assert build_kernel(one, sparse=True) is sensitive
    alone, both = (run(which, n=CELLS + 1, directions=0) for which in (plain, sensitive))
    assert alone.status == Status.DONE and np.array_equal(alone.y, both.y) and alone.steps == both.steps


def test_factors_that_outgrow_their_room_are_made_again_with_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Elimination, "room", property(lambda self: self.order.size // 2))
    x, p = ca.SX.sym("x", 9), ca.SX.sym("p", 3)
    rates = [p[0] * (ca.vertcat(0, x)[i] - 2 * x[i] + ca.vertcat(x, 0)[i + 1]) for i in range(9)]
    tight = build_kernel(system_of(x, ca.vertcat(*rates), p), sparse=True)
    task = task_of(tight, 0.0, 0.5, p=(40.0, 0.0, 0.0), x=np.arange(9.0), times=[0.5], rtol=1e-9, atol=1e-12)
    task.slice = 7
    tight.call(IMPLICIT, task)
    while task.status == Status.MORE:
        tight.call(IMPLICIT, task)
    exact = expm(0.5 * 40.0 * (np.eye(9, k=1) + np.eye(9, k=-1) - 2 * np.eye(9))) @ np.arange(9.0)
    assert task.status == Status.DONE
    assert task.room > 1
    assert task.y[-1] == pytest.approx(exact, rel=1e-7)


def test_only_large_and_sparse_equations_are_sparse() -> None:
    assert not is_worth_it(network())
    assert is_worth_it(network(60))
    x = ca.SX.sym("x", 80)
    everything = ca.vertcat(*(ca.sumsqr(x) - x[i] for i in range(80)))
    assert not is_worth_it(system_of(x, everything, NOTHING))
