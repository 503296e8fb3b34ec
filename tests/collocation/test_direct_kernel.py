"""Compiled functions of elements: equal to the last bit, and taken when they pay."""

from __future__ import annotations

import numpy as np
import pytest
from collocation.direct_problems import Buffer, buffered, program

from grisaille.collocation.direct import RadauElements, element as direct_element, simulated_point

TIMES = np.linspace(0.0, 1.0, 9)


@pytest.fixture(scope="module")
def posed():
    record = buffered(TIMES)
    return lambda: program(Buffer(), record, ["c"])


def test_kernel_gives_the_same_bits(posed, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = posed()
    mesh = problem.transcribe(RadauElements())
    _, elements = mesh.arguments(simulated_point(mesh, problem.guess, problem.starts))
    function = mesh.functions.element
    plain = function.values(elements, mesh.element_data)
    monkeypatch.setattr(direct_element, "COMPILE_AFTER_ELEMENTS", 0)
    again = [function.values(elements, mesh.element_data) for _ in range(2)]
    assert function._kernels["values"] is not None
    for found in again:
        for mine, theirs in zip(found, plain, strict=True):
            np.testing.assert_array_equal(mine, theirs)
