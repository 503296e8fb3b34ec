"""Dead times that are estimated: found by every estimator that simulates or filters, from afar; refused in words."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import grisaille as gr
from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities, Unknown
from grisaille.estimation import FitRequest
from grisaille.filtering import FilterOptions, FilterRunner
from grisaille.simulation.ensembles import EnsembleOptions, EnsembleRunner

TIMES = np.arange(0.0, 200.0)
TRUTH = {"k": 2.0, "T": 5.0, "tau": 3.0}


class Exchanger(gr.Model):
    """The temperature behind a pipe and a heat exchanger."""

    k = gr.Parameter(1.5)
    T = gr.Parameter(3.0)
    tau = gr.Parameter(1.0, bounds=(0.2, 9))
    s = gr.Parameter(0.1, bounds=(1e-4, 1))
    u = gr.Input()
    x = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.3), scale=s)
    equations = [gr.der(x) == (k * gr.delay(u, tau) - x) / T + w]
    y = gr.Output(x, noise=0.1)


@cache
def record(hold: str, scale: float) -> gr.Experiment:
    rng = np.random.default_rng(4)
    u = np.repeat(rng.choice([-1.0, 1.0], size=40), 5)
    run = gr.simulate(
        Exchanger(), TIMES, inputs={"u": u}, hold=hold, parameters={**TRUTH, "s": scale}, realizations=1, seed=3
    )
    y = run["y"].values.ravel() + 0.1 * rng.normal(size=len(TIMES))
    return gr.Experiment(TIMES, outputs={"y": y}, inputs={"u": u}, hold=hold)


METHODS = {
    "OutputError": (gr.OutputError(), 1e-9),
    "KalmanML": (gr.KalmanML(), 0.05),
    "SimulatedPEM": (gr.SimulatedPEM(realizations=100), 0.05),
    "Collocation": (gr.Collocation(), 0.05),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("hold", ["zoh", "foh"])
def test_found_within_its_errors_from_afar(name: str, hold: str) -> None:
    """The guess is 2 samples off, the truth on a multiple of the sampling interval."""
    method, scale = METHODS[name]
    fit = gr.fit(Exchanger(s=max(scale, 1e-4)), record(hold, scale), estimate=["k", "T", "tau"], method=method)
    assert fit.converged
    for parameter, truth in TRUTH.items():
        row = fit.parameters.loc[parameter]
        assert abs(row["estimate"] - truth) < 3.5 * row["std_error"], parameter
    assert fit.parameters.loc["tau", "std_error"] < 0.1
    verdict = fit.diagnose()
    assert verdict, verdict
    if name in ("OutputError", "KalmanML"):
        assert {"autocorrelation", "periodogram", "input u"} <= set(verdict.table["test"])


@pytest.mark.parametrize("hold", ["zoh", "foh"])
def test_collocation_without_disturbances_finds_what_output_error_does(hold: str) -> None:
    """Elements stay where they are, and jumps move through them."""
    given = (Exchanger(s=1e-4), record(hold, 1e-9), ["k", "T", "tau"])
    found, other = (gr.fit(*given, method=m) for m in (gr.Collocation(), gr.OutputError()))
    assert found.converged and found.states(names=["x"]).sizes["time"] == len(TIMES)
    apart = (found.parameters["estimate"] - other.parameters["estimate"]) / other.parameters["std_error"]
    assert abs(apart).max() < 0.01
    assert found.parameters["std_error"].values == pytest.approx(other.parameters["std_error"].values, rel=0.03)


@pytest.mark.parametrize("criterion", ["laplace", "amle"])
def test_criteria_of_collocation_have_the_right_slope(criterion: str) -> None:
    """Signals are those of each dead time, on both sides of where a jump passes the end of an element."""
    data, model = _short("zoh"), Exchanger()
    unknowns = [Unknown(n, "parameter", n, None, g, 0.2, 9.0) for n, g in {"tau": 2.3, "T": 4.0}.items()]
    problem = gr.Collocation(criterion=criterion).pose(FitRequest.of(model, [data], unknowns))
    for tau in (2.3, 2.999, 3.001):
        theta, h = np.array([tau, 4.0]), 1e-4
        ends = [problem.evaluate(theta + np.array([s * h, 0.0])).objective for s in (-1, 1)]
        assert problem.evaluate(theta).gradient[0] == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-5)


class Bent(gr.Model):
    """Held inputs that enter other than linearly, two dead times, one input faster than the samples."""

    a = gr.Parameter(1.0, bounds=(0.2, 9))
    b = gr.Parameter(1.0, bounds=(0.2, 9))
    T = gr.Parameter(3.0)
    k = gr.Parameter(1.0)
    u = gr.Input()
    v = gr.Input()
    x = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.3), scale=1e-4)
    equations = [
        gr.der(x)
        == (k * gr.delay(u, a) ** 2 + gr.tanh(2 * gr.delay(v, a) * gr.delay(u, a)) + gr.delay(v, b) ** 3 - x) / T + w
    ]
    y = gr.Output(x, noise=0.05)


class Together(Bent):
    equations = [gr.der(Bent.x) == (gr.tanh(gr.delay(Bent.u, Bent.a) * gr.delay(Bent.v, Bent.b)) - Bent.x) / Bent.T]


class Decided(Bent):
    z = gr.Variable()
    equations = [gr.der(Bent.x) == (z - Bent.x) / Bent.T + Bent.w, z + z**3 == gr.delay(Bent.u, Bent.a)]


@cache
def bent(apart: float = 1.0) -> gr.Experiment:
    """Rows are missing, so that between two of them inputs jump several times."""
    rng, t = np.random.default_rng(2), np.delete(TIMES[:80], [20, 21, 22, 50])
    u = np.arange(0.0, 80.0, 0.5), np.repeat(rng.choice([-1.0, 0.0, 1.5], size=80), 2)
    u[0][[81, 82]] = u[0][80] + apart * np.array([0.5, 1.0])
    v = TIMES[:80], np.repeat(rng.choice([-1.0, 0.5], size=40), 2)
    run = gr.simulate(Bent(), t, inputs={"u": u, "v": v}, parameters={"a": 2.4, "b": 1.7, "T": 4.0, "k": 2.0})
    return gr.Experiment(t, outputs={"y": run["y"].values + 0.05 * rng.normal(size=len(t))}, inputs={"u": u, "v": v})


def test_jumps_that_enter_other_than_linearly() -> None:
    """Steps and elements that stay give what those give that end on the jumps."""
    given = {"estimate": ["a", "b", "T", "k"], "guess": {"a": 2.2, "b": 1.5}}
    fits = [
        gr.fit(Bent(), bent(), **given, method=m)
        for m in (gr.OutputError(), gr.SimulatedPEM(realizations=4), gr.Collocation())
    ]
    for fit in fits[1:]:
        apart = (fit.parameters["estimate"] - fits[0].parameters["estimate"]) / fits[0].parameters["std_error"]
        assert fit.converged and abs(apart).max() < 0.02


@pytest.mark.parametrize("method", [gr.SimulatedPEM(realizations=4), gr.Collocation()])
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Together, r"delay\(u, a\) and delay\(v, b\) jump at instants that move apart.*hold='foh'\.$"),
        (Decided, r"delay\(u, a\) jumps at instants that move, and decides z.*gr.KalmanML\(\)"),
    ],
)
def test_jumps_that_steps_cannot_pass_are_refused(method: gr.Collocation, model: type[gr.Model], words: str) -> None:
    with pytest.raises(gr.EstimationError, match=words):
        gr.fit(model(), bent(), estimate=["a", "b"][: 2 if model is Together else 1], method=method)


def test_jumps_too_close_for_elements_are_refused() -> None:
    with pytest.raises(gr.EstimationError, match=r"two of its jumps are .*e-08 apart, and elements .*take out one"):
        gr.fit(Bent(), bent(1e-7), estimate=["a"], method=gr.Collocation())


def test_splines_whose_knots_would_move_are_refused() -> None:
    with pytest.raises(gr.EstimationError, match=r"the dead time tau is estimated.*transcription='direct'"):
        gr.fit(Exchanger(), _short("zoh"), estimate=["tau"], method=gr.Collocation(transcription="spline"))


def test_a_far_guess_is_found_and_told() -> None:
    fit = gr.fit(Exchanger(), record("zoh", 1e-9), estimate=["k", "T", "tau"], guess={"tau": 8.0}, method="OutputError")
    assert abs(fit.parameters.loc["tau", "estimate"] - 3.0) < 0.2
    assert any("instead of 8" in note for note in fit.notes)


@pytest.mark.parametrize("method", [gr.OutputError(), gr.KalmanML()])
def test_a_minimum_in_a_corner_of_the_criterion(method: gr.KalmanML) -> None:
    """Jumps pass all samples at once where the dead time is a multiple of the sampling interval."""
    rng = np.random.default_rng(1)
    t, u = TIMES[:80], np.repeat(rng.choice([-1.0, 1.0], size=20), 4)
    given = {"inputs": {"u": u}, "parameters": {"tau": 3.0, "k": 2, "T": 3, "s": 0.05}}
    y = gr.simulate(Exchanger(), t, realizations=1, seed=7, **given)["y"].values.ravel()
    data = gr.Experiment(t, outputs={"y": y + 0.05 * rng.normal(size=80)}, inputs={"u": u})
    fit = gr.fit(Exchanger(s=0.05), data, estimate=["k", "T", "tau"], method=method)
    assert fit.converged
    row = fit.parameters.loc["tau"]
    assert 0.005 < row["std_error"] < 0.1 and abs(row["estimate"] - 3.0) < 3 * row["std_error"]


@pytest.mark.parametrize("hold", ["zoh", "foh"])
@pytest.mark.parametrize("options", [{}, {"filter": "extended"}, {"filter": "unscented", "propagation": "moments"}])
def test_likelihoods_have_the_right_slope(hold: str, options: dict[str, str]) -> None:
    trial = BoundExperiment.of(Exchanger(), _short(hold), EstimatedQuantities.named(["tau", "T", "s"]))
    runner = FilterRunner(trial, FilterOptions(**options))
    theta = np.array([2.3, 4.0, 0.05])
    steps = runner.discretise(theta)
    found = runner.likelihood(theta, steps, sensitive=True).likelihood
    assert found is not None
    h = 1e-5
    ends = [runner.likelihood(theta + np.array([s * h, 0, 0]), steps, sensitive=False).likelihood for s in (-1, 1)]
    slope = (ends[1].value - ends[0].value) / (2 * h)  # type: ignore[union-attr]
    assert found.gradient[0] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("hold", ["zoh", "foh"])
def test_ensembles_have_the_right_slope(hold: str) -> None:
    """By differences of what is computed; and near the derivative without disturbances."""
    trial = BoundExperiment.of(Exchanger(), _short(hold), EstimatedQuantities.named(["tau", "T"]))
    runner = EnsembleRunner(trial, ["y"], EnsembleOptions(realizations=8))
    theta = np.array([2.3, 4.0])
    runner = runner.on(runner.discretise(theta))
    found = runner.predict(theta, sensitive=True)
    h = 1e-4
    ends = [runner.predict(theta + np.array([s * h, 0]), sensitive=False).mean for s in (-1, 1)]
    assert found.mean_slopes[:, 0, 0] == pytest.approx(((ends[1] - ends[0]) / (2 * h))[:, 0], abs=1e-7)


def _short(hold: str) -> gr.Experiment:
    rng = np.random.default_rng(5)
    t, u = TIMES[:41], rng.normal(size=41).round(1)
    return gr.Experiment(t, outputs={"y": rng.normal(size=41)}, inputs={"u": u}, hold=hold)


class Direct(gr.Model):
    tau = gr.Parameter(1.0, bounds=(0.1, 5))
    k = gr.Parameter(1.0)
    u = gr.Input()
    z = gr.Variable()
    x = gr.Variable(start=0.0)
    equations = [gr.der(x) == -k * x + gr.delay(u, tau), z + 0.1 * gr.tanh(z) == gr.delay(u, tau)]
    y = gr.Output(x + 0.1 * z, noise=0.1)


def test_held_inputs_that_an_output_shows_directly_are_refused() -> None:
    u = np.sin(TIMES)
    data = gr.Experiment(TIMES, outputs={"y": u}, inputs={"u": u})
    with pytest.raises(gr.EstimationError, match=r"the output 'y' contains delay\(u, tau\) directly.*hold='foh'"):
        gr.fit(Direct(), data, estimate=["tau"], method="OutputError")


class Open(gr.Model):
    tau = gr.Parameter(1.0)
    u = gr.Input()
    x = gr.Variable(start=0.0)
    equations = [gr.der(x) == -x + gr.delay(u, tau)]
    y = gr.Output(x, noise=0.1)


def test_bounds_must_tell_how_long() -> None:
    data = gr.Experiment(TIMES, outputs={"y": TIMES}, inputs={"u": TIMES})
    with pytest.raises(gr.EstimationError, match=r"how short, above zero, and how long.*bounds=\(0.1, 3\)"):
        gr.fit(Open(), data, estimate=["tau"])
    with pytest.raises(gr.EstimationError, match=r"they are \(0, 3\)"):
        gr.fit(Open(), data, estimate=["tau"], bounds={"tau": (0, 3)})


class Rod(gr.Model):
    tau = gr.Parameter(1.0, bounds=(0.1, 3))
    u = gr.Input()
    x = gr.Variable()
    v = gr.Variable()
    equations = [x == gr.delay(u, tau), v == gr.der(x)]
    y = gr.Output(v, noise=0.1)


def test_dead_times_of_differentiated_signals_are_refused() -> None:
    data = gr.Experiment(TIMES, outputs={"y": TIMES}, inputs={"u": np.sin(TIMES)}, hold="spline")
    with pytest.raises(gr.EstimationError, match=r"index reduction differentiates delay\(u, tau\)"):
        gr.fit(Rod(), data, estimate=["tau"], method="OutputError")
