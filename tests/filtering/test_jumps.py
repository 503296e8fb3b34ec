"""Models that jump with their states: which filter takes them, which refuses, and that the likelihood is right."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

WHITE = gr.spectra.white


class Tank(gr.Model):
    """A tank whose pump runs above h = 1."""

    k = gr.Parameter(0.4, bounds=(0.01, 5.0))
    h = gr.Variable(0.5)
    q = gr.Input()
    w = gr.Disturbance(WHITE(), scale=0.05)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h - gr.where(h > 1.0, 0.5, 0.0) + w]


class Below(gr.Model):
    """The same without the pump."""

    k = gr.Parameter(0.4, bounds=(0.01, 5.0))
    h = gr.Variable(0.5)
    q = gr.Input()
    w = gr.Disturbance(WHITE(), scale=0.05)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h + w]


class Friction(gr.Model):
    """A mass that rubs."""

    mu = gr.Parameter(0.2, bounds=(0.001, 2.0))
    x, v = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(WHITE(), scale=0.05)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == v, der(v) == -4 * x - mu * gr.sign(v) + w]


class Steps(gr.Model):
    """A drift in stairs."""

    g = gr.Parameter(1.0, bounds=(0.1, 10.0))
    x = gr.Variable(5.0)
    w = gr.Disturbance(WHITE(), scale=0.1)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -g * gr.floor(x) + 2.5 + w]


class Undisturbed(gr.Model):
    """Nothing but the jump: no input, no disturbance."""

    k = gr.Parameter(0.7, bounds=(0.1, 5.0))
    x = gr.Variable(2.0)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == -k * x + gr.where(x > 1.0, 0.0, 0.5)]


class Seen(gr.Model):
    """An output that jumps by four."""

    g = gr.Parameter(1.0, bounds=(0.1, 10.0))
    x = gr.Variable(3.0)
    w = gr.Disturbance(WHITE(), scale=0.3)
    y = gr.Output(x + 2.0 * gr.sign(x - 1.0), noise=0.1)
    equations = [der(x) == -g * (x - 1) + w]


class Louder(gr.Model):
    """Noise three times as strong on one side."""

    g = gr.Parameter(1.0, bounds=(0.1, 10.0))
    x = gr.Variable(2.0)
    w = gr.Disturbance(WHITE(interpretation="ito"), scale=1.0)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -g * (x - 1) + gr.where(x > 1, 0.6, 0.2) * w]


TIMES = np.arange(0, 16, 0.2)
INPUT = np.where(TIMES % 8 < 4, 1.2, 0.2)


def tank_data(random, level=INPUT, step=2e-3):
    """By Euler's method, independently of the package."""
    x, seen, count = 0.5, [], round(0.2 / step)
    for q in level:
        seen.append(x)
        for z in random.standard_normal(count) * 0.05 * np.sqrt(step):
            x += step * (q - 0.4 * x - (0.5 if x > 1 else 0)) + z
    return gr.Experiment(TIMES, {"q": level}, {"y": np.array(seen) + 0.02 * random.standard_normal(len(level))})


def simulated(model, times, seed=4):
    run = gr.simulate(model, times, realizations=1, seed=seed, noise=True, step=1e-2)
    return gr.Experiment(times, {}, {"y": run["y"].values[0]})


def log_likelihood(model, data, names, parameters=None, **options):
    method = gr.KalmanML(**options)
    return gr.evaluate(model, data, method, parameters, names).log_likelihood


def test_the_relay_is_estimated_and_covered():
    """Ten data sets; fewer than seven intervals of 95 % with the truth have a probability of one in a thousand."""
    random = np.random.default_rng(11)
    fits = [gr.fit(Tank(), tank_data(random), ["k"]) for _ in range(10)]
    assert all(f.converged for f in fits)
    assert "the unscented filter, because the equation of der(h) jumps with 1 < h" in fits[0].why["KalmanML"]
    inside = [f.parameters.loc["k", "lower"] <= 0.4 <= f.parameters.loc["k", "upper"] for f in fits]
    assert sum(inside) >= 7
    errors = [(float(f["k"]) - 0.4) / f["k"].std_error for f in fits]
    assert abs(np.mean(errors)) < 3.3 / np.sqrt(10)


def test_linear_filters_refuse_by_name():
    data = tank_data(np.random.default_rng(1))
    with pytest.raises(gr.EstimationError, match=r"der\(h\) is not \(it jumps with 1 < h\): use filter='unscented'"):
        log_likelihood(Tank(), data, ["k"], filter="linear")


@pytest.mark.parametrize("filter", ["extended", "iterated"])
def test_linearising_filters_refuse_at_the_switch_and_work_beside_it(filter):
    random = np.random.default_rng(1)
    with pytest.raises(gr.EstimationError, match=r"jumps with 1 < h, and at t = 0\.\d+ the mean passes the switch"):
        log_likelihood(Tank(), tank_data(random), ["k"], filter=filter, substeps=2)
    beside = tank_data(random, 0.25 * INPUT)
    wanted = log_likelihood(Below(), beside, ["k"], filter="linear")
    assert log_likelihood(Tank(), beside, ["k"], filter=filter, substeps=2) == pytest.approx(wanted, abs=1e-8)
    assert log_likelihood(Tank(), beside, ["k"], substeps=2) == pytest.approx(wanted, abs=1e-6)


def test_a_fit_across_the_switch_is_refused_with_what_it_found():
    data = tank_data(np.random.default_rng(1))
    with pytest.raises(gr.EstimationError, match=r"filter='unscented'.*The search ended at k = 0\.\d+"):
        gr.fit(Tank(), data, ["k"], gr.KalmanML(filter="extended", substeps=2))


def test_a_band_that_reaches_the_switch_is_enough():
    """The mean stays below one; three standard deviations do not."""
    level = np.full(len(TIMES), 0.38)
    data = gr.Experiment(TIMES, {"q": level}, {"y": 0.95 - 0.45 * np.exp(-0.4 * TIMES)})
    with pytest.raises(
        gr.EstimationError, match=r"the switch lies [012]\.?\d* standard deviations away \(less than 3\)"
    ):
        log_likelihood(Tank(), data, ["k"], filter="extended", substeps=2)


@pytest.mark.parametrize(("model", "name"), [(Friction, "mu"), (Steps, "g")])
def test_the_likelihood_sees_the_jump(model, name):
    """Before, log L did not change with friction at all."""
    times = np.linspace(0.0, 5.0, 51) if name == "mu" else np.linspace(0.0, 2.0, 21)
    data, truth = simulated(model(), times), 0.2 if name == "mu" else 1.0
    values = [log_likelihood(model(), data, [name], {name: k * truth}, substeps=4) for k in (0.5, 1.0, 2.0)]
    assert values[1] > values[0] + 3 and values[1] > values[2] + 3


def test_derivatives_are_those_of_the_likelihood():
    from grisaille.estimators import build_problem

    data = simulated(Friction(), np.linspace(0.0, 3.0, 31))
    problem = build_problem(Friction(), data, ["mu"], gr.KalmanML(substeps=8))
    slope = problem.evaluate(np.array([0.18])).slope[0]
    ends = [problem.evaluate(np.array([v]), sensitive=False).objective for v in (0.18 + 1e-5, 0.18 - 1e-5)]
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)


def test_two_peaks_and_lopsided_noise_are_refused():
    times = np.linspace(0.0, 4.0, 41)
    with pytest.raises(gr.EstimationError, match=r"The output y jumps by 4 with sign\(x-1\).*two peaks"):
        log_likelihood(Seen(), simulated(Seen(), times), ["g"], substeps=4)
    with pytest.raises(gr.EstimationError, match=r"noise that drives x has the deviation 0.6 on one side of 1 < x"):
        log_likelihood(Louder(), simulated(Louder(), times), ["g"], substeps=4)


def test_a_switch_that_is_sharper_than_the_steps_is_refused():
    """A state without noise passes its switch at an instant that parameters move."""

    class Clock(gr.Model):
        a = gr.Parameter(1.0, bounds=(0.1, 10.0))
        c, x = gr.Variable(0.0), gr.Variable(0.0)
        w = gr.Disturbance(WHITE(), scale=0.1)
        y = gr.Output(x, noise=0.1)
        equations = [der(c) == a, der(x) == gr.where(c > 1.33, 1.0, 0.0) - x + w]

    data = gr.Experiment(np.linspace(0.0, 4.0, 21), {}, {"y": np.zeros(21)})
    with pytest.raises(gr.EstimationError, match=r"jumps with .*< c, which switches at t = .*sharper than the steps"):
        log_likelihood(Clock(), data, ["a"], substeps=4)


def test_relations_of_inputs_are_seen_by_the_exact_filter():
    """where(q > 0.5, …) is what the input given by hand is; it was dropped."""

    class Switched(gr.Model):
        k = gr.Parameter(0.4)
        h = gr.Variable(0.5)
        q = gr.Input()
        w = gr.Disturbance(WHITE(), scale=0.05)
        y = gr.Output(h + 0.1 * gr.sign(q - 0.5), noise=0.02)
        equations = [der(h) == gr.where(q > 0.5, 1.0, 0.0) - k * h * (1 + gr.floor(q)) + w]

    class ByHand(gr.Model):
        k = gr.Parameter(0.4)
        h = gr.Variable(0.5)
        a, b, c = gr.Input(), gr.Input(), gr.Input()
        w = gr.Disturbance(WHITE(), scale=0.05)
        y = gr.Output(h + 0.1 * b, noise=0.02)
        equations = [der(h) == a - k * h * (1 + c) + w]

    y = np.random.default_rng(2).standard_normal(len(TIMES))
    one = gr.Experiment(TIMES, {"q": INPUT}, {"y": y})
    signals = {"a": 1.0 * (INPUT > 0.5), "b": np.sign(INPUT - 0.5), "c": np.floor(INPUT)}
    other = gr.Experiment(TIMES, signals, {"y": y})
    wanted = log_likelihood(ByHand(), other, ["k"], filter="linear")
    for filter in ("linear", "auto", "extended"):
        found = log_likelihood(
            Switched(), one, ["k"], filter=filter, **({"substeps": 1} if filter == "extended" else {})
        )
        assert found == pytest.approx(wanted, rel=1e-9)


SWITCHES = {
    "forcing": lambda g, s, h: (g * s - 0.4 * h, 0.0 * s, 0.05),
    "coefficient": lambda g, s, h: (0.5 - (0.4 + g * s) * h, 0.0 * s, 0.05),
    "output": lambda g, s, h: (0.5 - 0.4 * h, g * s, 0.05),
    "noise": lambda g, s, h: (0.5 - 0.4 * h, 0.0 * s, 0.05 + g * s),
}


@pytest.mark.parametrize("place", SWITCHES)
def test_relations_of_time_are_seen_by_the_exact_filter(place):
    """where(time > 6, …) is what an input given by hand is; it was dropped: log L −6814 instead of 68."""
    made = SWITCHES[place]

    class Switched(gr.Model):
        g, h = gr.Parameter(0.2), gr.Variable(0.5)
        w = gr.Disturbance(WHITE(), scale=1.0)
        after = gr.where(gr.time > 6.0, 1.0, 0.0)
        rate, offset, strength = made(g, after, h)
        y = gr.Output(h + offset, noise=0.02)
        equations = [der(h) == rate + strength * w]

    class ByHand(gr.Model):
        g, h, after = gr.Parameter(0.2), gr.Variable(0.5), gr.Input()
        w = gr.Disturbance(WHITE(), scale=1.0)
        rate, offset, strength = made(g, after, h)
        y = gr.Output(h + offset, noise=0.02)
        equations = [der(h) == rate + strength * w]

    y = np.random.default_rng(2).standard_normal(len(TIMES))
    y[TIMES == 6.0] = np.nan  # at the switch itself where(…) has not switched, and the input has
    by_hand = gr.Experiment(TIMES, {"after": 1.0 * (TIMES >= 6.0 - 1e-9)}, {"y": y})
    wanted = gr.evaluate(ByHand(), by_hand, gr.KalmanML(filter="linear"), {"g": 0.3})
    for filter in ("linear", "auto"):
        method = gr.KalmanML(filter=filter)
        found = gr.evaluate(Switched(), gr.Experiment(TIMES, {}, {"y": y}), method, {"g": 0.3})
        assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-9)
        assert found.gradient["g"] == pytest.approx(wanted.gradient["g"], rel=1e-8) and found.gradient["g"] != 0


def test_a_jump_without_any_signal_is_refused_in_words() -> None:
    times = np.linspace(0.0, 5.0, 40)
    data = gr.Experiment(times, {}, {"y": gr.simulate(Undisturbed(), times)["y"].values})
    with pytest.raises(gr.EstimationError, match="the likelihood a staircase"):
        gr.evaluate(Undisturbed(), data, gr.KalmanML(), {"k": 0.7})
