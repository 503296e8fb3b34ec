"""Hidden constraints of sparse kernels: projected on as those of dense ones, in time that grows with their number."""

from __future__ import annotations

from functools import lru_cache

import casadi as ca
import numpy as np
import pytest
from tasks import task_of

from grisaille.compilation import Kernel, Status, Task, build_kernel, fronts
from grisaille.compilation.schemes import EXPLICIT, IMPLICIT, Scheme
from grisaille.compilation.sparse import SparsityPattern
from grisaille.structure import System

NOTHING = ca.SX(0, 1)
LINKS = 5


@pytest.fixture(autouse=True)
def quick_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISAILLE_OPTIMIZATION", "-O0")


def rope(closed: bool = False) -> System:
    """Links between points in a plane, p = (length, drag), the first point moved by the signal u; with ``closed`` some
    constraints are said again, by themselves and in sums."""
    n = LINKS
    t, u, p = ca.SX.sym("t"), ca.SX.sym("u", 3), ca.SX.sym("p", 2)
    r, v = ca.SX.sym("r", 2, n), ca.SX.sym("v", 2, n)
    L, drag = p[0], p[1]
    hold, rate, second = (ca.vertcat(u[k], 0) for k in range(3))
    points, speeds = ca.horzcat(hold, r), ca.horzcat(rate, v)
    along, apart = points[:, 1:] - points[:, :-1], speeds[:, 1:] - speeds[:, :-1]
    lengths = ca.vertcat(*(ca.sumsqr(along[:, k]) - L**2 for k in range(n)))
    speeds_along = ca.vertcat(*(ca.dot(along[:, k], apart[:, k]) for k in range(n)))
    free = ca.horzcat(second, *(ca.vertcat(0, -9.81) - drag * v[:, k] for k in range(n)))
    T = ca.SX.sym("T", n)
    pulled = [free[:, 0]]
    for k in range(n):
        pull = -T[k] * along[:, k] + (T[k + 1] * along[:, k + 1] if k + 1 < n else 0)
        pulled.append(free[:, k + 1] + pull)
    a = ca.horzcat(*pulled)
    residual = ca.vertcat(*(ca.sumsqr(apart[:, k]) + ca.dot(along[:, k], a[:, k + 1] - a[:, k]) for k in range(n)))
    hidden = ca.vertcat(lengths, speeds_along)
    if closed:
        hidden = ca.vertcat(ca.sum1(lengths), lengths[n - 1], hidden, ca.sum1(speeds_along) + 0.5 * lengths[2])
    x = ca.vertcat(ca.vec(r), ca.vec(v))
    texts = ("state_names", "implicit_names", "signals", "parameter_names", "observed_names", "constraint_texts",
             "constraint_levels", "residual_texts", "pivot_texts")  # fmt: skip
    return System(
        t=t, x=x, z=T, u=u, p=p, rhs=ca.vertcat(ca.vec(v), ca.vec(a[:, 1:])), residual=residual, constraints=hidden,
        observed=ca.vertcat(x, T), pivots=NOTHING, **dict.fromkeys(texts, ()),
    )  # fmt: skip


@lru_cache(maxsize=4)
def kernel(sparse: bool, closed: bool) -> Kernel:
    return build_kernel(rope(closed), sensitive=True, sparse=sparse)


def run(
    which: Kernel, scheme: Scheme, p: tuple[float, float] = (1.0, 0.2), directions: bool = True, **options: float
) -> Task:
    n, L = LINKS, p[0]
    angles = 0.3 + 0.2 * np.arange(n)
    steps = np.stack([np.sin(angles), -np.cos(angles)])
    x = np.concatenate([(L * np.cumsum(steps, axis=1)).T.ravel(), np.zeros(2 * n)])
    sx = np.stack([x / L, 0 * x])
    dp = np.eye(2) if directions else None
    # the held point moves along 0.1 t^2 (1 - t/3)
    coef = np.array([[[0, 0, 0.1, -0.1 / 3], [0, 0.2, -0.1, 0], [0.2, -0.2, 0, 0]]])
    task = task_of(
        which, 0.0, 1.0, p=p, x=x, z=np.ones(n), dp=dp, sx=sx if directions else None, breaks=[0.0, 1.0], coef=coef,
        times=np.linspace(0.0, 1.0, 6), rtol=1e-9, atol=1e-11, nominal=np.repeat([0.5, 2.0], 2 * n), **options,
    )  # type: ignore[arg-type] # fmt: skip
    which.call(scheme, task)
    return task


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        (IMPLICIT, {}),
        (EXPLICIT, {}),
        (IMPLICIT, {"fixed_step": 0.05}),
        (EXPLICIT, {"fixed_step": 0.02}),
    ],
)
def test_runs_and_their_derivatives_are_those_of_dense_kernels(
    scheme: Scheme, options: dict[str, float], closed: bool
) -> None:
    dense, sparse = (run(kernel(which, closed), scheme, **options) for which in (False, True))
    assert dense.status == sparse.status == Status.DONE
    assert sparse.worst_constraint < 1e-9
    tolerance = 1e-11 if options else 1e-9
    assert np.abs(dense.y - sparse.y).max() < tolerance * np.abs(dense.y).max()
    assert np.abs(dense.sy - sparse.sy).max() < 100 * tolerance * np.abs(dense.sy).max()


@pytest.mark.parametrize("scheme", [IMPLICIT, EXPLICIT])
def test_sensitivities_are_those_of_the_projected_steps(scheme: Scheme) -> None:
    """Frozen steps, so that differences converge: Richardson's from four runs."""
    which = kernel(True, True)
    exact = run(which, scheme, fixed_step=0.05).sy
    for k, e in ((0, 1e-3), (1, 1e-3)):

        def moved(by: float, k: int = k) -> np.ndarray:
            p = [1.0, 0.2]
            p[k] += by
            return run(which, scheme, (p[0], p[1]), directions=False, fixed_step=0.05).y

        one, two = ((moved(s * e) - moved(-s * e)) / (2 * s * e) for s in (1.0, 2.0))
        assert np.abs(exact[:, k] - (4 * one - two) / 3).max() < 1e-7 * np.abs(exact[:, k]).max()


def test_contradicting_constraints_are_told_by_their_number() -> None:
    """A redundant constraint is left out of the corrections, but looked at."""
    system = rope()
    system = System(**{**vars(system), "constraints": ca.vertcat(system.constraints, system.constraints[1] + 1e-3)})
    found = {}
    for sparse in (False, True):
        task = run(build_kernel(system, sensitive=True, sparse=sparse), IMPLICIT)
        found[sparse] = (Status(task.status), task.where, task.t)
    assert found[True] == found[False]
    assert found[True][0] == Status.PROJECTION


def test_fronts_of_a_chain_and_of_copies_grow_with_their_number() -> None:
    def chain(n: int) -> SparsityPattern:
        """Constraint k of states k and k + 1."""
        row = np.array([r for i in range(n + 1) for r in (i - 1, i) if 0 <= r < n])
        return SparsityPattern((n, n + 1), np.concatenate(([0], np.cumsum([1, *[2] * (n - 1), 1]))), row)

    def sizes(n: int) -> tuple[int, int]:
        found = fronts(chain(n))
        assert sorted(found.state) == list(range(n + 1)) and found.own.sum() == n
        return found.size, int(found.height.max())

    (small, low), (large, high) = sizes(100), sizes(1000)
    assert large < 11 * small and low == high <= 8
