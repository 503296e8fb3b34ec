"""Where a record begins that the fit has not seen: data by closed forms and NumPy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille import der

NOISE = 0.01
T = np.arange(0.0, 30.0, 0.25)


class Tank(gr.Model):
    """h' = u − k h."""

    k, u, h = gr.Parameter(0.3, bounds=(0.01, 5.0)), gr.Input(default=0.5), gr.Variable(start=1.0)
    y = gr.Output(h, noise=NOISE)
    equations = [der(h) == u - k * h]


def level(start: float, u: np.ndarray, k: float = 0.2, times: np.ndarray = T) -> np.ndarray:
    """Under an input that is held from sample to sample."""
    h = [start]
    for step, v in zip(np.diff(times), u[:-1], strict=True):
        h.append(v / k + (h[-1] - v / k) * np.exp(-k * step))
    return np.array(h)


U = 0.5 + 0.3 * np.sign(np.sin(0.5 * T))
RANDOM = np.random.default_rng(5)
Y = level(4.0, U) + NOISE * RANDOM.normal(size=len(T))
RUN = gr.Experiment(T, {"u": U}, {"y": Y}, name="A")
TRAIN, TEST = RUN.split(0.6)
AGAIN = RUN.split(0.6, restart=True)[1]
CUT = len(TRAIN.output_times)
SLICE = gr.Experiment(T[CUT:], {"u": U[CUT:]}, {"y": Y[CUT:]})
OTHER = gr.Experiment(T, {"u": U[::-1]}, {"y": level(0.5, U[::-1]) + NOISE * RANDOM.normal(size=len(T))}, name="B")
METHODS = {
    "output error": gr.OutputError(),
    "filter": gr.KalmanML(),
    "collocation": gr.Collocation(),
}


@pytest.fixture(scope="module", params=METHODS)
def fit(request: pytest.FixtureRequest) -> gr.Fit:
    return gr.fit(Tank(), TRAIN, ["k", "start(h)"], METHODS[request.param])


def rms(fit: gr.Fit, record: gr.Experiment, **options: object) -> float:
    times, values, _ = record.measurements("y")
    return float(np.sqrt(np.mean((fit.predict(record, **options)["y"].sel(time=times).values - values) ** 2)))


@pytest.mark.parametrize(
    ("record", "how"),
    [
        (TEST, "as 'A (train)' does, from the estimated start"),
        (RUN, "as 'A (train)' does, from the estimated start"),
        (AGAIN, "in the state that 'A (train)' leads to"),
        (SLICE, "in the state that 'A (train)' leads to"),
        (OTHER, "in a state that its first 10 samples tell (h = 0.5"),
    ],
    ids=["the rest", "the whole", "restarted", "sliced by hand", "another"],
)
def test_an_estimated_start_is_never_replaced_by_the_declared_one(fit: gr.Fit, record: gr.Experiment, how: str) -> None:
    assert fit.predict(record).attrs["start"].startswith(how[:40]) and rms(fit, record) < 1.3 * NOISE
    assert rms(fit, record, start="declared") > 0.1 or record is TEST, "the declared start is far off"


def test_values_decide(fit: gr.Fit) -> None:
    assert float(fit.predict(OTHER, start={"h": 2.5})["h"][0]) == 2.5
    assert float(fit.predict(OTHER.replace(start={"h": 2.5}))["h"][0]) == 2.5
    assert float(fit.predict(OTHER, start="declared")["h"][0]) == 1.0


def test_unknown_starts_are_estimated_by_fits_too() -> None:
    assert AGAIN.start == {"*": None} and "every state unknown" in str(AGAIN.summary())
    part = gr.fit(Tank(), AGAIN, ["k"], METHODS["output error"])
    truth = level(4.0, U)[CUT]
    assert abs(float(part["start(h)"]) - truth) < 4 * part["start(h)"].std_error
    assert abs(float(part["k"]) - 0.2) < 4 * part["k"].std_error
    assert gr.fit(Tank(), AGAIN, ["k", "start(h)"], METHODS["output error"]).names == ("k", "start(h)")
    both = gr.fit(Tank(), [TRAIN, AGAIN], ["k"], METHODS["output error"])
    assert both.names == ("k", "start(h)@A (test)"), "of the first the start is declared"
    assert gr.Experiment.from_dataset(AGAIN.to_dataset()) == AGAIN


def test_records_with_dates_continue_each_other() -> None:
    days = pd.Timestamp("2024-05-01") + pd.to_timedelta(T, "h")
    parts = [
        gr.Experiment(days[a], {"u": U[a]}, {"y": Y[a]}, unit="h", name=name)
        for a, name in ((slice(0, CUT), "May"), (slice(CUT, None), "June"))
    ]
    fit = gr.fit(Tank(), parts[0], ["k", "start(h)"], METHODS["output error"])
    assert (
        "in the state that 'May' leads to" in fit.predict(parts[1]).attrs["start"] and rms(fit, parts[1]) < 1.3 * NOISE
    )
    later = parts[1].replace(name="July", start={})
    pause = gr.Experiment(
        days[CUT:] + pd.Timedelta("30D"), {"u": U[CUT:]}, {"y": Y[CUT:]}, unit="h", name="after a pause"
    )
    assert "first 10 samples" in fit.predict(pause).attrs["start"] and "leads to" in fit.predict(later).attrs["start"]


def test_another_run_with_the_same_inputs_is_another_run(fit: gr.Fit) -> None:
    """Same instants, same inputs, other measurements: its start is not that of the first."""
    twin = gr.Experiment(T, {"u": U}, {"y": level(2.0, U) + NOISE * RANDOM.normal(size=len(T))}, name="A (train)")
    assert "first 10 samples" in fit.predict(twin).attrs["start"] and rms(fit, twin) < 1.3 * NOISE


def test_what_cannot_be_told_is_refused() -> None:
    class Two(gr.Model):
        """Only the sum of both is seen, and it does not depend on their difference."""

        k, a, b = gr.Parameter(0.3, bounds=(0.01, 5.0)), gr.Variable(start=2.0), gr.Variable(start=2.0)
        y = gr.Output(a + b, noise=NOISE)
        equations = [der(a) == -k * a, der(b) == -k * b]

    path = 4.0 * np.exp(-0.2 * T) + NOISE * RANDOM.normal(size=len(T))
    fit = gr.fit(Two(), gr.Experiment(T, {}, {"y": path}, name="A"), ["k", "start(a)"], METHODS["output error"])
    new = gr.Experiment(T, {}, {"y": 0.5 * path}, name="B", start={"*": None})
    with pytest.raises(gr.EstimationError, match=r"'B' begins in an unknown state.*say nothing about"):
        fit.predict(new)
    short = gr.Experiment(T[:3], {}, {"y": 0.5 * path[:3]}, name="B")
    with pytest.raises(gr.EstimationError, match=r"3 samples are too few to estimate it and to test\. Give start="):
        fit.predict(short)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("known", "start is 'known'; give 'auto', 'declared' or values"),
        ({"x": 1.0}, "names 'x', which is not a variable"),
    ],
)
def test_mistakes(fit: gr.Fit, start: object, words: str) -> None:
    with pytest.raises(gr.EstimationError, match=words):
        fit.predict(OTHER, start=start)


def test_parameters_of_each_record_are_not_invented() -> None:
    two = [TRAIN, OTHER.replace(start={"h": 0.5})]
    fit = gr.fit(Tank(), two, ["k", "start(h)@A (train)"], METHODS["output error"], local=["k"])
    new = gr.Experiment(T, {"u": U}, {"y": level(0.5, U)}, name="C", start={"h": 0.5})
    assert rms(fit, TEST) < 1.3 * NOISE, "a part of the first has its value"
    with pytest.raises(
        gr.EstimationError, match=r"'k' was estimated for each experiment \(k@A \(train\), …\), and 'C'"
    ):
        fit.predict(new)
    assert rms(fit, new.replace(constants={"k": 0.2})) < 1.3 * NOISE


class Pendulum(gr.Model):
    """In Cartesian coordinates: two of four starts may be chosen."""

    g, c = gr.Parameter(9.81), gr.Parameter(0.1, bounds=(0.0, 2.0))
    x, y = gr.Variable(start=0.5), gr.Variable(start=-0.8)
    vx, vy, T = gr.Variable(start=0.0), gr.Variable(start=0.0), gr.Variable()
    angle = gr.Output(gr.atan2(x, -y), noise=1e-3)
    equations = [
        der(x) == vx, der(y) == vy, der(vx) == T * x - c * vx, der(vy) == T * y - c * vy - g, x**2 + y**2 == 1,
    ]  # fmt: skip


def test_hidden_constraints() -> None:
    from scipy.integrate import solve_ivp

    times = np.arange(0.0, 6.0, 0.05)
    swing = solve_ivp(
        lambda t, s: [s[1], -9.81 * np.sin(s[0]) - 0.3 * s[1]], (0, 6), [1.0, 0.0], t_eval=times, rtol=1e-10, atol=1e-12
    ).y[0]
    run = gr.Experiment(times, {}, {"angle": swing + 1e-3 * RANDOM.normal(size=len(times))}, name="swing")
    train, rest = run.split(0.5, restart=True)
    fit = gr.fit(Pendulum(), train, ["c", "start(x)"], gr.OutputError())
    predicted = fit.predict(rest)
    assert "leads to" in predicted.attrs["start"]
    assert np.abs(predicted["angle"].values - swing[60:]).max() < 5e-3
