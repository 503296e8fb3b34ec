"""Generated C = CasADi = finite differences, for every operation that SX knows."""

from __future__ import annotations

import ctypes

import casadi as ca
import numpy as np
import pytest
from scipy.special import erfinv

from grisaille.compilation import PLAIN_DIALECT, WIDE_DIALECT, build_library, literal, print_function, printer
from grisaille.errors import CompilationError

X = ca.SX.sym("x", 3)


def every_operation() -> ca.SX:
    """One entry per operation, each smooth and inside its domain for x in (0.2, 0.9)³ (steps and kinks apart)."""
    a, b, c = ca.vertsplit(X)
    smooth = [
        a + b, a - b, a * b, a / b, -a, ca.exp(a), ca.log(a), a**b, a**2.5, ca.sqrt(a), a**2, 2 * a, 1 / a, ca.sin(a),
        ca.cos(a), ca.tan(a), ca.asin(a), ca.acos(a), ca.atan(a), ca.atan2(a, -b), ca.sinh(a), ca.cosh(a), ca.tanh(a),
        ca.asinh(a), ca.acosh(1 + a), ca.atanh(a), ca.erf(a), ca.log1p(a), ca.expm1(a),
        ca.hypot(a, b), ca.log10(a), ca.if_else(a < b, a * c, ca.sin(b)), ca.fabs(a - b),
        ca.fmin(a, b), ca.fmax(a, b), ca.fmod(5 * a, b), ca.remainder(5 * a, b), ca.copysign(a, b - c),
    ]  # fmt: skip
    steps = [
        a < b, a <= b, ca.eq(a, b), ca.eq(ca.floor(a), 0), ca.ne(a, b), ca.logic_and(a < b, b < c),
        ca.logic_or(a < b, b < c), ca.logic_not(a < b), ca.sign(a - b), ca.floor(4 * a), ca.ceil(4 * a),
    ]  # fmt: skip
    return ca.vertcat(*smooth, *steps)


def random_formula(rng: np.random.Generator) -> ca.SX:
    """A deep composition of bounded operations."""
    pool = list(ca.vertsplit(X))
    unary = [ca.sin, ca.cos, ca.tanh, ca.atan, ca.erf, lambda v: ca.exp(-(v**2)), lambda v: ca.log1p(v**2), ca.asinh]
    for _ in range(100):
        i, j = rng.integers(max(0, len(pool) - 20), len(pool), 2)
        f = unary[rng.integers(len(unary))]
        pool.append(f(pool[i]) * rng.normal() + pool[j] / (1.5 + ca.hypot(pool[i], pool[j])))
    return ca.vertcat(*pool[-4:])


def functions() -> dict[str, ca.Function]:
    every, deep = every_operation(), random_formula(np.random.default_rng(7))
    sparse = ca.SX(ca.Sparsity.upper(3), ca.vertcat(X, X**2))
    # CasADi itself turns -0.0 into 0.0
    special = ca.vertcat(X[0] * np.nan, X[0] + np.inf, X[0] - np.inf, ca.SX(0.1), ca.SX(1e-310), X[0] * -2.5e300)
    formulas = {
        "every": every, "every_slope": ca.jacobian(every, X), "deep": deep, "deep_slope": ca.jacobian(deep, X),
        "sparse": sparse, "special": special, "inverse": ca.erfinv(X), "spoken": X[0].printme(X[1]),
    }  # fmt: skip
    return {name: ca.Function(name, [X], [formula]) for name, formula in formulas.items()}


FUNCTIONS = functions()


@pytest.fixture(scope="module")
def native():
    """The functions as built from C, and ``deep_slope`` once more, cut into many parts."""
    texts = [print_function(f, f"gr_{name}", ["x"]) for name, f in FUNCTIONS.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printer, "INSTRUCTIONS_PER_FUNCTION", 50)
        cut = print_function(FUNCTIONS["deep_slope"], "gr_cut", ["x"])
    assert cut.count("GR_ALONE") > 5
    wide = [print_function(f, f"gr_wide_{name}", ["x"], dialect=WIDE_DIALECT) for name, f in FUNCTIONS.items()]
    exports = [
        f"GR_API long call_{name}(const double *x, double *out) {{ gr_{name}(x, out); return 0; }}"
        for name in (*FUNCTIONS, "cut")
    ]
    exports += [
        f"GR_API long call_wide_{name}(const double *x, double *out)"
        f" {{ gr_wide_{name}((const gr_wide *)x, (gr_wide *)out); return GR_LANES; }}"
        for name in FUNCTIONS
    ]
    text = "\n".join(['#include "gr_task.h"', '#include "gr_wide.h"', printer.PRELUDE, *texts, cut, *wide, *exports])
    library = build_library(text, 0)
    assert library is not None

    def call(name: str, x: np.ndarray, size: int) -> np.ndarray:
        out = np.full(size, 123.0)
        library.function(f"call_{name}", ctypes.c_void_p, ctypes.c_void_p)(x.ctypes.data, out.ctypes.data)
        return out

    return call


def dense(function: ca.Function, x: np.ndarray) -> np.ndarray:
    return np.array(ca.DM(function(x)).full()).ravel(order="F")


POINTS = np.random.default_rng(3).uniform(0.2, 0.9, size=(40, 3))


def test_the_list_of_operations_is_complete():
    function = FUNCTIONS["every"]
    used = {function.instruction_id(k) for k in range(function.n_instructions())}
    # ASSIGN and LIFT are not produced by formulas; the other two have tests of their own
    assert set(PLAIN_DIALECT.operations) - used == {ca.OP_ASSIGN, ca.OP_LIFT, ca.OP_ERFINV, ca.OP_PRINTME}


@pytest.mark.parametrize("name", ["every", "every_slope", "deep", "deep_slope", "sparse"])
def test_c_equals_casadi(native, name):
    for x in POINTS:
        expected = dense(FUNCTIONS[name], x)
        np.testing.assert_allclose(native(name, x, expected.size), expected, rtol=2e-14, atol=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_two_abreast_have_the_digits_of_one(native, name):
    size = FUNCTIONS[name].numel_out(0)
    for a, b in zip(POINTS[:-1:2], POINTS[1::2], strict=True):
        abreast = native(f"wide_{name}", np.column_stack([a, b]).ravel(), 2 * size).reshape(size, 2)
        np.testing.assert_array_equal(abreast[:, 0], native(name, a, size))
        np.testing.assert_array_equal(abreast[:, 1], native(name, b, size))


def test_parts_equal_the_whole(native):
    for x in POINTS[:5]:
        whole = native("deep_slope", x, 12)
        np.testing.assert_array_equal(native("cut", x, 12), whole)


def test_special_constants(native):
    out = native("special", np.array([0.5, 0.5, 0.5]), 6)
    assert np.isnan(out[0]) and out[1] == np.inf and out[2] == -np.inf
    assert out[3] == 0.1 and out[4] == 1e-310 and out[5] == -1.25e300
    assert (literal(-0.0), literal(-np.inf), literal(-1.5)) == ("(-0.0)", "(-INFINITY)", "(-1.5)")


@pytest.mark.parametrize(("values", "slopes"), [("every", "every_slope"), ("deep", "deep_slope")])
def test_derivatives_equal_finite_differences(values, slopes):
    f, h = FUNCTIONS[values], 1e-5
    for x in POINTS[:10]:
        columns = [(dense(f, x + h * e) - dense(f, x - h * e)) / (2 * h) for e in np.eye(3)]
        difference = np.array(columns).T
        exact = dense(FUNCTIONS[slopes], x).reshape(3, -1).T
        # a jump inside the difference's interval gives a huge quotient; steps are flat elsewhere
        near = np.abs(difference) < 1e3
        np.testing.assert_allclose(exact[near], difference[near], rtol=1e-6, atol=1e-7)
        assert near.mean() > 0.95


def test_the_inverse_error_function_is_exact_into_its_tails(native):
    # SciPy is the reference: CasADi's own is right to 1e-11 only
    for a in (0.0, 1e-12, 0.1, 0.49, 0.5, 0.51, 0.99, 1 - 1e-9, 1 - 1e-15, 1.0):
        found = native("inverse", np.array([a, -a, 1.5]), 3)
        np.testing.assert_allclose(found, [erfinv(a), -erfinv(a), np.nan], rtol=1e-14)


def test_printing_is_silent_in_c(native, capfd):
    assert native("spoken", np.array([0.3, 0.4, 0.5]), 1) == [0.3]
    assert capfd.readouterr().out == ""


def test_names_are_ours_only():
    x = ca.SX.sym('x*/ int injected = 1; /*"')
    f = ca.Function("f", [x], [x**2])
    text = print_function(f, "gr_f", ["x"])
    assert "injected" not in text and "x[0]" in text
    with pytest.raises(CompilationError, match="not a C identifier"):
        print_function(f, "gr_f; system(0)", ["x"])
    with pytest.raises(CompilationError, match="not a C identifier"):
        print_function(f, "gr_f", ["x) {}"])


def test_outputs_are_written_after_all_inputs_are_read():
    f = ca.Function("f", [X], [ca.vertcat(X[2], X[0], X[1])])
    lines = print_function(f, "gr_f", ["x"]).splitlines()
    reads = [k for k, line in enumerate(lines) if "x[" in line]
    writes = [k for k, line in enumerate(lines) if "out[" in line]
    assert len(writes) == 3 and max(reads) < min(writes)


def test_only_elementary_operations_can_be_printed():
    inner = ca.Function("inner", [X], [X**2], {"never_inline": True})
    f = ca.Function("f", [X], [inner(X)])
    with pytest.raises(CompilationError, match="not elementary"):
        print_function(f, "gr_f", ["x"])


def test_zeros_are_written_by_loops() -> None:
    """A sparse Jacobian of 200 states has 40 000 entries; a store for each took the compiler minutes."""
    x = ca.SX.sym("x", 200)
    function = ca.Function("f", [x], [ca.jacobian(ca.sin(x), x)])
    assert len(print_function(function, "f", ["x"]).splitlines()) < 1200
