"""gr_sparse_factors.h against NumPy, column by column and by panels: solutions, other numbers in the same order,
blocks, units, what counts as singular."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from grisaille.compilation.sparse import SparsityPattern, eliminate

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
                    double *a, long transposed, double *b, long *told) {
  const gr_pattern m = {n, begin, row, order, wanted, block};
  gr_factors f;
  gr_factors_in(memory, n, begin[n], room, 1, &f);
  for (long e = 0; e < begin[n]; e++) f.a[e] = a[e];
  const long bad = gr_real_factor(&m, &f);
  if (bad) return bad;
  if (transposed)
    gr_real_solve_transposed(&m, &f, b);
  else
    gr_real_solve(&m, &f, b);
  told[0] = gr_sparse_orientation(&m, &f);
  told[1] = f.ready[0] == GR_BY_PANELS;
  for (long k = 0; k < n; k++) told[2 + k] = f.row_at[k];
  return 0;
}
GR_API long complex_lu(long n, int *begin, int *row, int *order, int *wanted, int *block, long room, double *memory,
                       double *a, long transposed, double *br, double *bi, long *told) {
  const gr_pattern m = {n, begin, row, order, wanted, block};
  gr_factors f;
  gr_factors_in(memory, n, begin[n], room, 2, &f);
  for (long e = 0; e < 2 * begin[n]; e++) f.a[e] = a[e];
  const long bad = gr_complex_factor(&m, &f);
  if (bad) return bad;
  if (transposed)
    gr_complex_solve_transposed(&m, &f, br, bi);
  else
    gr_complex_solve(&m, &f, br, bi);
  told[1] = f.ready[0] == GR_BY_PANELS;
  for (long k = 0; k < n; k++) told[2 + k] = f.row_at[k];
  return 0;
}
"""


WAYS = {"columns": (), "panels": ("-DGR_PANELS_ALWAYS",), "narrow": ("-DGR_PANELS_ALWAYS", "-DGR_NARROW_ONLY")}
"""As large and small matrices are factored by themselves, and all of them by panels, in registers of either width."""


@pytest.fixture(scope="module", params=WAYS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler was found")
    folder: Path = tmp_path_factory.mktemp("sparse")
    (folder / "sparse.c").write_text(CODE)
    headers = str(resources.files("grisaille.compilation") / "kernels")
    flags = ["-O1", "-std=c99", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{headers}"]
    given = [compiler, *flags, *WAYS[request.param], "sparse.c", "-o", "sparse.so", "-lm"]
    subprocess.run(given, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "sparse.so"))
    for name in ("needs", "real_lu", "complex_lu"):
        getattr(library, name).restype = ctypes.c_long
    library.by_panels = request.param != "columns"
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
        found = eliminate(SparsityPattern(a.shape, begin, rows))
        assert found is not None
        self.blocks = len(set(found.block.tolist()))
        self.wanted = found.wanted.tolist()
        self.room = room or (self.n**2 + 8 if library.by_panels else found.room)
        arrays = (begin, rows, found.order, found.wanted, found.block)
        self.pattern = [np.asarray(v, np.int32) for v in arrays]
        size = library.needs(*map(ctypes.c_long, (self.n, rows.size, self.room, lanes)))
        self.memory = np.zeros(size)
        self.told = np.zeros(2 + self.n, ctypes.c_long)

    @property
    def orientation(self) -> int:
        return int(self.told[0])

    @property
    def has_panels(self) -> bool:
        return bool(self.told[1])

    @property
    def pivots(self) -> list[int]:
        return self.told[2:].tolist()

    def solve(self, a: np.ndarray, b: np.ndarray, transposed: bool = False) -> tuple[int, np.ndarray]:
        values = np.ascontiguousarray(a[self.at])
        given = [ctypes.c_long(self.n), *map(pointer, self.pattern), ctypes.c_long(self.room), pointer(self.memory)]
        turned = ctypes.c_long(transposed)
        if self.lanes == 2:
            re, im = b.real.copy(), b.imag.copy()
            told = map(pointer, (re, im, self.told))
            return self.library.complex_lu(*given, pointer(values.view(float)), turned, *told), re + 1j * im
        right = b.copy()
        told = map(pointer, (right, self.told))
        return self.library.real_lu(*given, pointer(values), turned, *told), right


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
            assert equations.orientation == np.linalg.slogdet(a)[0]
        assert equations.has_panels == library.by_panels or equations.pivots != equations.wanted
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


def symmetric_pattern(rng: np.random.Generator, n: int, kind: type = float) -> np.ndarray:
    """Entries on both sides of the diagonal, which dominates."""
    a = np.zeros((n, n), kind)
    rows, columns = rng.integers(0, n, 2 * n), rng.integers(0, n, 2 * n)
    a[rows, columns] = rng.normal(size=2 * n) + (1j * rng.normal(size=2 * n) if kind is complex else 0)
    a[columns, rows] += rng.normal(size=2 * n)
    a[np.arange(n), np.arange(n)] = 4.0 + np.abs(a).sum(1)
    return a


def without_diagonal(rng: np.random.Generator, n: int, kind: type = float) -> np.ndarray:
    """States and unknowns of constraints: [[K, Bᵀ], [B, 0]]."""
    a = symmetric_pattern(rng, n, kind)
    k = n // 3
    a[:k, :k] = 0.0
    a[:k, k : 2 * k] += np.eye(k)
    a[k : 2 * k, :k] += np.eye(k)
    return a


def cascade(rng: np.random.Generator, n: int, kind: type = float) -> np.ndarray:
    """Blocks of a block-triangular form in disorder."""
    a = np.zeros((n, n), kind)
    for begin in range(0, n, 7):
        end = min(n, begin + 7)
        a[begin:end, begin:end] = symmetric_pattern(rng, end - begin, kind)
        a[begin:end, : begin // 2] = rng.normal(size=(end - begin, begin // 2)) * (rng.random(begin // 2) < 0.2)
    return a[rng.permutation(n)][:, rng.permutation(n)]


def in_units(rng: np.random.Generator, n: int, kind: type = float) -> np.ndarray:
    rows, columns = 10.0 ** rng.integers(-9, 10, n), 10.0 ** rng.integers(-9, 10, n)
    return symmetric_pattern(rng, n, kind) * rows[:, None] * columns


@pytest.mark.parametrize("make", [random_matrix, symmetric_pattern, without_diagonal, cascade, in_units])
@pytest.mark.parametrize("kind", [float, complex])
def test_every_kind_of_matrix_and_its_transpose(library: ctypes.CDLL, make: object, kind: type) -> None:
    rng, by_panels = np.random.default_rng(17), 0
    for n in (2, 3, 4, 7, 12, 25, 33, 60):
        a = make(rng, n, kind)  # type: ignore[operator]
        equations = Equations(library, a, lanes=2 if kind is complex else 1)
        for again in range(4):
            b = rng.normal(size=n).astype(kind)
            for matrix, transposed in ((a, False), (a.T, True)):
                bad, x = equations.solve(a, b, transposed)
                assert bad == 0
                # the backward error, row by row: |A x - b| <= c eps (|A| |x| + |b|)
                assert (np.abs(matrix @ x - b) / (np.abs(matrix) @ np.abs(x) + np.abs(b))).max() < 1e-10
            if kind is float:
                assert equations.orientation == np.linalg.slogdet(a)[0]
            by_panels += equations.has_panels
            a = a * (1 + 0.3 * rng.normal(size=a.shape))
            if again == 2:
                a = a * 10.0 ** rng.integers(-4, 5, n)[:, None]
    assert by_panels > 20 if library.by_panels else by_panels == 0


def plate(m: int) -> np.ndarray:
    """A square plate of m x m cells, weakly held."""
    line = np.diag(np.full(m, 2.0)) - np.eye(m, k=1) - np.eye(m, k=-1)
    return np.kron(line, np.eye(m)) + np.kron(np.eye(m), line) + 0.01 * np.eye(m * m)


@pytest.mark.parametrize("kind", [float, complex])
def test_a_plate_has_panels_and_keeps_them(library: ctypes.CDLL, kind: type) -> None:
    rng, a = np.random.default_rng(5), plate(24).astype(kind)
    equations = Equations(library, a, lanes=2 if kind is complex else 1)
    for shift in (0.0, 3.0, 0.1) if kind is float else (0.0, 3.0 + 4.0j, 0.1j):
        other = a + shift * np.eye(len(a))
        b = rng.normal(size=len(a)).astype(kind)
        bad, x = equations.solve(other, b)
        assert bad == 0
        assert equations.has_panels
        assert equations.pivots == equations.wanted
        assert np.abs(x - np.linalg.solve(other, b)).max() < 1e-10 * np.abs(x).max()
        bad, x = equations.solve(other, b, transposed=True)
        assert np.abs(x - np.linalg.solve(other.T, b)).max() < 1e-10 * np.abs(x).max()


@pytest.mark.parametrize(("small", "is_taken"), [(0.05, True), (0.01, False)])
def test_wanted_pivots_are_taken_by_panels_as_by_columns(library: ctypes.CDLL, small: float, is_taken: bool) -> None:
    a = plate(24)
    first = Equations(library, a)
    assert first.solve(a, np.ones(576))[0] == 0
    column = first.pattern[2][
        0
    ]  # nothing is eliminated from the first one; the others' entries are a fourth of their rows'
    a[column, column] = small
    equations = Equations(library, a)
    bad, x = equations.solve(a, np.ones(576))
    assert bad == 0
    assert (equations.pivots == equations.wanted) == is_taken
    assert np.abs(a @ x - 1).max() < 1e-10 * np.abs(x).max()


@pytest.mark.parametrize(("small", "is_kept"), [(0.0005, True), (0.0001, False)])
def test_pivots_are_kept_by_panels_as_by_columns(library: ctypes.CDLL, small: float, is_kept: bool) -> None:
    a = plate(24)
    equations = Equations(library, a)
    assert equations.solve(a, np.ones(576))[0] == 0
    column = equations.pattern[2][0]
    a[column, column] = small
    for _ in range(3):
        bad, x = equations.solve(a, np.ones(576))
        assert bad == 0
        assert (equations.pivots == equations.wanted) == is_kept
        assert np.abs(a @ x - 1).max() < 1e-9 * np.abs(x).max()


@pytest.mark.parametrize("again", [False, True])
def test_a_plate_with_dependent_rows_is_singular_up_to_rounding(library: ctypes.CDLL, again: bool) -> None:
    for factor in (0.7, 0.77, 1.7, 3.3):
        a = plate(24)
        a[300:302] = 0.0
        a[300, 300:302] = 0.1, 0.3
        a[301, 300:302] = factor * 0.1, 1.0
        equations = Equations(library, a)
        if again:
            assert equations.solve(a, np.ones(576))[0] == 0
            assert equations.has_panels
        a[301, 301] = factor * 0.3
        assert equations.solve(a, np.ones(576))[0] in (301, 302)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_plate_with_a_column_without_pivot_is_refused(library: ctypes.CDLL, value: float, again: bool) -> None:
    a = plate(24)
    equations = Equations(library, a)
    if again:
        assert equations.solve(a, np.ones(576))[0] == 0
    a[:, 300] *= value
    refused = equations.solve(a, np.ones(576))[0]
    assert refused == 301 if value == 0.0 else refused > 0
