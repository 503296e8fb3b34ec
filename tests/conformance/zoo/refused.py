"""What no estimator can do anything with: the same sentence by all of them."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from conformance.entry import Entry
from grisaille import der

TIMES = np.linspace(0.0, 10.0, 21)
STEPS = np.where(TIMES % 5 < 2.4, 1.0, 0.2)
SEEN = 1.0 + 0.5 * np.sin(TIMES)
WAVES = gr.spectra.lowpass(bandwidth=1.0)


class Impulse(gr.Model):
    """A speed that must jump when the track does: index reduction differentiates a jump of time, an impulse."""

    d = gr.Parameter(0.5, bounds=(0.01, 5.0))
    v, force = gr.Variable(0.0), gr.Variable()
    w = gr.Disturbance(WAVES, scale=0.1)
    y = gr.Output(force, noise=0.05)
    equations = [der(v) == force - d * v + w, v == gr.where(gr.time > 4.0, 1.0, 0.0)]


class Relay(gr.Model):
    """The same with a jump of a state."""

    d = gr.Parameter(0.5, bounds=(0.01, 5.0))
    v, force, x = gr.Variable(0.0), gr.Variable(), gr.Variable(0.0)
    w = gr.Disturbance(WAVES, scale=0.1)
    y = gr.Output(force, noise=0.05)
    equations = [der(v) == force - d * v + w, v == gr.where(x > 1.0, 1.0, 0.0), der(x) == 0.5 - 0.1 * x]


class Stairs(gr.Model):
    """The same with a held input."""

    d = gr.Parameter(0.5, bounds=(0.01, 5.0))
    v, force, u = gr.Variable(1.0), gr.Variable(), gr.Input()
    w = gr.Disturbance(WAVES, scale=0.1)
    y = gr.Output(force, noise=0.05)
    equations = [der(v) == force - d * v + w, v == u]


class Threshold(gr.Model):
    """Where a known signal passes an unknown threshold, no derivative tells."""

    level = gr.Parameter(0.5, bounds=(0.1, 0.9))
    x, u = gr.Variable(1.0), gr.Input()
    w = gr.Disturbance(WAVES, scale=0.1)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == gr.where(u > level, 1.0, 0.0) - x + w]


class Instant(gr.Model):
    """A jump at an instant that is to be estimated."""

    begin = gr.Parameter(4.0, bounds=(1.0, 9.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(WAVES, scale=0.1)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == gr.where(gr.time > begin, 1.0, 0.0) - x + w]


class Flicker(gr.Model):
    """White noise that is measured: its variance is infinite."""

    a, x = gr.Parameter(0.5, bounds=(0.01, 5.0)), gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x + w, noise=0.05)
    equations = [der(x) == 1 - a * x]


class Plain(gr.Model):
    """Nothing is wrong with it."""

    a, b = gr.Parameter(0.5, bounds=(0.01, 5.0)), gr.Parameter(1.0, bounds=(0.1, 10.0))
    x, u = gr.Variable(1.0), gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == b * u - a * x + w]


class Twice(gr.Model):
    """Two equations that say the same."""

    a = gr.Parameter(0.5, bounds=(0.01, 5.0))
    x, z = gr.Variable(1.0), gr.Variable()
    w = gr.Disturbance(WAVES, scale=0.1)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -a * x + w, der(x) + a * x == w]


def _made(model: gr.Model, times: np.ndarray = TIMES, **options: object) -> tuple[gr.Model, list[gr.Experiment]]:
    inputs = {"u": STEPS[: len(times)]} if isinstance(model, Stairs | Threshold | Plain) else {}
    settings = {"inputs": inputs, "outputs": {"y": SEEN[: len(times)]}, "name": "run", **options}
    return model, [gr.Experiment(times, **settings)]


def _entry(name: str, about: str, model: type[gr.Model], unknowns: list[str], refused: str, **options: object) -> Entry:
    truth = dict.fromkeys(unknowns, 0.5)
    return Entry(name, about, lambda: _made(model(), **options), truth, refused=refused)


ENTRIES = [
    _entry("impulse", "a differentiated jump of time", Impulse, ["d"], "Index reduction differentiates"),
    _entry("relay", "a differentiated jump of a state", Relay, ["d"], "Index reduction differentiates"),
    _entry("stairs", "a differentiated held input", Stairs, ["d"], "Index reduction differentiates the input 'u'"),
    _entry("threshold", "an unknown threshold of an input", Threshold, ["level"], "moves the threshold of 'level<u'"),
    _entry("instant", "an unknown instant of a jump", Instant, ["begin"], "begin"),
    _entry("flicker", "white noise is measured", Flicker, ["a"], "infinite variance"),
    _entry("twice", "dependent equations", Twice, ["a"], "Twice"),
    _entry(
        "short",
        "fewer data than unknowns",
        Plain,
        ["a", "b", "start(x)"],
        "measurements cannot determine",
        times=TIMES[:2],
    ),
    _entry("stranger", "an unknown that is not there", Plain, ["aa"], "'aa'"),
    _entry("unfed", "an input is missing", Plain, ["a"], "'u'", inputs={}),
    _entry("unseen", "an output that the model has not", Plain, ["a"], "'z'", outputs={"z": SEEN}),
    _entry("blind", "nothing but gaps", Plain, ["a"], "y", outputs={"y": np.nan * SEEN}),
    _entry("demanding", "a start of a quantity that has none", Plain, ["a"], "'q'", start={"q": 1.0}),
]
