"""Parameters of disturbances, and disturbances on coarse grids."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille.disturbance import build_process, sample_path
from grisaille_reproductions.abdalmoaty_disturbances import coarse_grid, disturbance_parameters, lost_gain
from grisaille_reproductions.two_masses import TwoMasses


def test_two_masses_have_index_three() -> None:
    assert gr.analyze(TwoMasses()).index == 3


def test_lines_lose_variance() -> None:
    """Mean square of paths joined by lines, against the formula."""
    shape = gr.spectra.resonance(frequency=4.0, damping=0.1)
    process = build_process(["w"], [shape], [1.0])
    w = sample_path(process, 0.4 * np.arange(400), 3, 60) @ process.C[0]
    a = np.linspace(0, 1, 21)
    joined = w[:, :-1, None] * (1 - a) + w[:, 1:, None] * a
    squares = np.trapezoid(joined**2, a, axis=2).mean()
    assert np.sqrt(np.mean(w**2) / squares) == pytest.approx(lost_gain(0.4), rel=0.01)
    assert lost_gain(1e-3) == pytest.approx(1.0, abs=1e-5)


def test_exact_paths_remove_the_bias_of_a_coarse_grid() -> None:
    """Both fits see the same data, so that their ratio is known far better than either."""
    result = coarse_grid("small", None, None, samples=500, realizations=24)
    gain = {how: float(str(result[f"Δ = 0.4 s, {how}: gain"].ours).split()[0]) for how in ("lines", "exact")}
    assert gain["lines"] / gain["exact"] == pytest.approx(lost_gain(0.4), rel=0.06)


def test_what_the_mean_tells_and_what_it_does_not() -> None:
    result = disturbance_parameters("small", None, None, samples=900, realizations=24)
    for quantity in ("pendulum, mean: k", "pendulum, mean: scale(w)", "two bodies, mean and variance: rho",
                     "two bodies, mean and variance: omega"):  # fmt: skip
        assert abs(result.ours(f"{quantity}, error in standard errors")) < 4
    assert result["two bodies, mean alone"].ours == "refused"
    assert "'rho', 'omega'" in result.notes[1] and "mean-variance" in result.notes[1]
