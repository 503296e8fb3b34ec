"""The C headers of random numbers and bridges behind a few exported loops, built by each compiler at hand."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from pathlib import Path

import numpy as np

import grisaille.compilation
from grisaille.compilation import LIBRARY_SUFFIX, Compiler, find_compiler, flags

KERNELS = Path(grisaille.compilation.__file__).parent / "kernels"

DRIVER = """
#include "gr_bridge.h"

GR_API void words(long count, gr_u32 *counters, gr_u32 k0, gr_u32 k1) {
  for (long i = 0; i < count; i++) gr_philox(counters + 4 * i, k0, k1);
}

GR_API void logarithms(long count, const gr_u64 *odd, double *out) {
  for (long i = 0; i < count; i++) out[i] = gr_log(odd[i]);
}

GR_API void normals(gr_u32 k0, gr_u32 k1, gr_u32 antithetic, long paths, long steps, long n, double *out) {
  gr_stream stream = {k0, k1, antithetic};
  for (long m = 0; m < paths; m++)
    for (long k = 0; k < steps; k++) gr_normals(&stream, (gr_u32)m, (gr_u32)k, 0, n, out + (m * steps + k) * n);
}

GR_API void path(gr_u32 k0, gr_u32 k1, gr_u32 realization, long n, const double *F, const double *L, long cells,
                 double *x) {
  gr_stream stream = {k0, k1, 0};
  double z[8];
  for (long k = 0; k < cells; k++)
    gr_process_step(n, F, L, &stream, realization, (gr_u32)(k + 1), x + k * n, x + (k + 1) * n, z);
}

GR_API void bridged(gr_u32 k0, gr_u32 k1, gr_u32 realization, long n, long depth, long degree, const double *F,
                    const double *K, const double *root, const double *leaf_F, const double *leaf_K, const double *x,
                    long count, const long *cells, const double *fractions, double *out) {
  gr_stream stream = {k0, k1, 0};
  gr_bridge bridge = {n, depth, degree, F, K, root, leaf_F, leaf_K};
  double work[GR_BRIDGE_WORK(8)];
  for (long i = 0; i < count; i++)
    gr_bridge_state(&bridge, &stream, realization, (gr_u32)cells[i], fractions[i], x + cells[i] * n,
                    x + (cells[i] + 1) * n, out + i * n, work);
}
"""


def build(name: str, folder: Path) -> ctypes.CDLL | None:
    """The driver as a library; None where the compiler is missing."""
    for known, compiler, options in _compilers():
        if known == name:
            sources = {file.name: file.read_text("utf-8") for file in KERNELS.glob("*.h")} | {"driver.c": DRIVER}
            common = tuple(flag for flag in flags() if flag != "-O2")
            target = folder / f"driver{LIBRARY_SUFFIX}"
            target.write_bytes(compiler.build(sources, "driver.c", (*common, *options.split())))
            return ctypes.CDLL(str(target))
    return None


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def _compilers() -> list[tuple[str, Compiler, str]]:
    found = find_compiler()
    builds = [] if found is None else [("default", found, "-O2"), ("optimized", found, "-O3 -march=native")]
    if importlib.util.find_spec("ziglang") is not None and found is not None and "ziglang" not in found.identity:
        builds.append(("zig", Compiler((sys.executable, "-m", "ziglang", "cc"), "zig"), "-O2"))
    return builds
