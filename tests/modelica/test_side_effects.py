"""Random numbers, Fourier transforms, and functions that do more than give results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from modelica.texts import model

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.model import Name
from grisaille.model.lowering import evaluate
from grisaille.modelica import Calling, FunctionLibrary

MOST = 2**64 - 1
GENERATOR = "Modelica.Math.Random.Generators.Xorshift1024star.random"
FFT = "Modelica.Math.FastFourierTransform.Internal.rawRealFFT"


def call(name: str, *arguments: object) -> object:
    return FunctionLibrary([]).call(Calling(0, name, [], {}), [*arguments], {})


def signed(half: int) -> int:
    return half - 2**32 if half >> 31 else half


def drawn(words: list[int], last: int) -> tuple[float, list[int], int]:
    """One step of xorshift1024* on Python's own whole numbers."""
    here = (last + 1) % 16
    older, newer = words[last % 16], words[here]
    newer ^= (newer << 31) & MOST
    word = newer ^ (newer >> 11) ^ older ^ (older >> 30)
    words = [*words[:here], word, *words[here + 1 :]]
    product = (word * 1181783497276652981) & MOST
    return (product - 2**64 if product >> 63 else product) * 2.0**-64 + 0.5, words, here


def test_the_large_generator_is_exact_settled_and_as_formulas() -> None:
    words = [(0x9E3779B97F4A7C15 * (k + 1)) & MOST for k in range(16)]
    last = 14 + 16 * 3  # any Integer says where it is on the ring
    state = np.array([signed(h) for w in words for h in (w & 0xFFFFFFFF, w >> 32)] + [last], dtype=object)
    number, following = call(GENERATOR, np.array([Name(f"s{k}") for k in range(33)], dtype=object))
    for _ in range(3):
        found = evaluate([number, *following], {f"s{k}": float(v) for k, v in enumerate(state)})
        expected, words, last = drawn(words, last)
        settled, state = call(GENERATOR, state)
        assert found[0] == settled == expected
        assert [int(v) for v in found[1:]] == list(state) and state[-1] == last
        assert [(state[k] % 2**32) | (state[k + 1] % 2**32) << 32 for k in range(0, 32, 2)] == words


def test_the_transform_of_numbers_and_of_formulas_is_that_of_numpy() -> None:
    u = np.random.default_rng(3).normal(size=12)
    expected = np.fft.rfft(u)
    info, sizes, angles = call(FFT, np.array([float(v) for v in u], dtype=object))
    of_names = call(FFT, np.array([Name(f"u{k}") for k in range(12)], dtype=object))
    found = evaluate([*of_names[1], *of_names[2]], {f"u{k}": float(v) for k, v in enumerate(u)})
    assert info == of_names[0] == 0
    np.testing.assert_allclose(np.array(sizes, float), abs(expected) / 7, rtol=1e-13)
    np.testing.assert_allclose(found[:7], abs(expected) / 7, rtol=1e-13)
    for phases in (np.array(angles, float), np.array(found[7:])):
        np.testing.assert_allclose(np.exp(1j * phases), expected / abs(expected), atol=1e-12)
    assert call(FFT, np.array([1.0, 2.0, 3.0], dtype=object))[0] == 1


DRAW = """
function 'Modelica.Math.Random.Utilities.impureRandom' input Integer id; output Real y;
external "C" y = ModelicaRandom_impureRandom_xorshift1024star(id);
end 'Modelica.Math.Random.Utilities.impureRandom';
function 'between' input Integer id; output Real y;
algorithm y := 2.0 * 'Modelica.Math.Random.Utilities.impureRandom'(id) - 1.0;
end 'between';
"""
BODY = """
Real x(start = 0.0, fixed = true); discrete Real n(start = 0.0, fixed = true); discrete Real u(start = 0.0);
equation der(x) = {};
algorithm when sample(0.5, 1.0) then u := 'between'(7); n := pre(n) + 1.0; end when;
"""


def test_what_a_hidden_state_decides_is_left_out_where_nothing_needs_it() -> None:
    with pytest.warns(UserWarning, match="'u' is drawn from a hidden state"):
        plain = gr.read_modelica(model(BODY.format("n"), DRAW))
    result = gr.simulate(plain, np.array([0.0, 2.0]))
    assert "u" not in result and result["n"].values[-1] == 2.0
    np.testing.assert_allclose(result["x"].values[-1], 2.0, rtol=1e-9)
    with pytest.raises(ModelError, match="impureRandom"):
        gr.read_modelica(model(BODY.format("n + u"), DRAW))


def test_statements_that_only_write_files_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    function = """
    function 'store' input Real a; output Boolean success;
    algorithm
      'Modelica.Utilities.Files.removeFile'("x.mat");
      success := 'Modelica.Utilities.Streams.writeRealMatrix'("x.mat", "A", {{a}}, false, "4");
    end 'store';
    """
    body = """
    discrete Real n(start = 0.0, fixed = true);
    algorithm when sample(0.5, 1.0) then n := pre(n) + 1.0; if n > 1.0 then 'store'(n); end if; end when;
    """
    with pytest.warns(UserWarning, match="'store' writes or removes a file: it is left out"):
        gr.read_modelica(model(body, function))
    assert not [*tmp_path.iterdir()]
    asked = body.replace("'store'(n);", "if 'store'(n) then n := 7.0; end if;")
    with pytest.raises(ModelError, match="removeFile"):
        gr.read_modelica(model(asked, function))
