"""Collocation where something is missing or in the way: bounds of states, other outputs, blind ones, priors."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.collocation import joint_root
from grisaille.errors import EstimationError
from grisaille.estimators import build_problem

TIMES = np.linspace(0.0, 10.0, 41)


class Chain(gr.Model):
    a, k = gr.Parameter(0.6, bounds=(0.01, 10.0)), gr.Parameter(0.5, bounds=(0.01, 5.0))
    x, z = gr.Variable(start=2.0), gr.Variable(start=1.0)
    w, v = gr.Disturbance(gr.spectra.white(), scale=0.1), gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.1)
    square = gr.Output(a**2, noise=0.05)
    equations = [der(x) == -a * x + 0.2 * k * z + w, der(z) == -k * z + v]


class Bounded(Chain):
    x = gr.Variable(start=2.0, bounds=(0.0, None))
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -Chain.a * x + 0.2 * Chain.k * Chain.z + Chain.w, Chain.equations[1]]


@pytest.fixture(scope="module")
def record() -> gr.Experiment:
    found = gr.simulate(Chain(), TIMES, realizations=1, seed=3, noise=True)
    return gr.Experiment(TIMES, outputs={"y": found["y"].values.ravel()}, name="run")


def test_gradient_of_the_marginal_likelihood_with_states_on_their_bounds(record: gr.Experiment) -> None:
    problem = build_problem(Bounded(), [record], ["a"], gr.Collocation(criterion="laplace", refine=0))
    at = problem.evaluate(np.array([0.7]))
    assert any((h & ~p.held(g)).any() for h, p, g in zip(
        at.solution.at.held, problem.trajectories.programs, at.solution.at.given, strict=True
    ))  # fmt: skip
    h = 1e-5
    moved = [problem.evaluate(np.array([0.7 + s * h])).value for s in (1, -1)]
    assert at.slope[0] == pytest.approx((moved[0] - moved[1]) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("transcription", ["spline", "direct"])
def test_bands_end_at_the_bounds_of_their_states(record: gr.Experiment, transcription: str) -> None:
    free, bounded = (
        gr.fit(
            m(), record, ["a"], gr.Collocation(criterion="amle", transcription=transcription), progress=False
        ).states()["x"]
        for m in (Chain, Bounded)
    )
    assert float(free.sel(statistic="lower").min()) < -0.05
    assert float(bounded.sel(statistic="lower").min()) >= -1e-9
    high = bounded.sel(statistic="mean") > 0.5
    np.testing.assert_allclose(
        bounded.sel(statistic="lower").values[high.values], free.sel(statistic="lower").values[high.values], atol=0.05
    )


def test_direct_marginal_likelihood_says_that_it_does_not_keep_bounds(record: gr.Experiment) -> None:
    method = gr.Collocation(criterion="laplace", transcription="direct")
    noted = gr.fit(Bounded(), record, ["a"], method, progress=False).notes
    assert [n for n in noted if n.startswith("bounds: the path leaves the bounds of x,") and "'amle'" in n]
    assert not [n for n in gr.fit(Chain(), record, ["a"], method, progress=False).notes if n.startswith("bounds:")]


def test_intensities_where_experiments_have_other_outputs(record: gr.Experiment) -> None:
    other = gr.Experiment(np.arange(2.0), outputs={"square": np.array([0.4, 0.35])}, name="other")
    alone = gr.fit(Chain(), record, ["a", "scale(w)"], gr.Collocation(criterion="amle"), progress=False)
    fit = gr.fit(Chain(), [record, other], ["a", "scale(w)"], gr.Collocation(criterion="amle"), progress=False)
    assert fit.converged
    assert fit["scale(w)"] == pytest.approx(float(alone["scale(w)"]), rel=0.3)
    assert fit["a"].std_error < alone["a"].std_error


def test_an_output_that_sees_no_disturbance_decides_no_scale(record: gr.Experiment) -> None:
    both = gr.Experiment(
        outputs={"y": (TIMES, record.measurements("y").values), "square": ([0.0], [0.36])}, t0=0.0
    )  # fmt: skip
    with pytest.raises(EstimationError, match=r"scale\([wv]\) cannot be found from the misfit .* criterion='laplace'"):
        gr.fit(Chain(), both, ["a"], gr.Collocation(criterion="amle", intensities="estimate"), progress=False)


def test_priors_on_scales_are_refused_where_they_cannot_count(record: gr.Experiment) -> None:
    with pytest.raises(EstimationError, match=r"known of scale\(w\) has no place in criterion='amle'"):
        gr.fit(
            Chain(), record, ["a", "scale(w)"], gr.Collocation(criterion="amle"),
            priors={"scale(w)": gr.LogNormal(0.5, 0.001)}, progress=False,
        )  # fmt: skip


@pytest.mark.parametrize("option", [{"knots": 20}, {"order": 3}, {"trajectories": {"x": 1.0}}, {"quadrature": 2}])
def test_direct_collocation_refuses_options_of_splines(record: gr.Experiment, option: dict) -> None:
    with pytest.raises(EstimationError, match=f"asked for: {next(iter(option))}=.* belongs to splines"):
        gr.fit(Chain(), record, ["a"], gr.Collocation(transcription="direct", **option), progress=False)


def test_common_roots_are_found_together() -> None:
    """Each condition depends on the other's argument nearly as much as on its own."""

    def g(x: np.ndarray) -> np.ndarray:
        return np.array([-np.tanh(x[0] + 0.9 * x[1] - 0.1), -np.tanh(0.9 * x[0] + x[1] + 0.05)])

    found, met = joint_root(g, np.zeros(2), 1e-6)
    assert met
    assert np.abs(g(found)).max() < 1e-6


def test_roots_of_another_kind_are_not_taken() -> None:
    assert not joint_root(lambda x: np.array([x[0] - 0.1, -x[1]]), np.zeros(2), 1e-6)[1]
    assert not joint_root(lambda x: np.array([1.0 + x[0] ** 2, -x[1]]), np.ones(2), 1e-6)[1]
