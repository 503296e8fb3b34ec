"""Elimination along time against the whole system at once: step, multipliers, determinant, covariances."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.collocation.direct import (
    ElementDerivatives,
    ElementSizes,
    IndefiniteError,
    condense,
    multipliers,
    scatter,
    substitute,
    sweep,
)

N, NZ, POINTS, SLOTS = 2, 1, 2, 2
FIRST = ElementSizes(0, N + NZ, 1, SLOTS)
INNER = ElementSizes(N, POINTS * (N + NZ), POINTS * 1, SLOTS)
COUNT = 3


def random_derivatives(sizes: ElementSizes, count: int, rng: np.random.Generator) -> ElementDerivatives:
    root = rng.normal(size=(count, sizes.total, sizes.total))
    hessian = root @ root.swapaxes(1, 2) + 0.5 * np.eye(sizes.total)
    jacobian = rng.normal(size=(count, sizes.inner, sizes.total))
    jacobian[:, :, sizes.parts[1]] += 4.0 * np.eye(sizes.inner)
    return ElementDerivatives(
        np.zeros((count, 3)),
        rng.normal(size=(count, sizes.inner)),
        rng.normal(size=(count, sizes.total)),
        jacobian,
        hessian,
    )


def places() -> tuple[list[np.ndarray], int]:
    """Where the entries of every a stand among all unknowns (θ last), start first."""
    width = FIRST.inner + FIRST.noise
    each = INNER.inner + INNER.noise
    total = width + COUNT * each + SLOTS
    theta = np.arange(total - SLOTS, total)
    found = [np.concatenate([np.arange(width), theta])]
    last = np.arange(N)
    for e in range(COUNT):
        own = np.arange(width + e * each, width + (e + 1) * each)
        found.append(np.concatenate([last, own, theta]))
        last = own[INNER.inner - (N + NZ) : INNER.inner - NZ]
    return found, total


def dense(
    first: ElementDerivatives, inner: ElementDerivatives
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    at, total = places()
    rows = FIRST.inner + COUNT * INNER.inner
    H, g, J, c = np.zeros((total, total)), np.zeros(total), np.zeros((rows, total)), np.zeros(rows)
    row = 0
    for k, index in enumerate(at):
        d, e = (first, 0) if k == 0 else (inner, k - 1)
        H[np.ix_(index, index)] += d.hessian[e]
        g[index] += d.gradient[e]
        m = d.c.shape[1]
        J[row : row + m, index] += d.jacobian[e]
        c[row : row + m] = d.c[e]
        row += m
    return H, g, J, c


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    first, inner = random_derivatives(FIRST, 1, rng), random_derivatives(INNER, COUNT, rng)
    start, elements = condense(first, FIRST, N, NZ), condense(inner, INNER, N, NZ)
    return first, inner, start, elements, sweep(start, elements)


def test_step_and_multipliers_are_those_of_the_whole_system(problem) -> None:
    first, inner, start, elements, swept = problem
    H, g, J, c = dense(first, inner)
    n, m = len(g), len(c)
    whole = np.linalg.solve(np.block([[H, J.T], [J, np.zeros((m, m))]]), -np.concatenate([g, c]))
    dtheta = -np.linalg.solve(swept.first[1:, 1:], swept.first[0, 1:])
    np.testing.assert_allclose(dtheta, whole[n - SLOTS : n], rtol=1e-9)
    steps = substitute(swept, np.concatenate([[1.0], dtheta])[:, None])
    at, _ = places()
    np.testing.assert_allclose(steps.start[:, 0], whole[at[0]], rtol=1e-8)
    for e in range(COUNT):
        np.testing.assert_allclose(steps.elements[e, :, 0], whole[at[e + 1]], rtol=1e-8)
    lam0 = multipliers(start, steps.start[None, :, 0], steps.costates[:1, :, 0], NZ)
    lam = multipliers(elements, steps.elements[:, :, 0], steps.costates[1:, :, 0], NZ)
    np.testing.assert_allclose(np.concatenate([lam0.ravel(), lam.ravel()]), whole[n:], rtol=1e-7)


def test_determinant_and_covariances_are_those_of_the_reduced_hessian(problem) -> None:
    first, inner, _, _, swept = problem
    H, _, J, _ = dense(first, inner)
    n = len(H) - SLOTS
    H, J = H[:n, :n], J[:, :n]
    width, each = FIRST.inner + FIRST.noise, INNER.inner + INNER.noise
    dependent = np.concatenate(
        [np.arange(FIRST.inner), *(width + e * each + np.arange(INNER.inner) for e in range(COUNT))]
    )
    free = np.setdiff1d(np.arange(n), dependent)
    basis = np.zeros((n, len(free)))
    basis[free, np.arange(len(free))] = 1.0
    basis[dependent] = -np.linalg.solve(J[:, dependent], J[:, free])
    reduced = basis.T @ H @ basis
    assert swept.log_determinant == pytest.approx(np.linalg.slogdet(reduced)[1], rel=1e-10)
    covariance = basis @ np.linalg.inv(reduced) @ basis.T
    found = scatter(swept)[0]
    np.testing.assert_allclose(found[0], covariance[:N, :N], rtol=1e-8)
    ends = dependent[-(N + NZ) : -NZ]
    np.testing.assert_allclose(found[-1], covariance[np.ix_(ends, ends)], rtol=1e-8)


def test_wrong_curvature_is_noticed(problem) -> None:
    _, inner, start, _, _ = problem
    bent = ElementDerivatives(
        inner.cost, inner.c, inner.gradient, inner.jacobian, inner.hessian - 200.0 * np.eye(INNER.total)
    )
    with pytest.raises(IndefiniteError):
        sweep(start, condense(bent, INNER, N, NZ))


def test_damped_steps_for_several_columns_with_a_slot_that_moves_nothing() -> None:
    rng = np.random.default_rng(5)
    first, inner = random_derivatives(FIRST, 1, rng), random_derivatives(INNER, COUNT, rng)
    inner.jacobian[:, :, -1], inner.hessian[:, -1], inner.hessian[:, :, -1] = 0.0, 0.0, 0.0
    start = condense(first, FIRST, N, NZ, 0.1 * np.ones((1, FIRST.noise)))
    elements = condense(inner, INNER, N, NZ, 0.1 * np.ones((COUNT, INNER.noise)))
    head = rng.normal(size=(1 + SLOTS, 4))
    steps = substitute(sweep(start, elements), head)
    for d, sizes in ((first, FIRST), (inner, INNER)):
        v = np.arange(sizes.total)[sizes.parts[2]]
        d.hessian[:, v, v] += 0.1
    H, g, J, c = dense(first, inner)
    n, m = len(g) - SLOTS, len(c)
    whole = np.block([[H[:n, :n], J[:, :n].T], [J[:, :n], np.zeros((m, m))]])
    right = np.concatenate([np.column_stack([g[:n], H[:n, n:]]), np.column_stack([c, J[:, n:]])])
    wanted = np.concatenate([-np.linalg.solve(whole, right @ head)[:n], head[1:]])
    at, _ = places()
    np.testing.assert_allclose(steps.start, wanted[at[0]], rtol=1e-8, atol=1e-9)
    for e in range(COUNT):
        np.testing.assert_allclose(steps.elements[e], wanted[at[e + 1]], rtol=1e-8, atol=1e-9)
