"""gr_sparse.h against NumPy: solutions, other numbers in the same order, blocks, units, what counts as singular."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from grisaille.compilation.sparse.pattern import Pattern, eliminate

CODE = """
#define GR_NX 1
#define GR_NZ 0
#define GR_NC 0
#define GR_NP 0
#define GR_NY 0
#define GR_SPARSE 1
#define GR_J_SIZE 1
#define GR_J_ROOM 1
static const int gr_J_begin[2] = {0, 1}, gr_J_row[1] = {0}, gr_J_order[1] = {0}, gr_J_wanted[1] = {0};
static const int gr_J_block[1] = {0};
#include "gr_sparse.h"
GR_API long needs(long n, long entries, long room, long lanes) {
  gr_factors f;
  return gr_factors_in(0, n, entries, room, lanes, &f);
}
GR_API long real_lu(long n, int *begin, int *row, int *order, int *wanted, int *block, long room, double *memory,
                    double *a, double *b, long *orientation) {
  const gr_pattern m = {n, begin, row, order, wanted, block};
  gr_factors f;
  gr_factors_in(memory, n, begin[n], room, 1, &f);
  for (long e = 0; e < begin[n]; e++) f.a[e] = a[e];
  const long bad = gr_real_factor(&m, &f);
  if (!bad) gr_real_solve(&m, &f, b);
  if (!bad) *orientation = gr_sparse_orientation(&m, &f);
  return bad;
}
GR_API long complex_lu(long n, int *begin, int *row, int *order, int *wanted, int *block, long room, double *memory,
                       double *a, double *br, double *bi) {
  const gr_pattern m = {n, begin, row, order, wanted, block};
  gr_factors f;
  gr_factors_in(memory, n, begin[n], room, 2, &f);
  for (long e = 0; e < 2 * begin[n]; e++) f.a[e] = a[e];
  const long bad = gr_complex_factor(&m, &f);
  if (!bad) gr_complex_solve(&m, &f, br, bi);
  return bad;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler was found")
    folder: Path = tmp_path_factory.mktemp("sparse")
    (folder / "sparse.c").write_text(CODE)
    headers = str(resources.files("grisaille.compilation") / "kernels")
    flags = ["-O1", "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{headers}"]
    subprocess.run([compiler, *flags, "sparse.c", "-o", "sparse.so", "-lm"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "sparse.so"))
    for name in ("needs", "real_lu", "complex_lu"):
        getattr(library, name).restype = ctypes.c_long
    return library


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Equations:
    """One pattern with its order and factors, solved again and again."""

    def __init__(self, library: ctypes.CDLL, a: np.ndarray, room: int = 0, lanes: int = 1) -> None:
        self.library, self.n, self.lanes = library, len(a), lanes
        columns, rows = np.nonzero(a.T)
        begin = np.concatenate(([0], np.cumsum(np.bincount(columns, minlength=self.n))))
        self.at = rows, columns
        found = eliminate(Pattern(a.shape, begin, rows))
        assert found is not None
        self.blocks = len(set(found.block.tolist()))
        self.room = room or found.room
        arrays = (begin, rows, found.order, found.wanted, found.block)
        self.pattern = [np.asarray(v, np.int32) for v in arrays]
        size = library.needs(*map(ctypes.c_long, (self.n, rows.size, self.room, lanes)))
        self.memory = np.zeros(size)
        self.orientation = np.zeros(1, ctypes.c_long)

    def solve(self, a: np.ndarray, b: np.ndarray) -> tuple[int, np.ndarray]:
        values = np.ascontiguousarray(a[self.at])
        given = [ctypes.c_long(self.n), *map(pointer, self.pattern), ctypes.c_long(self.room), pointer(self.memory)]
        if self.lanes == 2:
            re, im = b.real.copy(), b.imag.copy()
            bad = self.library.complex_lu(*given, *map(pointer, (values.view(float), re, im)))
            return bad, re + 1j * im
        right = b.copy()
        return self.library.real_lu(*given, *map(pointer, (values, right, self.orientation))), right


def random_matrix(rng: np.random.Generator, n: int, kind: type = float, each: int = 3) -> np.ndarray:
    """Regular, hardly anything on the diagonal."""
    a = np.zeros((n, n), kind)
    a[rng.permutation(n), np.arange(n)] = 1.0 + rng.random(n)
    for _ in range(each):
        a[rng.integers(0, n, n), np.arange(n)] += rng.normal(size=n) + (
            1j * rng.normal(size=n) if kind is complex else 0
        )
    return a


@pytest.mark.parametrize("n", [1, 2, 5, 30, 120])
@pytest.mark.parametrize("kind", [float, complex])
def test_solves_like_numpy_and_again_with_other_numbers(library: ctypes.CDLL, n: int, kind: type) -> None:
    rng = np.random.default_rng(n)
    a = random_matrix(rng, n, kind)
    equations = Equations(library, a, lanes=2 if kind is complex else 1)
    for _ in range(4):
        b = rng.normal(size=n).astype(kind)
        bad, x = equations.solve(a, b)
        assert bad == 0
        assert np.abs(a @ x - b).max() < 1e-9 * np.abs(a).max() * max(1.0, np.abs(x).max())
        if kind is float:
            assert equations.orientation[0] == np.linalg.slogdet(a)[0]
        a = np.where(a != 0, a * (1 + 0.3 * rng.normal(size=a.shape)), 0)


def test_blocks_of_a_cascade_are_solved_one_by_one(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(3)
    a = np.kron(np.eye(12), rng.normal(size=(3, 3))) + np.kron(np.eye(12, k=-2), rng.normal(size=(3, 3)))
    shuffle = rng.permutation(36)
    a = a[shuffle][:, rng.permutation(36)]
    equations = Equations(library, a)
    assert equations.blocks == 12
    b = rng.normal(size=36)
    assert np.abs(a @ equations.solve(a, b)[1] - b).max() < 1e-9


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_pivot_that_vanishes_is_replaced_by_another_row(library: ctypes.CDLL, lanes: int) -> None:
    kind = float if lanes == 1 else complex
    a = (np.diag(np.full(20, 4.0)) + np.diag(np.ones(19), 1) + np.diag(np.ones(19), -1)).astype(kind)
    b = np.arange(20.0).astype(kind)
    equations = Equations(library, a, lanes=lanes)
    for small in (4.0, 1e-3, 1e-19, 0.0, 4.0):
        other = a.copy()
        other[np.arange(0, 20, 2), np.arange(0, 20, 2)] = small
        bad, x = equations.solve(other, b)
        assert bad == 0
        assert np.abs(other @ x - b).max() < 1e-9 * max(1.0, np.abs(x).max())


def test_units_of_rows_and_columns_do_not_make_a_matrix_singular(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(1)
    sizes = 10.0 ** rng.integers(-9, 10, 40)
    a = random_matrix(rng, 40) * 10.0 ** rng.integers(-9, 10, 40)[:, None] * sizes
    equations, x = Equations(library, a), 1.0 / sizes
    for _ in range(2):
        bad, found = equations.solve(a, a @ x)
        assert bad == 0
        assert np.abs(found / x - 1).max() < 1e-8


@pytest.mark.parametrize("again", [False, True])
def test_a_column_without_pivot_is_named(library: ctypes.CDLL, again: bool) -> None:
    a = np.diag(np.full(9, 2.0)) + np.diag(np.ones(8), 1) + np.diag(np.ones(8), -1)
    equations = Equations(library, a)
    if again:
        assert equations.solve(a, np.ones(9))[0] == 0
    a[:, 4] = 0.0
    assert equations.solve(a, np.ones(9))[0] == 5
    a[4, 4] = np.nan
    assert equations.solve(a, np.ones(9))[0] > 0


def test_dependent_rows_are_singular_up_to_rounding(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(8)
    a = random_matrix(rng, 30)
    a[7] = 0.3 * a[2] + 0.7 * a[21]
    assert Equations(library, a).solve(a, np.ones(30))[0] > 0


def test_factors_that_outgrow_their_room_are_refused(library: ctypes.CDLL) -> None:
    a = random_matrix(np.random.default_rng(2), 30, each=5)
    assert Equations(library, a, room=20).solve(a, np.ones(30))[0] == -1
