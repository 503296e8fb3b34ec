"""Kernels: NumPy callables, the library with its integrators, and what a user's names cannot do."""

from __future__ import annotations

import subprocess
import threading
from importlib import resources

import numpy as np
import pytest
from compilation.systems import HANGING, PENDULUM, implicit_decay, pendulum
from tasks import task_of

from grisaille.cache import Cache
from grisaille.compilation import (
    Status,
    build_kernel,
    c_source,
    differentiate,
    find_compiler,
    kernel,
    require_compiled,
    tableau_source,
)
from grisaille.compilation.schemes import EXPLICIT, FROZEN_EXPLICIT, IMPLICIT
from grisaille.errors import CompilationError, DataError

POINT = (0.0, np.array([0.3, -6.2, 0.1, 0.2]), np.zeros(0), np.ones(2), np.array(PENDULUM))


def test_shapes_and_values_of_the_callables():
    k = build_kernel(pendulum(), sensitive=True)
    assert (k.nx, k.nz, k.nu, k.np, k.nc, k.ny) == (4, 0, 2, 4, 2, 6)
    shapes = [f(*POINT).shape for f in (k.F, k.J, k.C, k.CJ, k.O, k.FP, k.CP, k.OJ, k.OP)]
    assert shapes == [(4,), (4, 4), (2,), (2, 4), (6,), (4, 4), (2, 4), (6, 4), (6, 4)]
    np.testing.assert_allclose(k.C(*POINT), [0.3**2 + 6.2**2 - 6.25**2, 0.3 * 0.1 - 6.2 * 0.2])
    np.testing.assert_allclose(k.CJ(*POINT), [[0.6, -12.4, 0, 0], [0.1, 0.2, 0.3, -6.2]])


def test_matrices_stay_two_dimensional_when_small_and_empty_when_there_is_nothing():
    k = build_kernel(implicit_decay(), sensitive=True)
    point = (0.5, np.array([1.2]), np.array([0.8]), np.array([0.4]), np.array([0.9]))
    assert k.OP(*point).shape == (1, 1) and k.C(*point).shape == (0,) and k.CJ(*point).shape == (0, 1)
    np.testing.assert_allclose(k.F(*point), [-0.8, 0.8 + 0.9 * 0.8**3 - 1.2 + 0.4 * 0.5])


def test_answers_belong_to_the_caller_and_to_his_thread():
    k = build_kernel(pendulum())
    first = k.F(*POINT)
    kept = first.copy()
    k.F(1.0, POINT[1] * 2, *POINT[2:])
    np.testing.assert_array_equal(first, kept)
    wrong: list[int] = []

    def many(scale: float) -> None:
        x = POINT[1] * scale
        expected = k.F(0.0, x, *POINT[2:])
        wrong.extend(i for i in range(3000) if not np.array_equal(k.F(0.0, x, *POINT[2:]), expected))

    threads = [threading.Thread(target=many, args=(scale,)) for scale in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_parameter_derivatives_are_there_on_request_only(monkeypatch):
    monkeypatch.setattr(kernel, "_known", Cache())
    with pytest.raises(CompilationError, match="FP is a parameter derivative; build the kernel with sensitive=True"):
        build_kernel(pendulum()).FP(*POINT)


def test_kernels_are_remembered(monkeypatch):
    monkeypatch.setattr(kernel, "_known", Cache())
    system = pendulum()
    plain = build_kernel(system)
    assert build_kernel(system) is plain
    sensitive = build_kernel(system, sensitive=True)
    assert sensitive is not plain
    assert build_kernel(system) is sensitive, "it gives the same digits"


@pytest.mark.parametrize(
    ("switch", "words"),
    [
        ("", r"no C compiler was found\. Install one with: pip install \"grisaille\[compiler\]\""),
        ("none", r"GRISAILLE_COMPILER=none forbids .* unset it\. .*pip install \"grisaille\[compiler\]\""),
    ],
)
def test_without_a_compiler_only_what_must_be_built_is_an_error(monkeypatch, tmp_path, switch, words):
    monkeypatch.setattr(kernel, "_known", Cache())
    monkeypatch.setenv("GRISAILLE_COMPILER", switch)
    monkeypatch.setattr("grisaille.compilation.shared_library.find_compiler", lambda: None)
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "empty"))
    k = build_kernel(pendulum())
    assert k.F(*POINT).shape == (4,)
    with pytest.raises(CompilationError, match=words):
        k.call(EXPLICIT, task_of(k, 0.0, 1.0, p=PENDULUM, x=HANGING))


@pytest.mark.parametrize(("compiled", "error"), [(False, CompilationError), ("yes", DataError)])
def test_what_asks_for_interpreted_models_is_refused(compiled, error):
    require_compiled(None)
    require_compiled(True)
    with pytest.raises(error, match="compiled"):
        require_compiled(compiled)


@pytest.mark.parametrize("name", ["x*/ int injected = 1; /*", 'x; system("injected")', "injected\n#include <x>", "é"])
def test_no_name_of_the_users_reaches_c(name):
    system = implicit_decay(p=name, x=name + "x", u=name + "u")
    text = c_source(system, True, differentiate(system, sensitive=True))
    plain = implicit_decay()
    assert text == c_source(plain, True, differentiate(plain, sensitive=True))
    assert "injected" not in text and "system" not in text and text.isascii()


@pytest.mark.parametrize("system", [pendulum(), implicit_decay()])
def test_integrators_compile_without_a_warning(system, tmp_path):
    """Generated functions need not use all that they are given."""
    text = c_source(system, True, differentiate(system, sensitive=True)) + tableau_source(EXPLICIT.tableaux)
    text += "".join(f'#include "{scheme.header}.h"\n' for scheme in (EXPLICIT, IMPLICIT, FROZEN_EXPLICIT))
    (tmp_path / "model.c").write_text(text)
    strict = ["-Wall", "-Wextra", "-Werror", *(f"-Wno-unused-{what}" for what in ("function", "parameter", "variable"))]
    headers = str(resources.files("grisaille.compilation") / "kernels")
    command = [*find_compiler().command, "-std=c99", "-fsyntax-only", *strict, f"-I{headers}", "model.c"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_the_library_integrates():
    k = build_kernel(pendulum(), sensitive=True)
    start = np.array([6.25 * np.sin(0.5), -6.25 * np.cos(0.5), 0.0, 0.0])
    for scheme in (EXPLICIT, IMPLICIT):
        task = task_of(k, 0.0, 2.0, p=PENDULUM, x=start, dp=[[0, 0, 0, 1.0]], times=[0.0, 1.0, 2.0], rtol=1e-9)
        assert k.work_size(scheme, 1) >= k.work_size(scheme, 0) > 0
        k.call(scheme, task)
        assert Status(task.status) is Status.DONE and task.written == 3 and task.steps > 0
        np.testing.assert_allclose(task.y[:, 0] ** 2 + task.y[:, 1] ** 2, 6.25**2, rtol=1e-10)
        np.testing.assert_allclose(task.y[0, :4], start, atol=1e-12)
        assert np.abs(task.sy[2]).max() > 0
