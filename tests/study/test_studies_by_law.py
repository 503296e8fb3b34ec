"""Studies of models whose outputs declare laws: data that the laws can give, the same when they are resumed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import EstimationError

DOSE = np.linspace(0.2, 4.0, 30)
rng = np.random.default_rng(7)
OPTIONS = {"executor": "serial"}


class Detector(gr.Model):
    """Counts of a detector that saturates, and its voltage."""

    top, half = gr.Parameter(40.0), gr.Parameter(1.0)
    dose = gr.Input()
    rate = gr.Variable()
    counts = gr.Output(rate, distribution=gr.laws.Poisson())
    volts = gr.Output(0.1 * rate)
    equations = [rate == top * dose / (half + dose)]


@pytest.fixture(scope="module")
def data() -> gr.Experiment:
    mean = 40 * DOSE / (1 + DOSE)
    outputs = {"counts": rng.poisson(mean), "volts": 0.1 * mean + 0.2 * rng.normal(size=30)}
    return gr.Experiment(inputs={"dose": DOSE}, outputs=outputs, name="A")


@pytest.fixture(scope="module")
def fit(data: gr.Experiment) -> gr.Fit:
    return gr.fit(Detector(), data, ["top", "half"])


def test_a_plan_needs_no_values_that_its_laws_can_give(tmp_path: Path) -> None:
    plan = gr.Experiment(inputs={"dose": DOSE}, outputs={"counts": np.full(30, 0.5), "volts": np.ones(30)})
    store = tmp_path / "study"
    first = gr.monte_carlo(Detector(), plan, ["top", "half"], runs=2, noise={"volts": 0.2}, store=store, **OPTIONS)
    more = gr.monte_carlo(Detector(), plan, ["top", "half"], runs=3, noise={"volts": 0.2}, store=store, **OPTIONS)
    assert more.counts["converged"] == 3
    assert more.table.iloc[:2].equals(first.table)
    assert more.truth.to_dict() == {"top": 40.0, "half": 1.0, "noise(volts)": 0.2}
    drawn = more.data(1)[0].outputs["counts"].values
    assert (drawn == np.round(drawn)).all() and (drawn >= 0).all()
    simulated = gr.simulate(Detector().with_outputs({"volts": "volts"}, noise=0.2), np.arange(30.0), {"dose": DOSE},
                            noise=True, seed=int(more.table["seed"].iloc[1]))  # fmt: skip
    np.testing.assert_array_equal(drawn, simulated["counts"])


def test_noise_is_for_outputs_without_a_law(data: gr.Experiment) -> None:
    with pytest.raises(EstimationError, match="deviation to output 'counts', which is measured by the law Poisson"):
        gr.monte_carlo(Detector(), data, ["top"], runs=1, noise={"counts": 1.0, "volts": 0.1}, **OPTIONS)


def test_bootstraps_draw_by_the_laws_of_a_fit(fit: gr.Fit, tmp_path: Path) -> None:
    first = gr.bootstrap(fit, runs=2, store=tmp_path / "b", **OPTIONS)
    more = gr.bootstrap(fit, runs=12, store=tmp_path / "b", **OPTIONS)
    assert more.table.iloc[:2].equals(first.table)
    drawn = more.data(5)[0].outputs["counts"].values
    assert (drawn == np.round(drawn)).all()
    spread = np.sqrt(np.diag(more.covariance.loc[list(fit.names), list(fit.names)]))
    assert (np.abs(np.log(spread / fit.std_errors)) < 0.7).all()


def test_residuals_of_counts_are_not_drawn(fit: gr.Fit) -> None:
    with pytest.raises(EstimationError, match=r"output 'counts' is measured by the law Poisson.*use kind='parametric'"):
        gr.bootstrap(fit, runs=2, kind="residual", **OPTIONS)


def test_multistarts_find_the_same_likelihood(fit: gr.Fit, data: gr.Experiment) -> None:
    ranges = {"top": (10.0, 90.0), "half": (0.2, 4.0)}
    starts = gr.multistart(Detector(), data, ["top", "half"], starts=2, ranges=ranges, **OPTIONS)
    assert starts.best.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-6)


def test_a_saved_fit_works_as_the_fit_itself(fit: gr.Fit, data: gr.Experiment, tmp_path: Path) -> None:
    fit.save(tmp_path / "fit.nc")
    loaded = gr.load(tmp_path / "fit.nc")
    assert str(loaded) == str(fit)
    assert loaded.intervals(method="profile").equals(fit.intervals(method="profile"))
    new = data.replace(outputs={"counts": data.outputs["counts"].values[::-1] + 1.0, "volts": np.ones(30)})
    assert str(loaded.validate(new)) == str(fit.validate(new))
    assert (
        gr.bootstrap(loaded, runs=1, **OPTIONS)
        .table.iloc[0, :3]
        .equals(gr.bootstrap(fit, runs=1, **OPTIONS).table.iloc[0, :3])
    )


class Beside(gr.Model):
    """The output with a law is the second one."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    h = gr.Variable(1.0)
    level = gr.Output(h, noise=0.05)
    clicks = gr.Output(30 * h, distribution=gr.laws.Poisson())
    equations = [gr.der(h) == -k * h]


def test_the_law_is_named_wherever_its_output_stands() -> None:
    t, rng = np.linspace(0.0, 3.0, 12), np.random.default_rng(4)
    seen = {"level": np.exp(-0.5 * t) + 0.05 * rng.standard_normal(12), "clicks": rng.poisson(30 * np.exp(-0.5 * t))}
    fit = gr.fit(Beside(), gr.Experiment(t, {}, seen), ["k"])
    with pytest.raises(EstimationError, match="output 'clicks' is measured by the law Poisson"):
        gr.bootstrap(fit, runs=2, kind="residual", **OPTIONS)
