"""Integrators are compiled one by one, when they are needed, and once for a run and a fit."""

from __future__ import annotations

import numpy as np
import pytest
from compilation.systems import HANGING, PENDULUM, implicit_decay, pendulum
from tasks import task_of

import grisaille as gr
from grisaille import der
from grisaille.cache import Cache
from grisaille.compilation import Status, build_kernel, compiler, kernel, shared_library
from grisaille.compilation.schemes import EXPLICIT, FROZEN_EXPLICIT, IMPLICIT
from grisaille.errors import CompilationError

TIMES = np.linspace(0.0, 4.0, 41)


class Oscillator(gr.Model):
    k = gr.Parameter(4.0, bounds=(1.0, 9.0))
    d = gr.Parameter(0.3, bounds=(0.0, 2.0))
    x = gr.Variable(1.0)
    v = gr.Variable(0.0)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == v, der(v) == -k * x - d * v]


@pytest.fixture
def built(monkeypatch, tmp_path):
    """The headers that compiled texts end with, or what else they are, from an empty cache on; each in order."""
    found: list[str] = []
    monkeypatch.setattr(kernel, "_known", Cache())
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))

    def watched(once):
        def build(self, sources, main, flags, kept=None):
            _, *includes = sources[main].rsplit('#include "', 1)
            found.append(includes[0].split('"')[0] if includes else "functions")
            found.sort()
            return once(self, sources, main, flags, kept)

        return build

    for name in ("build", "compile"):
        monkeypatch.setattr(compiler.Compiler, name, watched(getattr(compiler.Compiler, name)))
    return found


def has_derivatives(k: kernel.Kernel) -> bool:
    return "void gr_FP(void) {}" not in k.integrators.sources(EXPLICIT)[1].text


def test_a_run_and_a_fit_compile_each_integrator_once(built):
    run = gr.simulate(Oscillator(), TIMES)
    assert built == ["functions", "gr_explicit.h"]
    record = gr.Experiment(TIMES, {}, {"y": run["y"].values + 0.01 * np.cos(7.0 * TIMES)})
    gr.fit(Oscillator(), record, ["k", "d"], gr.OutputError(), progress=False)
    assert built == ["functions", "gr_explicit.h", "gr_rk4.h"]
    gr.simulate(Oscillator(), TIMES, sensitivities=["k"])
    gr.simulate(Oscillator(), TIMES, method="implicit")
    assert built == ["functions", "gr_explicit.h", "gr_implicit.h", "gr_rk4.h"]


def test_what_may_turn_out_stiff_has_both_methods_from_the_start(built):
    gr.simulate(Oscillator(), 2000.0 * TIMES)
    assert set(built) == {"functions", "gr_explicit.h", "gr_implicit.h"}


def test_one_text_with_derivatives_gives_the_numbers_of_one_without(monkeypatch):
    monkeypatch.setattr(kernel, "_known", Cache())
    both = [build_kernel(pendulum())]
    monkeypatch.setattr(kernel, "_known", Cache())
    monkeypatch.setattr(kernel, "MAX_INSTRUCTIONS_WITH_SENSITIVITIES", 0)
    both += [build_kernel(pendulum())]
    assert [has_derivatives(k) for k in both] == [True, False]
    for scheme, step in ((EXPLICIT, 0.0), (EXPLICIT, 0.01), (IMPLICIT, 0.0), (IMPLICIT, 0.05)):
        runs = [task_of(k, 0.0, 2.0, p=PENDULUM, x=HANGING, times=[1.0, 2.0], rtol=1e-8, fixed_step=step) for k in both]
        for k, task in zip(both, runs, strict=True):
            k.call(scheme, task)
        assert runs[0].status == Status.DONE and runs[0].steps == runs[1].steps > 0
        assert np.array_equal(runs[0].y, runs[1].y) and np.array_equal(runs[0].x, runs[1].x)


def test_many_instructions_are_not_compiled_with_derivatives_unasked(monkeypatch):
    monkeypatch.setattr(kernel, "_known", Cache())
    monkeypatch.setattr(kernel, "MAX_INSTRUCTIONS_WITH_SENSITIVITIES", 1)
    assert not has_derivatives(build_kernel(implicit_decay()))
    assert has_derivatives(build_kernel(implicit_decay(), sensitive=True))


def test_a_compiler_that_fails_is_told_where_it_is_needed(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel, "_known", Cache())
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))
    k = build_kernel(pendulum())
    found = compiler.find_compiler()
    with monkeypatch.context() as broken:
        broken.setattr(
            shared_library, "find_compiler", lambda: compiler.Compiler((*found.command, "--absent"), "broken")
        )
        with pytest.raises(CompilationError, match="Building generated code failed"):
            k.build(EXPLICIT, FROZEN_EXPLICIT)
        with pytest.raises(CompilationError, match="Building generated code failed"):
            k.work_size(IMPLICIT, 0)
    assert k.work_size(FROZEN_EXPLICIT, 0) > 0
