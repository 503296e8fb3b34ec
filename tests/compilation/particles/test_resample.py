"""gr_resample.h: the Hilbert curve, the sort by keys, and systematic draws."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

CODE = """
#include "gr_task.h"
#include "gr_resample.h"
GR_API unsigned long long hilbert(unsigned *x, long n, long bits) { return gr_hilbert(x, n, bits); }
GR_API unsigned long long graded(double z, long bits) { return gr_graded(z, bits); }
GR_API void sorted(gr_ranked *a, gr_ranked *other, long n) {
  static long counts[GR_COUNTS];
  gr_sort(a, other, counts, n);
}
GR_API void systematic(const gr_ranked *order, const double *w, double total, double u, long n, long *chosen) {
  gr_systematic(order, w, total, u, n, chosen);
}
"""
RANKED = np.dtype([("key", np.uint64), ("place", np.int64)])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler was found")
    folder: Path = tmp_path_factory.mktemp("resample")
    (folder / "resample.c").write_text(CODE)
    headers = str(resources.files("grisaille.compilation") / "kernels")
    flags = ["-O1", "-std=c99", "-Wall", "-shared", "-fPIC", f"-I{headers}"]
    subprocess.run([compiler, *flags, "resample.c", "-o", "resample.so", "-lm"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "resample.so"))
    library.hilbert.restype = library.graded.restype = ctypes.c_ulonglong
    return library


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@pytest.mark.parametrize(("n", "bits"), [(2, 4), (3, 2), (4, 2)])
def test_the_curve_visits_every_cell_once_from_neighbour_to_neighbour(library, n, bits):
    cells = np.array(list(np.ndindex(*(1 << bits,) * n)))
    places = []
    for cell in cells:
        x = cell.astype(np.uint32)
        places.append(library.hilbert(pointer(x), ctypes.c_long(n), ctypes.c_long(bits)))
    assert sorted(places) == list(range(len(cells)))
    path = cells[np.argsort(places)]
    assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()


def test_grades_keep_the_order_and_their_ends(library):
    values = [-np.inf, -9.0, -1.0, -0.5, 0.0, 0.7, 3.0, 9.0, np.inf]
    grades = [library.graded(ctypes.c_double(v), ctypes.c_long(20)) for v in values]
    assert grades == sorted(grades) and (grades[0], grades[-1]) == (0, (1 << 20) - 1) and len(set(grades)) == 7
    assert library.graded(ctypes.c_double(np.nan), ctypes.c_long(20)) == 0


def test_equal_keys_stay_in_their_order(library):
    random = np.random.default_rng(1)
    ranked = np.zeros(5000, dtype=RANKED)
    ranked["key"] = random.integers(0, 1 << 33, 5000) >> random.integers(0, 33, 5000)
    ranked["place"] = np.arange(5000)
    wanted = ranked[np.argsort(ranked["key"], kind="stable")]
    other = np.zeros_like(ranked)
    library.sorted(pointer(ranked), pointer(other), ctypes.c_long(5000))
    np.testing.assert_array_equal(ranked, wanted)


@pytest.mark.parametrize("u", [1e-12, 0.3, 1 - 1e-12])
def test_each_particle_is_drawn_as_often_as_its_weight_says_to_the_next_whole_number(library, u):
    random, n = np.random.default_rng(2), 300
    weight = random.exponential(size=n) * (random.uniform(size=n) > 0.3)
    order = np.zeros(n, dtype=RANKED)
    order["place"] = random.permutation(n)
    chosen = np.zeros(n, dtype=np.int64)
    library.systematic(
        pointer(order), pointer(weight), ctypes.c_double(weight.sum()), ctypes.c_double(u), ctypes.c_long(n),
        pointer(chosen),
    )  # fmt: skip
    expected = n * weight / weight.sum()
    drawn = np.bincount(chosen, minlength=n)
    assert (np.abs(drawn - expected) < 1).all() and (drawn[weight == 0] == 0).all()
    rank = np.empty(n, dtype=int)
    rank[order["place"]] = np.arange(n)
    assert (np.diff(rank[chosen]) >= 0).all()
