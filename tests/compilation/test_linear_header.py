"""gr_linear.h against NumPy: real and complex solutions, exchanges of rows, scaling, and what counts as singular."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

CODE = """
#define GR_NX 10
#define GR_NZ 0
#define GR_NC 0
#include "gr_linear.h"
GR_API long real_lu(long n, double *a, long *pivot, double *b) {
  const long bad = gr_lu(n, a, pivot);
  if (!bad) gr_lu_solve(n, a, pivot, b);
  return bad;
}
GR_API long complex_lu(long n, double *ar, double *ai, long *pivot, double *br, double *bi) {
  const long bad = gr_zlu(n, ar, ai, pivot);
  if (!bad) gr_zlu_solve(n, ar, ai, pivot, br, bi);
  return bad;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler was found")
    folder: Path = tmp_path_factory.mktemp("linear")
    (folder / "linear.c").write_text(CODE)
    headers = str(resources.files("grisaille.compilation") / "kernels")
    flags = ["-O2", "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{headers}"]
    subprocess.run([compiler, *flags, "linear.c", "-o", "linear.so", "-lm"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "linear.so"))
    library.real_lu.restype = library.complex_lu.restype = ctypes.c_long
    return library


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def solve(library: ctypes.CDLL, a: np.ndarray, b: np.ndarray) -> tuple[int, np.ndarray]:
    n = len(b)
    pivot = np.zeros(n, dtype=ctypes.c_long)
    if np.iscomplexobj(a):
        re, im = a.T.real.copy(), a.T.imag.copy()
        br, bi = b.real.copy(), b.imag.copy()
        bad = library.complex_lu(ctypes.c_long(n), *map(pointer, (re, im, pivot, br, bi)))
        return bad, br + 1j * bi
    matrix, right = a.T.copy(), b.copy()
    return library.real_lu(ctypes.c_long(n), *map(pointer, (matrix, pivot, right))), right


@pytest.mark.parametrize("n", [1, 2, 3, 8, 30])
@pytest.mark.parametrize("kind", [float, complex])
def test_solves_like_numpy(library: ctypes.CDLL, n: int, kind: type) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(n, n)), rng.normal(size=n)
    if kind is complex:
        a, b = a + 1j * rng.normal(size=(n, n)), b + 1j * rng.normal(size=n)
    bad, x = solve(library, a, b)
    assert bad == 0
    assert np.max(np.abs(a @ x - b)) < 1e-12 * np.max(np.abs(a)) * max(1.0, np.max(np.abs(x)))


def test_zero_on_the_diagonal_needs_an_exchange(library: ctypes.CDLL) -> None:
    bad, x = solve(library, np.array([[0.0, 2.0], [3.0, 0.0]]), np.array([4.0, 9.0]))
    assert bad == 0
    assert x == pytest.approx([3.0, 2.0])


@pytest.mark.parametrize("kind", [float, complex])
def test_units_of_rows_and_columns_do_not_make_a_matrix_singular(library: ctypes.CDLL, kind: type) -> None:
    rng = np.random.default_rng(1)
    a = (
        rng.normal(size=(5, 5)) * 10.0 ** np.array([12, 0, -9, 6, -15])[:, None] * 10.0 ** np.array([-8, 7, 0, 3, -3])
    ).astype(kind)
    x = 10.0 ** np.array([8.0, -7, 0, -3, 3])
    bad, found = solve(library, a, a @ x)
    assert bad == 0
    assert np.abs(found / x - 1).max() < 1e-10


@pytest.mark.parametrize("kind", [float, complex])
def test_a_column_without_pivot_is_named(library: ctypes.CDLL, kind: type) -> None:
    a = np.array([[1.0, 2.0, 0.3], [0.1, 0.2, 0.7], [0.7, 1.4, 0.1]], dtype=kind)
    assert solve(library, a, np.ones(3, dtype=kind))[0] == 2


def test_not_a_number_is_refused(library: ctypes.CDLL) -> None:
    assert solve(library, np.array([[np.nan, 1.0], [1.0, 1.0]]), np.ones(2))[0] > 0
