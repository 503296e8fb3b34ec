"""Small texts as a language reference and compilers' test suites hold them, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr

T = np.array([0.0, 0.11, 0.4, 0.73, 1.0])

TEXTS = {
    "an Integer that gives a derivative": (
        "Integer i; Real x(start = 0, fixed = true); equation i = integer(2 * time); der(x) = i;",
        {"x": np.maximum(T - 0.5, 0), "i": np.floor(2 * T)},
    ),
    "a whole number that is touched and not passed": (
        "Integer i; Real y; equation i = integer(10 * sin(10 * time) + 30); y = mod(i, 7);",
        {"i": np.floor(10 * np.sin(10 * T) + 30), "y": np.floor(10 * np.sin(10 * T) + 30) % 7},
    ),
    "a range as start values": (
        "Real d[3](start = -1:1, each fixed = true); equation der(d) = fill(2, 3);",
        {f"d[{k + 1}]": k - 1 + 2 * T for k in range(3)},
    ),
    "iterators of array()": (
        "Real a[3], b[2, 3]; equation a = array(time * i for i in 1:3); b = array(10 * i + j for j in 1:3, i in 1:2);",
        {"a[2]": 2 * T, "b[2,3]": 23 + 0 * T},
    ),
    "branches with entries and with arrays": (
        "function f input Real u; output Real y[2]; algorithm y := {u, -u}; end f; Real x[2]; equation "
        "if time > 0.5 then x[2] = cos(time); x[1] = sin(time); elseif time > 0.3 then x = f(time); else x = {1, 2}; "
        "end if;",
        {"x[1]": np.where(T > 0.5, np.sin(T), np.where(T > 0.3, T, 1)),
         "x[2]": np.where(T > 0.5, np.cos(T), np.where(T > 0.3, -T, 2))},
    ),
    "an algorithm that leaves a variable at its start": (
        "Real x; Real y; Real z(start = 3); equation x = time; "
        "algorithm if x > 0.5 then y := 1; end if; if x < 0.5 then z := y; end if;",
        {"y": 1.0 * (T > 0.5), "z": np.where(T < 0.5, 0, 3)},
    ),
    "entries that are read before they are set": (
        "Real r[2]; discrete Real k; Real s; algorithm r[1] := 1 + time; s := sum(r); "
        "if time > 0.5 then r[2] := 2; end if; k := sum(r) - r[1];",
        {"s": 1 + T, "k": 2.0 * (T > 0.5), "r[2]": 2.0 * (T > 0.5)},
    ),
    "a long loop that a parameter ends": (
        "parameter Real eps = 1e-3; Real s; algorithm s := 0; while exp(-0.01 * s) >= eps loop s := s + 1; end while;",
        {"s": np.full(5, 691.0)},
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The text was read")
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_means_what_the_specification_says(text: str) -> None:
    body, expected = TEXTS[text]
    run = gr.simulate(gr.read_modelica(f"model M\n{body}\nend M;\n"), T, compiled=False)
    for name, values in expected.items():
        assert np.broadcast_to(run[name].values, 5) == pytest.approx(values, abs=1e-6), name


def test_a_start_that_is_assumed_in_an_algorithm_is_said() -> None:
    with pytest.warns(UserWarning, match="line 1: an algorithm does not always give 'y' a value: it is its start"):
        gr.read_modelica("model M Real y; algorithm if time > 0.5 then y := 1; end if; end M;")
