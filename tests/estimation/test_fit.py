"""``gr.fit`` from data to a table: closed forms, zero noise, agreement of optimizers, statistics, failures."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError


class Decay(gr.Model):
    """x' = −a x + b u."""

    a = gr.Parameter(1.0, "1/s", bounds=(0.1, 5.0))
    b = gr.Parameter(0.5, bounds=(0.0, 2.0))
    x = gr.Variable(2.0, "m")
    u = gr.Input()
    y = gr.Output(x, unit="m")
    equations = [der(x) == -a * x + b * u]


class Line(gr.Model):
    """A static model: linear regression has closed forms for everything."""

    p, q = gr.Parameter(0.0), gr.Parameter(0.0)
    x = gr.Input()
    y = gr.Output(p + q * x)


TIMES = np.linspace(0.0, 10.0, 101)
INPUT = np.sign(np.sin(TIMES))
METHOD = gr.OutputError()


def record(noise: float, seed: int = 0, name: str | None = None, **values: float) -> gr.Experiment:
    run = gr.simulate(Decay(**{"a": 0.7, "b": 1.2, **values}), TIMES, inputs={"u": INPUT}, rtol=1e-10)
    y = run.y.values + noise * np.random.default_rng(seed).standard_normal(len(TIMES))
    return gr.Experiment(TIMES, {"u": INPUT}, {"y": y}, name=name)


def line_data(seed: int = 3) -> tuple[gr.Experiment, np.ndarray, np.ndarray]:
    x = np.linspace(-1, 2, 40)
    y = 1.5 - 0.4 * x + 0.1 * np.random.default_rng(seed).standard_normal(40)
    return gr.Experiment(inputs={"x": x}, outputs={"y": y}), x, y


def test_linear_regression_in_closed_form() -> None:
    experiment, x, y = line_data()
    fit = gr.fit(Line(), experiment, ["p", "q"], METHOD)
    A = np.column_stack([np.ones_like(x), x])
    theta, rss, *_ = np.linalg.lstsq(A, y, rcond=None)
    covariance = rss[0] / (40 - 2) * np.linalg.inv(A.T @ A)
    assert np.allclose(fit.estimate.theta, theta, rtol=1e-10)
    assert np.allclose(fit.covariance, covariance, rtol=1e-8)
    assert fit.log_likelihood == pytest.approx(-20 * (np.log(2 * np.pi * rss[0] / 40) + 1), rel=1e-10)
    assert fit.aic == pytest.approx(-2 * fit.log_likelihood + 2 * 3)
    assert float(fit["noise(y)"]) == pytest.approx(np.sqrt(rss[0] / 38), rel=1e-8)


def test_known_noise_is_absolute() -> None:
    class Known(Line):
        y = gr.Output(Line.p + Line.q * Line.x, noise=0.3)

    experiment, x, _ = line_data()
    fit = gr.fit(Known(), experiment, ["p", "q"], METHOD)
    A = np.column_stack([np.ones_like(x), x])
    assert np.allclose(fit.covariance, 0.09 * np.linalg.inv(A.T @ A), rtol=1e-8)
    assert not fit.estimate.noise


def test_exact_data_give_exact_parameters() -> None:
    fit = gr.fit(Decay(), record(0.0), ["a", "b"], METHOD)
    assert fit.converged
    assert np.allclose(fit.estimate.theta, [0.7, 1.2], rtol=1e-6)


@pytest.mark.parametrize("optimizer", ["gauss-newton", "levenberg-marquardt", "nelder-mead"])
def test_optimizers_agree(optimizer: str) -> None:
    data = record(0.05)
    reference = gr.fit(Decay(), data, ["a", "b", "start(x)"], METHOD)
    method = gr.OutputError(optimizer=optimizer)
    other = gr.fit(Decay(), data, ["a", "b", "start(x)"], method)
    assert other.converged
    assert np.allclose(other.estimate.theta, reference.estimate.theta, rtol=1e-6)


def test_jacobian_against_differences() -> None:
    value = gr.evaluate(Decay(), record(0.05), METHOD, {"a": 0.8, "b": 1.0})
    for name, base in (("a", 0.8), ("b", 1.0)):
        ends = []
        for s in (1, -1):
            moved = {"a": 0.8, "b": 1.0, name: base + s * 1e-5}
            ends.append(gr.evaluate(Decay(), record(0.05), METHOD, moved, ["a", "b"]).log_likelihood)
        slope = -(ends[0] - ends[1]) / 2e-5
        assert value.gradient[name] == pytest.approx(slope, rel=1e-4)


def test_intervals_cover_what_they_claim() -> None:
    """95 % intervals of 200 linear-in-effect fits; exact binomial bounds at 0.1 % are 177 … 199."""
    hits = np.zeros(2)
    model, x = Line(), np.linspace(-1, 2, 12)
    random = np.random.default_rng(11)
    for _ in range(200):
        y = 1.5 - 0.4 * x + 0.1 * random.standard_normal(12)
        table = gr.fit(model, gr.Experiment(inputs={"x": x}, outputs={"y": y}), ["p", "q"], METHOD).intervals()
        truth = np.array([1.5, -0.4])
        hits += (table["lower"].to_numpy() <= truth) & (truth <= table["upper"].to_numpy())
    assert ((hits >= 177) & (hits <= 199)).all()


def test_shared_and_local_unknowns() -> None:
    data = [record(0.01, 1, "A", b=1.2), record(0.01, 2, "B", b=0.6)]
    fit = gr.fit(Decay(), data, ["a", "b", "start(x)"], METHOD, local=["b"])
    assert fit.names == ("a", "b@A", "b@B", "start(x)@A", "start(x)@B")
    assert float(fit["b@A"]) == pytest.approx(1.2, abs=0.02)
    assert float(fit["b@B"]) == pytest.approx(0.6, abs=0.02)


def test_joint_fit_of_repeats_equals_the_fit_of_their_mean() -> None:
    runs = [record(0.1, seed, f"r{seed}") for seed in range(4)]
    joint = gr.fit(Decay(), runs, ["a", "b"], METHOD)
    mean = np.mean([r.measurements("y").values for r in runs], axis=0)
    alone = gr.fit(Decay(), gr.Experiment(TIMES, {"u": INPUT}, {"y": mean}), ["a", "b"], METHOD)
    assert np.allclose(joint.estimate.theta, alone.estimate.theta, rtol=1e-10)


def test_priors_pull() -> None:
    data = record(0.05)
    free = gr.fit(Decay(), data, ["a", "b"], METHOD)
    firm = gr.fit(Decay(), data, ["a", "b"], METHOD, priors={"a": gr.Normal(1.0, 1e-6)})
    assert float(firm["a"]) == pytest.approx(1.0, abs=1e-4)
    joint = gr.MultivariateNormal(["a", "b"], [0.7, 1.2], np.diag([1e-12, 1e-12]))
    pinned = gr.fit(Decay(), data, ["a", "b"], METHOD, priors=[joint])
    assert np.allclose(pinned.estimate.theta, [0.7, 1.2], atol=1e-5)
    assert abs(float(free["a"]) - 0.7) < 5 * free["a"].std_error


def test_unknown_noise_of_several_outputs_is_weighed() -> None:
    class Two(gr.Model):
        p = gr.Parameter(1.0)
        x = gr.Input()
        fine, coarse = gr.Output(p * x), gr.Output(p * x)

    x = np.linspace(0, 1, 200)
    random = np.random.default_rng(5)
    data = gr.Experiment(
        inputs={"x": x},
        outputs={"fine": 2 * x + 0.01 * random.standard_normal(200), "coarse": 2 * x + random.standard_normal(200)},
    )
    fit = gr.fit(Two(), data, ["p"], METHOD)
    assert float(fit["noise(fine)"]) == pytest.approx(0.01, rel=0.2)
    assert float(fit["noise(coarse)"]) == pytest.approx(1.0, rel=0.2)
    assert fit["p"].std_error < 0.003


def test_robust_loss_ignores_outliers() -> None:
    experiment, x, y = line_data()
    y = y.copy()
    y[5] += 30
    spoiled = gr.Experiment(inputs={"x": x}, outputs={"y": y})
    plain = gr.fit(Line(), spoiled, ["p", "q"], METHOD)
    robust = gr.fit(Line(), spoiled, ["p", "q"], gr.OutputError(loss="cauchy", loss_scale=0.1))
    clean = gr.fit(Line(), experiment, ["p", "q"], METHOD)
    assert abs(float(robust["p"]) - float(clean["p"])) < 0.1 * abs(float(plain["p"]) - float(clean["p"]))
    with pytest.raises(EstimationError, match="needs a likelihood"):
        _ = robust.aic


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: type("M", (Line,), {"z": gr.Parameter(1.0)}), "dead: no output depends on z"),
        (lambda: type("M", (Line,), {"y": gr.Output(Line.p + Line.q + 0 * Line.x)}), "flat direction"),
    ],
)
def test_diagnosis_in_words(build, words: str) -> None:
    model = build()()
    names = [n for n in ("p", "q", "z") if n in model.parameters]
    fit = gr.fit(model, line_data()[0], names, METHOD)
    assert any(words in note for note in fit.notes)


def test_what_is_not_determined_has_no_finite_error() -> None:
    """Only the product a·b is seen: neither factor has a standard error, whatever the pseudo-inverse says."""

    class Product(gr.Model):
        a, b, c = gr.Parameter(1.0), gr.Parameter(2.0), gr.Parameter(0.0)
        x = gr.Input()
        y = gr.Output(a * b * x + c)

    fit = gr.fit(Product(), line_data()[0], ["a", "b", "c"], METHOD)
    assert np.isinf(fit.std_errors[:2]).all() and np.isfinite(fit.std_errors[2])
    assert any("flat direction" in note for note in fit.notes)
    assert "inf" in str(fit)


def test_table_instead_of_an_experiment_is_refused() -> None:
    with pytest.raises(gr.GrisailleError, match=r"gr\.Experiment\.from_frame"):
        gr.fit(Line(), [{"x": 1}], ["p"], METHOD)


def test_bound_is_reported() -> None:
    fit = gr.fit(Decay(), record(0.01, b=1.2), ["a", "b"], METHOD, bounds={"b": (0.0, 1.0)})
    assert fit.parameters.loc["b", "status"] == "at bound"
    assert any("at bound: b stopped at its upper bound 1" in note for note in fit.notes)


def test_print_reads_like_a_regression_summary() -> None:
    fit = gr.fit(Decay(), record(0.05), ["a", "b"], METHOD)
    text = str(fit)
    for words in ("Decay fitted by OutputError", "std. error", "95 % interval", "noise(y)", "R²", "converged"):
        assert words in text
    assert "±" in str(fit["a"]) and "1/s" in str(fit["a"]) and float(fit["a"]) > 0
    assert "<table" in fit._repr_html_()


def test_failed_simulations_are_survived() -> None:
    class Fragile(gr.Model):
        a = gr.Parameter(0.3, bounds=(-5.0, 5.0))
        x = gr.Variable(1.0)
        y = gr.Output(x)
        equations = [der(x) == a * x**2 - x]

    times = np.linspace(0, 4, 21)
    y = gr.simulate(Fragile(a=0.9), times).y.values
    fit = gr.fit(Fragile(), gr.Experiment(times, {}, {"y": y}), ["a"], METHOD)
    assert float(fit["a"]) == pytest.approx(0.9, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"estimate": ["c"]}, "no parameter or start called 'c'"),
        ({"estimate": "a"}, "list of names"),
        ({"estimate": []}, "empty"),
        ({"estimate": ["a", "a"]}, "more than once"),
        ({"estimate": ["a@Z"]}, "names the experiment 'Z'"),
        ({"estimate": ["a"], "bounds": {"b": (0, 1)}}, "not estimated here"),
        ({"estimate": ["a"], "bounds": {"a": (2, 1)}}, "the first must be below the second"),
        ({"estimate": ["a"], "guess": {"a": 9.0}}, "outside"),
        ({"estimate": ["a"], "method": "magic"}, "which is no estimator"),
        ({"estimate": ["a"], "method": gr.OutputError}, "make an instance"),
        ({"estimate": ["a"], "priors": {"a": 3}}, "such as gr.Normal"),
    ],
)
def test_mistakes(arguments, words: str) -> None:
    with pytest.raises(gr.GrisailleError, match=words):
        gr.fit(Decay(), record(0.0), **{"method": METHOD, **arguments})


def test_mistakes_in_options() -> None:
    for options, words in (
        ({"optimizer": "bfgs"}, "must be one of"),
        ({"loss": "abs"}, "must be one of"),
        ({"loss": "huber", "optimizer": "gauss-newton"}, "needs optimizer='trust-region'"),
    ):
        with pytest.raises(EstimationError, match=words):
            gr.OutputError(**options)


def test_too_few_measurements() -> None:
    with pytest.raises(EstimationError, match="cannot determine 2 unknowns"):
        gr.fit(Line(), gr.Experiment(inputs={"x": [1.0, 2.0]}, outputs={"y": [1.0, 2.0]}), ["p", "q"], METHOD)


def test_a_vector_is_estimated_by_its_name() -> None:
    class Chain(gr.Model):
        k, x = gr.Parameter([0.3, 0.6], size=2, bounds=(0.01, 5.0)), gr.Variable(size=2, start=1.0)
        y = gr.Output(x[0] + 2 * x[1], noise=0.01)
        equations = [der(x[0]) == -k[0] * x[0], der(x[1]) == -k[1] * x[1]]

    t = np.linspace(0.0, 8.0, 81)
    noise = 0.01 * np.random.default_rng(2).normal(size=81)
    data = gr.Experiment(t, {}, {"y": np.exp(-0.2 * t) + 2 * np.exp(-0.9 * t) + noise})
    fit = gr.fit(Chain(), data, ["k", "start(x)"], gr.OutputError())
    assert fit.names == ("k[0]", "k[1]", "start(x[0])", "start(x[1])")
    for name, truth in zip(fit.names, (0.2, 0.9, 1.0, 1.0), strict=True):
        assert abs(float(fit[name]) - truth) < 4 * fit[name].std_error
