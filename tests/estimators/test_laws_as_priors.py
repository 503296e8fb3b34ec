"""Every law as a prior under every estimator, beside a posterior made by hand from SciPy's densities.

The model is linear in its unknown k. Without a prior each criterion is then a parabola of k, whose minimum and
curvature a fit without prior tells (in simulated PEM, which estimates how errors are weighted, for the weights of the
fit).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

import grisaille as gr
from grisaille import der, laws

T = np.linspace(0.0, 1.0, 41)
DATA = gr.Experiment(T, outputs={"y": 0.9 * T + 0.5 * np.random.default_rng(1).standard_normal(41)})


class Line(gr.Model):
    """What is measured rises with a slope."""

    k = gr.Parameter(0.6, bounds=(-5.0, 5.0))
    dead = gr.Parameter(0.7)
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.05)
    y = gr.Output(x, noise=0.5)
    equations = [der(x) == k + w + 0 * dead]


COLOURED = Line()
WHITE = Line(w=gr.Disturbance(gr.spectra.white(), scale=0.05))
METHODS = {
    "output error": (COLOURED, gr.OutputError()),
    "several pieces": (COLOURED, gr.OutputError(shooting="multiple", pieces=3)),
    "likelihood": (COLOURED, gr.KalmanML()),
    "simulated": (COLOURED, gr.SimulatedPEM(realizations=50, seed=1, tolerance=1e-14)),
    "elements": (COLOURED, gr.Collocation(criterion="amle")),
    "elements, laplace": (COLOURED, gr.Collocation(criterion="laplace")),
    "splines": (WHITE, gr.Collocation(criterion="amle")),
    "splines, ipopt": (WHITE, gr.Collocation(criterion="amle", optimizer="ipopt")),
    "smoothing": (WHITE, gr.Collocation(criterion="smoothing")),
    "ipda": (WHITE, gr.Collocation(criterion="ipda")),
    "laplace": (WHITE, gr.Collocation(criterion="laplace")),
}
LAWS = {
    "normal": (laws.Normal(0.5, 0.1), stats.norm(0.5, 0.1)),
    "lognormal": (laws.LogNormal(0.5, 0.2), stats.lognorm(0.2, scale=0.5)),
    "student": (laws.Student(0.5, 3.0, 0.1), stats.t(3.0, 0.5, 0.1)),
    "laplace": (laws.Laplace(0.3, 0.1), stats.laplace(0.3, 0.1)),
    "gamma": (laws.Gamma(0.4, 9.0), stats.gamma(9.0, scale=0.4 / 9)),
    "exponential": (laws.Gamma(0.2, 1.0), stats.expon(scale=0.2)),
    "beta": (laws.Beta(0.4, 12.0), stats.beta(4.8, 7.2)),
    "halfnormal": (laws.HalfNormal(0.3), stats.halfnorm(scale=0.3)),
    "halfcauchy": (laws.HalfCauchy(1.5), stats.halfcauchy(scale=1.5)),
    "curved upward": (laws.HalfCauchy(0.2), stats.halfcauchy(scale=0.2)),
    "uniform": (laws.Uniform(0.2, 3.0), stats.uniform(0.2, 2.8)),
    "truncated": (laws.Truncated(0.0, None, laws.Student(0.3, 4.0, 0.1)), stats.t(4.0, 0.3, 0.1)),
}


def fitted(name: str, prior: laws.Law | None) -> gr.Fit:
    model, method = METHODS[name]
    return gr.fit(model, DATA, ["k"], method, priors={"k": prior}, progress=False)


@cache
def without(name: str) -> tuple[gr.Fit, float]:
    """The fit without a prior, and the curvature of its criterion."""
    free = fitted(name, None)
    return free, weight_of(free) if name == "simulated" else 1 / free["k"].std_error ** 2


def weight_of(fit: gr.Fit) -> float:
    J = fit.estimate.evaluation.jacobian[: len(T), 0]
    return float(J @ J)


def by_hand(name: str, law: str, fit: gr.Fit) -> tuple[float, float]:
    """The largest posterior density and its standard error."""
    free, alone = without(name)
    k0, prior, curvature = float(free["k"]), LAWS[law][1], weight_of(fit) if name == "simulated" else alone

    def slope(k: float, h: float = 1e-5) -> float:
        ell = [float(prior.logpdf(k + d)) + (np.log(k + d) if law == "lognormal" else 0.0) for d in (-h, h)]
        return curvature * (k - k0) - (ell[1] - ell[0]) / (2 * h)

    k, h = brentq(slope, 0.31, 0.95, xtol=1e-13), 1e-4
    bend = -float(prior.logpdf(k + h) - 2 * prior.logpdf(k) + prior.logpdf(k - h)) / h**2
    if law == "lognormal":  # where it is normal; likelihoods have all of the posterior's curvature by θ
        whole = name in ("likelihood", "elements", "elements, laplace", "laplace")
        bend = bend - 1 / -(k**2) if whole else 1 / (0.2 * k) ** 2
    if name == "simulated":
        middle = (free["k"].std_error * curvature) ** 2 + max(bend, 0.0)
        return k, float(np.sqrt(middle)) / (curvature + bend)
    return k, 1 / float(np.sqrt(curvature + bend))


@pytest.mark.parametrize(
    ("name", "law"),
    [(n, law) for n in METHODS for law in LAWS if n != "ipda" or law in ("lognormal", "student", "truncated")],
)
def test_a_fit_is_the_largest_posterior_density(name: str, law: str) -> None:
    fit = fitted(name, LAWS[law][0])
    k, error = by_hand(name, law, fit)
    assert fit.converged
    assert float(fit["k"]) == pytest.approx(k, abs=1e-6 * error)
    assert fit["k"].std_error == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("name", ["output error", "likelihood", "simulated", "elements", "splines"])
@pytest.mark.parametrize(
    ("law", "mode", "width"),
    [
        (laws.Student(2.5, 3.0, 0.01), 2.5, 0.01 * np.sqrt(3 / 4)),
        (laws.Gamma(2.0, 4.0), 1.5, 1.5 / np.sqrt(3)),
        (laws.Beta(0.3, 12.0), 0.26, np.sqrt(1 / (2.6 / 0.26**2 + 7.4 / 0.74**2))),
        (laws.Gamma(0.2, 1.0), 0.0, None),
        (laws.Laplace(1.5, 0.1), 1.5, None),
        (laws.Truncated(0.2, 0.9, laws.LogNormal(3.0, 0.5)), 0.9, None),
    ],
    ids=str,
)
def test_what_only_a_prior_knows_is_where_it_is_largest(name: str, law: laws.Law, mode: float, width: float) -> None:
    model, method = METHODS[name]
    fit = gr.fit(model, DATA, ["k", "dead"], method, priors={"dead": law}, progress=False)
    assert fit.converged and fit["dead"] == pytest.approx(mode, abs=1e-6)
    if width is None:
        assert fit.parameters.loc["dead", "status"] in ("at bound", "at kink", "zero")
    else:
        assert fit["dead"].std_error == pytest.approx(width, rel=1e-4)


@pytest.mark.parametrize("name", ["output error", "likelihood", "simulated", "elements", "splines"])
def test_a_kink_that_the_data_do_not_overcome_holds_an_unknown(name: str) -> None:
    fit = fitted(name, laws.Laplace(0.8, 0.05))
    assert fit.converged and float(fit["k"]) == 0.8
    assert fit.parameters.loc["k", "status"] == "at kink"
    free, curvature = without(name)

    def above(v: float) -> float:
        rise = 0.5 * curvature * ((v - float(free["k"])) ** 2 - (0.8 - float(free["k"])) ** 2)
        return 2 * (rise + abs(v - 0.8) / 0.05) - stats.chi2.ppf(0.95, 1)

    ends = brentq(above, 0.5, 0.8), brentq(above, 0.8, 1.1)  # there is room on both sides of a kink
    methods = ("wald",) if name == "simulated" else ("wald", "auto", "profile")
    for found in (fit.intervals(method=m).loc["k"] for m in methods):
        assert [found.lower, found.upper] == pytest.approx(ends, rel=5e-3 if name == "simulated" else 1e-4)
    assert "at kink: k is where its prior Laplace(mean=0.8, scale=0.05) has a kink" in str(fit)
    beyond = fitted(name, laws.Laplace(0.4, 0.1))  # the guess, 0.6, is on one side, and a weak one is passed
    assert fitted(name, laws.Laplace(0.7, 1.0))["k"] == pytest.approx(float(without(name)[0]["k"]), abs=0.03)
    assert float(beyond["k"]) > 0.5


def test_open_noise_and_a_prior_on_its_level() -> None:
    class Open(Line):
        y = gr.Output(Line.x)

    y = DATA.outputs["y"].values
    fit = gr.fit(Open(), DATA, ["k"], gr.OutputError(), priors={"k": gr.Gamma(0.4, 9.0)}, progress=False)

    def slope(k: float) -> float:
        return -len(T) * float(T @ (y - k * T)) / float((y - k * T) @ (y - k * T)) - (8 / k - 9 / 0.4)

    assert float(fit["k"]) == pytest.approx(brentq(slope, 0.1, 1.5, xtol=1e-12), abs=1e-6 * fit["k"].std_error)
    names = ["k", "noise(y)"]
    pulled = gr.fit(Open(), DATA, names, gr.KalmanML(), priors={"noise(y)": gr.HalfNormal(0.1)}, progress=False)
    alone = gr.fit(Open(), DATA, names, gr.KalmanML(), progress=False)
    assert float(pulled["noise(y)"]) < float(alone["noise(y)"]) - 0.05


def test_others_are_followed_across_a_kink() -> None:
    """The interval of b, and a test of a value, with a at its best for each b: on the kink for some of them."""

    class Decay(gr.Model):
        a = gr.Parameter(1.0, prior=laws.Laplace(1.22, 0.02))
        b = gr.Parameter(0.7, bounds=(0.01, 10.0))
        x = gr.Variable(1.0)
        y = gr.Output(a * x, noise=0.1)
        equations = [der(x) == -b * x]

    times = np.linspace(0.0, 3.0, 25)
    y = 1.3 * np.exp(-0.8 * times) + 0.1 * np.random.default_rng(4).standard_normal(25)
    fit = gr.fit(Decay(), gr.Experiment(times, {}, {"y": y}), ["a", "b"], gr.KalmanML(), progress=False)
    assert fit.parameters["status"].tolist() == ["at kink", "free"]

    def best(b: float) -> float:
        """−2 log p with a at its best: where its slope changes sign, or at the kink."""
        X = np.exp(-b * times) / 0.1
        ends = [(X @ y / 0.1 + side / 0.02) / (X @ X) for side in (1, -1)]  # below and above it
        a = float(np.clip(1.22, ends[1], ends[0]))
        return float(np.sum((y / 0.1 - a * X) ** 2)) + 2 * abs(a - 1.22) / 0.02

    least = best(float(fit["b"]))
    for end in fit.intervals(method="profile").loc["b"]:
        assert best(end) - least == pytest.approx(stats.chi2.ppf(0.95, 1), rel=5e-3)
    assert fit.test({"b": 0.7}).ratio == pytest.approx(best(0.7) - least, rel=1e-4)


@pytest.mark.parametrize("method", [gr.OutputError(), gr.KalmanML()])
@pytest.mark.parametrize("prior", [gr.LogNormal(0.5, 0.2), gr.HalfNormal(0.3), gr.Beta(0.5, 8.0)])
def test_where_a_prior_has_no_density_there_is_no_criterion(method: object, prior: laws.Law) -> None:
    with pytest.raises(gr.EstimationError, match=r"no density there|outside \("):
        gr.evaluate(Line(k=gr.Parameter(-0.5, prior=prior)), DATA, method, {"k": -0.5})


REFUSED = [
    ({"k": laws.Gamma(1.0, 0.5)}, "whose density is infinite at 0"),
    ({"k": laws.Normal(std=0.1)}, r"no mean: it is a law of measurements"),
    ({"k": laws.Student(df=3.0, scale=0.1)}, r"gr\.laws\.Student\(mean, df, scale\)"),
]


@pytest.mark.parametrize(("priors", "said"), REFUSED)
def test_what_cannot_be_a_prior_is_refused(priors: dict[str, laws.Law], said: str) -> None:
    for name in ("output error", "likelihood", "splines"):
        model, method = METHODS[name]
        with pytest.raises(gr.GrisailleError, match=said):
            gr.fit(model, DATA, ["k"], method, priors=priors)
