"""``gr.sensitivity``: closed forms, differences, ranking and collinearity."""

from __future__ import annotations

import numpy as np
import pytest
from assessment.lines import Line, X

import grisaille as gr
from grisaille.errors import DataError, EstimationError


class Decay(gr.Model):
    a, b, spare = gr.Parameter(0.7, "1/s"), gr.Parameter(1.0), gr.Parameter(3.0)
    x = gr.Variable(2.0, "m")
    y, twice = gr.Output(x, unit="m"), gr.Output(2 * b * x, noise=0.1)
    equations = [gr.der(x) == -a * x]


T = np.linspace(0, 3, 13)
PLAN = gr.Experiment(T, {}, {"y": np.ones(13), "twice": np.ones(13)})


def test_scaled_sensitivities_in_closed_form() -> None:
    found = gr.sensitivity(Decay(), PLAN, ["a", "start(x)", "b"])
    x = 2 * np.exp(-0.7 * T)
    assert np.allclose(found.data["y"].sel(parameter="a"), -0.7 * T * x, atol=1e-5)
    assert np.allclose(found.data["y"].sel(parameter="start(x)"), x, atol=1e-5)
    assert np.allclose(found.data["twice"].sel(parameter="b"), 2 * x, atol=1e-5)
    assert np.allclose(found.data["y"].sel(parameter="b"), 0, atol=1e-12)


def test_ranking_scales_outputs_by_their_noise_or_spread() -> None:
    found = gr.sensitivity(Decay(), PLAN)
    x = 2 * np.exp(-0.7 * T)
    spread = np.std(x)
    size = np.sqrt(np.mean(np.concatenate([(-0.7 * T * x / spread) ** 2, (-1.4 * T * x / 0.1) ** 2])))
    assert found.table.loc["a", "size"] == pytest.approx(size, rel=1e-4)
    assert found.parameters[-1] == "spare"
    assert "no output depends on spare" in str(found)


def test_collinearity() -> None:
    """Columns 1 and x on a grid symmetric about zero are orthogonal; 1 and 1 + ε x nearly parallel."""

    class Shifted(gr.Model):
        p, q = gr.Parameter(1.0), gr.Parameter(1.0)
        x = gr.Input()
        y = gr.Output(p + q * x)

    grid = np.linspace(-1, 1, 11)
    far = gr.sensitivity(Shifted(), gr.Experiment(inputs={"x": grid}, outputs={"y": grid}))
    near = gr.sensitivity(Shifted(), gr.Experiment(inputs={"x": 50 + grid}, outputs={"y": grid}))
    assert far.collinearity() == pytest.approx(1.0)
    columns = np.column_stack([np.ones(11), 50 + grid])
    columns /= np.linalg.norm(columns, axis=0)
    assert near.collinearity() == pytest.approx(1 / np.sqrt(np.linalg.eigvalsh(columns.T @ columns)[0]), rel=1e-6)
    assert near.pairs.loc["p", "q"] == pytest.approx(near.collinearity(["p", "q"]))
    assert "q and p move the outputs alike" in str(near)


def test_a_zero_parameter_is_scaled_by_one() -> None:
    found = gr.sensitivity(Line(), gr.Experiment(inputs={"x": X}, outputs={"y": X}))
    assert found.table.loc["q", "scale"] == 1.0
    assert np.allclose(found.data["y"].sel(parameter="q"), X)


def test_constants_of_the_experiment_count() -> None:
    found = gr.sensitivity(Decay(), PLAN.replace(constants={"a": 0.2}))
    assert "a" not in found.parameters
    x = 2 * np.exp(-0.2 * T)
    assert np.allclose(found.data["twice"].sel(parameter="b"), 2 * x, atol=1e-5)


def test_mistakes() -> None:
    with pytest.raises(DataError, match=r"one gr\.Experiment"):
        gr.sensitivity(Decay(), [PLAN])
    with pytest.raises(EstimationError, match="no parameter or start called 'z'"):
        gr.sensitivity(Decay(), PLAN, ["z"])
    found = gr.sensitivity(Decay(), PLAN, ["a"])
    with pytest.raises(EstimationError, match="no sensitivity to 'b'"):
        found.collinearity(["b"])
