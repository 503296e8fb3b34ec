"""Functions printed as loops give the bits of CasADi's own evaluation."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from grisaille.compilation import PRELUDE, print_function, print_with_loops, printer

INPUTS = ("t", "x", "p")
t, x, p = ca.SX.sym("t"), ca.SX.sym("x", 60), ca.SX.sym("p", 4)


def rod() -> ca.SX:
    ends = ca.vertcat(t, x, x[-1])
    return p[0] * (ends[:-2] - 2 * x + ends[2:]) - p[1] * x**3


def shared() -> ca.SX:
    """One expensive value for all, and one for each that two others use."""
    common, each = ca.exp(-p[2] * t), ca.sin(x)
    return ca.vertcat(common * each, each - common, common)


def one_long_sum() -> ca.SX:
    total = ca.SX(0)
    for i in range(60):
        total = total + x[i] * (i + 1.5) + ca.fmin(x[i], p[3])
    return total


def a_chain() -> ca.SX:
    """Each needs the one before."""
    found = [x[0]]
    for i in range(1, 60):
        found.append(ca.sqrt(ca.fabs(found[-1])) - p[0] * x[i])
    return ca.vertcat(*found)


def constants_and_copies() -> ca.SX:
    a = x[7] * p[0]
    return ca.vertcat(3.0, -0.0, x[4], x[4], p[1], t, a, a, a, a, a, a, a, a, *(float(k) for k in range(9)))


def apart() -> ca.SX:
    """No two alike, one of each kind of operation."""
    return ca.vertcat(
        ca.if_else(x[0] > 0, x[1], -x[2]), ca.atan2(x[3], p[0]), ca.floor(x[4]), ca.erf(x[5]), 1 / x[6], x[7] ** p[1]
    )


def scattered() -> ca.SX:
    return ca.vertcat(*(x[(17 * i + 5) % 60] * x[(7 * i * i) % 60] * (0.1 * i) for i in range(60)))


FORMULAS = (rod, shared, one_long_sum, a_chain, constants_and_copies, apart, scattered)
SPARSE = ca.jacobian(rod(), x)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    texts = [print_with_loops(function(f()), f"gr_{f.__name__}", INPUTS) for f in FORMULAS]
    texts += [
        print_with_loops(function(SPARSE), f"gr_{name}", INPUTS, name == "entries") for name in ("entries", "spread")
    ]
    names = [*(f.__name__ for f in FORMULAS), "entries", "spread"]
    return compiled(texts, names, tmp_path_factory.mktemp("rolled"))


def compiled(texts: list[str], names: list[str], folder: Path) -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler was found")
    calls = [f"void {n}(double t, double *x, double *p, double *out) {{ gr_{n}(t, x, p, out); }}" for n in names]
    (folder / "rolled.c").write_text("\n".join(["#define GR_FN static inline", PRELUDE, *texts, *calls]))
    flags = [
        "-O1",
        "-std=c99",
        "-ffp-contract=off",
        "-Wall",
        "-Werror",
        "-Wno-unused",
        "-Wno-attributes",
        "-shared",
        "-fPIC",
    ]
    subprocess.run([compiler, *flags, "-shared", "rolled.c", "-o", "rolled.so", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "rolled.so"))


def function(formula: ca.SX) -> ca.Function:
    return ca.Function("f", [t, x, p], [ca.cse(ca.SX(formula))])


def call(library: ctypes.CDLL, name: str, size: int) -> tuple[np.ndarray, list[object]]:
    rng = np.random.default_rng(4)
    given = [0.7, rng.normal(size=60), 0.5 + rng.random(4)]
    out = np.full(size, np.nan)
    getattr(library, name)(ctypes.c_double(0.7), *(ctypes.c_void_p(v.ctypes.data) for v in (*given[1:], out)))  # type: ignore[attr-defined]
    return out, given


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_the_bits_of_casadi(library: ctypes.CDLL, formula: object) -> None:
    own = function(formula())  # type: ignore[operator]
    found, given = call(library, formula.__name__, own.numel_out(0))  # type: ignore[attr-defined]
    expected = np.array(own(*given)).ravel()
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(expected))


def test_matrices_as_their_entries_or_with_their_zeros(library: ctypes.CDLL) -> None:
    own = function(SPARSE)
    entries, given = call(library, "entries", own.nnz_out(0))
    spread, _ = call(library, "spread", own.numel_out(0))
    assert np.array_equal(entries, own(*given).nonzeros())
    assert np.array_equal(spread.reshape(60, 60).T, own(*given).full())


def test_what_repeats_is_one_line() -> None:
    text = print_with_loops(function(rod()), "f", INPUTS)
    assert text.count("\n") < 20
    assert "x[0 + 1 * k]" in text


def many(n: int) -> ca.SX:
    """n values that two others use, each in another's cell."""
    each = ca.sin(p[0] * ca.repmat(x, n // 60, 1) + ca.DM(range(n)))
    return ca.vertcat(each * p[1], each[::-1] - t)


def test_many_values_are_no_burden_on_the_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More values than the stack of a thread has room for, in several threads at once."""
    owns = {"rolled": function(many(13_200)), "lines": function(many(120))}
    texts = [print_with_loops(owns["rolled"], "gr_rolled", INPUTS)]
    monkeypatch.setattr(printer, "ON_STACK", 20)
    monkeypatch.setattr(printer, "INSTRUCTIONS_PER_FUNCTION", 60)
    texts.append(print_function(owns["lines"], "gr_lines", INPUTS))
    assert all(text.count("GR_KEPT double w[") == 1 and "  double w[" not in text for text in texts)
    library = compiled(texts, list(owns), tmp_path)

    def right(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        at, state, parameters = 0.1 * seed, rng.normal(size=60), rng.normal(size=4)
        same = True
        for name, own in owns.items():
            expected = own(at, state, parameters).full().ravel()
            for _ in range(10):
                out = np.full(expected.size, np.nan)
                pointers = (ctypes.c_void_p(v.ctypes.data) for v in (state, parameters, out))
                getattr(library, name)(ctypes.c_double(at), *pointers)
                same = same and np.array_equal(out, expected)
        return same

    before = threading.stack_size(96 * 1024)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(right, range(4)))
    finally:
        threading.stack_size(before)


def test_few_values_stay_on_the_stack() -> None:
    assert printer.between_parts("double", printer.ON_STACK) == f"  double w[{printer.ON_STACK}];"
    assert printer.between_parts("gr_wide", printer.ON_STACK + 1) == f"  GR_KEPT gr_wide w[{printer.ON_STACK + 1}];"
