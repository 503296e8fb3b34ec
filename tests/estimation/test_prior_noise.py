"""Open noise under priors and for several outputs: the joint maximum, and the degrees of freedom that are left."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import grisaille as gr

METHOD = gr.OutputError()
RANDOM = np.random.default_rng(5)
U = RANDOM.standard_normal((20, 6))
NAMES = [f"p[{k}]" for k in range(6)]


class Plane(gr.Model):
    """A plane over six inputs."""

    p = gr.Parameter([0.0] * 6, size=6, bounds=(-1e4, 1e4))
    u = gr.Input(size=6)
    y = gr.Output(p @ u)
    equations = []


class Two(gr.Model):
    """Two outputs of different noise, with slopes of their own and a common one."""

    a, b, c = (gr.Parameter(0.0, bounds=(-1e4, 1e4)) for _ in range(3))
    u, v = gr.Input(), gr.Input()
    y = gr.Output(a * u + c * v)
    z = gr.Output(b * u + c * v)
    equations = []


def plane(y: np.ndarray) -> gr.Experiment:
    return gr.Experiment(inputs={f"u[{k}]": U[:, k] for k in range(6)}, outputs={"y": y})


def joint_maximum(y: np.ndarray, std: float) -> tuple[np.ndarray, float, np.ndarray]:
    """By hand: θ, the reported noise, and standard errors."""
    ridge, variance = np.eye(6) / std**2, 1.0
    for _ in range(2000):
        theta = np.linalg.solve(U.T @ U / variance + ridge, U.T @ y / variance)
        variance = float(np.mean((y - U @ theta) ** 2))
    squares, reported = 20 * variance, variance
    for _ in range(2000):
        taken = np.trace(np.linalg.solve(U.T @ U / reported + ridge, U.T @ U / reported))
        reported = squares / (20 - taken)
    return theta, np.sqrt(reported), np.sqrt(np.diag(np.linalg.inv(U.T @ U / reported + ridge)))


@pytest.mark.parametrize("std", [1e-4, 0.15, 1.0, 1e3])
def test_estimates_are_the_joint_maximum_and_priors_take_no_freedom(std: float) -> None:
    y = U @ np.full(6, 0.1) + 0.5 * np.random.default_rng(1).standard_normal(20)
    fit = gr.fit(Plane(), plane(y), ["p"], METHOD, priors={n: gr.Normal(0.0, std) for n in NAMES})
    theta, noise, errors = joint_maximum(y, std)
    assert fit.converged
    assert np.allclose(fit.estimate.theta, theta, atol=1e-6 * errors.min())
    assert fit["noise(y)"] == pytest.approx(noise, rel=1e-6)
    assert np.allclose(fit.std_errors, errors, rtol=1e-6)


def test_what_rests_on_priors_is_named() -> None:
    y = U @ np.full(6, 0.1) + 0.5 * np.random.default_rng(2).standard_normal(20)
    tight = gr.fit(Plane(), plane(y), ["p"], METHOD, priors={"p[1]": gr.Normal(0.1, 1e-3), "p[2]": gr.Normal(0, 50.0)})
    assert "determined by the data" not in str(tight)
    assert "prior: p[1] rests on priors more than on the data" in str(tight)
    weak = gr.fit(Plane(), plane(y), ["p"], METHOD, priors={"p[2]": gr.Normal(0, 50.0)})
    assert "every unknown is determined by the data" in str(weak)


def test_one_output_without_priors_has_the_usual_numbers() -> None:
    y = U @ np.full(6, 0.1) + 0.5 * np.random.default_rng(3).standard_normal(20)
    fit = gr.fit(Plane(), plane(y), ["p"], METHOD)
    rss = float(np.linalg.lstsq(U, y, rcond=None)[1][0])
    assert fit["noise(y)"] == pytest.approx(np.sqrt(rss / 14), rel=1e-9)
    assert fit.student == 14
    row = fit.parameters.loc["noise(y)"]
    assert (row.lower, row.upper) == pytest.approx(tuple(np.sqrt(rss / chi2.ppf([0.975, 0.025], 14))), rel=1e-9)


def test_each_output_loses_the_leverage_of_its_own_samples() -> None:
    random = np.random.default_rng(4)
    u, v = random.standard_normal((2, 10))
    y, z = 0.4 * u + v + 0.5 * random.standard_normal(10), -u + v + 0.05 * random.standard_normal(10)
    z[6:] = np.nan
    fit = gr.fit(Two(), gr.Experiment(inputs={"u": u, "v": v}, outputs={"y": y, "z": z}), ["a", "b", "c"], METHOD)
    J = [np.c_[u, 0 * u, v], np.c_[0 * u, u, v][:6]]
    data, s = [y, z[:6]], np.ones(2)
    for _ in range(3000):
        whole = sum(j.T @ j / w**2 for j, w in zip(J, s, strict=True))
        theta = np.linalg.solve(whole, sum(j.T @ d / w**2 for j, d, w in zip(J, data, s, strict=True)))
        s = np.array([np.sqrt(np.mean((d - j @ theta) ** 2)) for j, d in zip(J, data, strict=True)])
    squares, s = s**2 * [10, 6], s.copy()
    for _ in range(3000):
        C = np.linalg.inv(sum(j.T @ j / w**2 for j, w in zip(J, s, strict=True)))
        s = np.sqrt(squares / [n - np.trace(C @ j.T @ j) / w**2 for n, j, w in zip((10, 6), J, s, strict=True)])
    assert np.allclose(fit.estimate.theta, theta, atol=1e-6)
    assert [fit["noise(y)"], fit["noise(z)"]] == pytest.approx(s.tolist(), rel=1e-6)
    assert np.allclose(fit.std_errors, np.sqrt(np.diag(C)), rtol=1e-5)
    b, a = float(fit.student[1]), float(fit.student[0])
    assert b < a < 10  # b is told by the four samples' worth of z


def test_an_output_that_the_unknowns_follow_exactly_is_refused() -> None:
    u, v = np.random.default_rng(4).standard_normal((2, 10))
    z = np.full(10, np.nan)
    z[0] = 1.0
    with pytest.raises(gr.EstimationError, match="follow the 1 sample of 'z' exactly"):
        gr.fit(Two(), gr.Experiment(inputs={"u": u, "v": v}, outputs={"y": u**2, "z": z}), ["a", "b", "c"], METHOD)


def test_profiles_agree_with_standard_errors_under_priors() -> None:
    y = U @ np.full(6, 0.1) + 0.5 * np.random.default_rng(6).standard_normal(20)
    fit = gr.fit(Plane(), plane(y), ["p"], METHOD, priors={n: gr.Normal(0.0, 0.15) for n in NAMES[:3]})
    wald, profile = (fit.intervals(method=m) for m in ("wald", "profile"))
    width = (wald["upper"] - wald["lower"]).to_numpy()
    assert np.abs((profile - wald).to_numpy() / width[:, None]).max() < 0.05


def test_few_measurements_suffice_where_noise_is_known() -> None:
    class Line(gr.Model):
        q, p = gr.Parameter(0.0), gr.Parameter(0.0)
        x = gr.Input()
        y = gr.Output(p + q * x, noise=0.1)
        open = gr.Output(p + q * x)

    one = gr.Experiment(inputs={"x": [2.0]}, outputs={"y": [1.0]})
    fit = gr.fit(Line(), one, ["q"], METHOD)
    assert (float(fit["q"]), fit["q"].std_error) == pytest.approx((0.5, 0.05)) and "unknowns    1" in str(fit)
    believed = gr.fit(Line(), one, ["p", "q"], METHOD, priors={"p": gr.Normal(0.2, 0.1)})
    assert (float(believed["q"]), believed["q"].std_error) == pytest.approx((0.4, np.hypot(0.05, 0.05)))
    with pytest.raises(gr.EstimationError, match="1 measurement cannot determine 2 unknowns; give more data, priors"):
        gr.fit(Line(), one, ["p", "q"], METHOD)
    bare = gr.Experiment(inputs={"x": [2.0]}, outputs={"open": [1.0]})
    with pytest.raises(gr.EstimationError, match="1 unknown and the size of the noise"):
        gr.fit(Line(), bare, ["q"], METHOD, priors={"q": gr.Normal(0.2, 0.1)})
