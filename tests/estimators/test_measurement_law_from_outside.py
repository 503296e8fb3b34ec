"""A law of measurements that the package does not know: drawn, fitted, judged and saved like one of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import grisaille as gr


@dataclass(frozen=True)
class LargestOfMany(gr.laws.Law):
    """Gumbel's law by its most likely value."""

    top: float | None
    scale: float

    location = "top"

    def formula(self, value):
        z = (value - self.top) / self.scale
        return -z - np.exp(-z) - np.log(self.scale)


class Flood(gr.Model):
    """The largest flow of each year, with a trend."""

    level, trend, s = gr.Parameter(100.0), gr.Parameter(0.0), gr.Parameter(20.0, bounds=(0.1, 500.0))
    year = gr.Input()
    usual = gr.Variable()
    flow = gr.Output(usual, distribution=LargestOfMany(scale=s))
    equations = [usual == level + trend * year]


def test_a_law_from_outside_is_a_law_of_measurements_everywhere(tmp_path: Path) -> None:
    years, rng = np.arange(80.0), np.random.default_rng(1)
    data = gr.Experiment(
        inputs={"year": years}, outputs={"flow": stats.gumbel_r(150 + 0.8 * years, 25.0).rvs(random_state=rng)}
    )
    fit = gr.fit(Flood(), data, ["level", "trend", "s"], progress=False)
    assert fit.converged
    flows, found = data.outputs["flow"].values, [float(fit[n]) for n in ("level", "trend", "s")]

    def log_likelihood(p: np.ndarray) -> float:
        return float(np.sum(stats.gumbel_r.logpdf(flows, p[0] + p[1] * years, p[2])))

    theta = np.array(found)
    assert fit.log_likelihood == pytest.approx(log_likelihood(theta), rel=1e-9)
    J = np.stack([np.ones(80), years], axis=1)  # Gumbel's information: 1/s² of the location, (1 − γ)/s² with the scale
    gamma, s = float(np.euler_gamma), theta[2]
    cross = np.sum(J, axis=0)[:, None] * (gamma - 1)
    whole = np.block([[J.T @ J, cross], [cross.T, np.array([[80 * (np.pi**2 / 6 + (1 - gamma) ** 2)]])]]) / s**2
    errors = np.sqrt(np.diag(np.linalg.inv(whole)))
    assert fit.parameters["std_error"].to_numpy(dtype=float) == pytest.approx(errors, rel=1e-4)
    for k, step in enumerate(1e-3 * errors):
        moved = np.zeros(3)
        moved[k] = step
        slope = (log_likelihood(theta + moved) - log_likelihood(theta - moved)) / (2 * step)
        assert abs(slope * errors[k]) < 1e-4
    again = gr.load(fit.save(tmp_path / "flood.nc") or tmp_path / "flood.nc")
    assert float(again["trend"]) == float(fit["trend"])
    assert again.log_likelihood == fit.log_likelihood
