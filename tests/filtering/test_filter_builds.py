"""Filters that are built soon, and built again for speed where they have run long: the same digits."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.compilation import CSource
from grisaille.compilation.kalman import build_filter, builds, program, run_forward, run_reverse
from grisaille.estimators import build_problem

TIMES = np.linspace(0.0, 3.0, 13)


class Spring(gr.Model):
    """A hardening spring, whose length is an algebraic unknown: z + c z³ = x + 0.2 w."""

    a, c = gr.Parameter(0.9), gr.Parameter(0.3)
    x, z = gr.Variable(start=2.0), gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.4)
    y = gr.Output(z + 0.1 * x, noise=0.05)
    equations = [der(x) == -a * z + w, z + c * z**3 == x + 0.2 * w]


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """No build in the cache, and the levels of optimization that users have."""
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GRISAILLE_OPTIMIZATION", raising=False)
    monkeypatch.delenv("GRISAILLE_BUILD", raising=False)


def passing(filter="extended"):
    """A filter, and what a pass of it is given."""
    record = gr.Experiment(TIMES, {}, {"y": np.exp(-0.5 * TIMES)})
    problem = build_problem(Spring(), record, ["a", "c"], gr.KalmanML(filter=filter, substeps=2))
    case = problem.cases[0]
    q, dq, start = case.runner.posed(case.own(problem.guess), True)
    found = case.runner.filter_on(case.discretisation, problem.guess)
    given = found.prepared(q)
    return found, given, q, found.start(given, q, dq, start.x, start.z), dq


def arrays_of(result):
    names = ("s", "ds", "base", "information", "innovations", "variances", "slopes", "kept", "lq")
    return {n: a for n in names if (a := getattr(result, n)) is not None}


def require_equal(one, other):
    assert len(one) > 4
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.parametrize(("filter", "short"), [("extended", 10**9), ("extended", 0), ("unscented", 0)])
def test_a_draft_has_the_digits_of_the_final_build(filter, short, monkeypatch):
    monkeypatch.setattr(program, "MAX_UNROLLED_PRODUCTS", short)
    found, given, q, s, dq = passing(filter)
    of = found.program
    instructions, operations = 5 * of.text_length, of.instructions
    for source, run in (
        (of.forward_source(), lambda library: run_forward(library, given, q, s[0], s[1:], dq, True)),
        (of.reverse_source(), lambda library: run_reverse(library, given, q, s[0])),
    ):
        results = {}
        for build in ("linked", "whole"):
            monkeypatch.setenv("GRISAILLE_BUILD", build)
            results[build] = build_filter(CSource(source, instructions, often=True), operations)
        assert results["linked"].path != results["whole"].path
        require_equal(*(arrays_of(run(library)) for library in results.values()))


def test_a_filter_is_built_for_speed_where_passes_are_many(monkeypatch):
    found, given, q, s, dq = passing()
    monkeypatch.setattr(builds, "MANY", 0.0)
    monkeypatch.setattr(builds, "PER_INSTRUCTION", 0.0)
    of = found.program
    made = []
    monkeypatch.setattr(
        builds, "build_linked", lambda parts, build=builds.build_linked: made.append(parts) or build(parts)
    )
    library = build_filter(CSource(of.forward_source(), of.text_length, often=True), of.instructions)
    draft = library.path
    first = run_forward(library, given, q, s[0], s[1:], dq, True)
    assert [part.is_draft for (part,) in made] == [True, False]
    assert library.path != draft
    require_equal(arrays_of(first), arrays_of(run_forward(library, given, q, s[0], s[1:], dq, True)))
    assert build_filter(CSource(of.forward_source(), of.text_length, often=True), of.instructions).path == library.path
    assert [part.is_draft for (part,) in made] == [True, False, False]
