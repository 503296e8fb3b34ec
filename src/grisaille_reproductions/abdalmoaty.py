"""The pendulum of a study on disturbed differential-algebraic models, with both settings that are known of it.

::

    m ẍ = λ x − k |ẋ| ẋ + u + w²,   m ÿ = λ y − k |ẏ| ẏ − m g,   x² + y² = L²,   φ = arctan(x/−y) + v

u, a known path, and w are scaled paths of 1/(s² + 0.8 s + 16) from zero, straight between points 0.01 s apart; φ is
measured every 0.1 s. The text of the source estimates L; its published program estimates k, with other scales.

Source: M. Abdalmoaty, O. Eriksson, R. Bereza, D. Broman, H. Hjalmarsson, Identification of non-linear
differential-algebraic equation models with process disturbances (2021), section V.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

import grisaille as gr
from grisaille import atan2, der
from grisaille.disturbance import build_process, sample_path

SPACING, SAMPLING, TRANSIENT = 0.01, 0.1, 500
"""Points of the paths [s], measurements [s], and how many of these are left out."""
SHAPE = gr.spectra.resonance(frequency=4.0, damping=0.1, start="zero")
TRUTH = 6.25
"""Of L [m] in the text, of k [kg/m] in the program."""


class Pendulum(gr.Model):
    """Index 3; values are those of the program."""

    m, g = gr.Parameter(0.3, "kg"), gr.Parameter(9.81, "m/s2")
    k = gr.Parameter(TRUTH, "kg/m", bounds=(0.05, 30.0))
    L = gr.Parameter(TRUTH, "m", bounds=(1.0, 30.0))
    x, y = gr.Variable(0.0, "m"), gr.Variable(-L, "m")
    vx, vy = gr.Variable(0.0, "m/s"), gr.Variable(0.0, "m/s")
    tension = gr.Variable()
    u = gr.Input("N")
    w = gr.Disturbance(SHAPE, scale=0.6)
    phi = gr.Output(atan2(x, -y), noise=0.002, unit="rad")
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * abs(vx) * vx + u + w**2,
        m * der(vy) == tension * y - k * abs(vy) * vy - m * g,
        x**2 + y**2 == L**2,
    ]


@dataclass(frozen=True)
class Settings:
    """One of the two studies."""

    name: str
    unknown: str
    k: float
    input_scale: float
    disturbance_scale: float
    noise: float

    def model(self) -> Pendulum:
        w = gr.Disturbance(SHAPE, scale=self.disturbance_scale)
        return Pendulum(k=self.k, w=w, phi=gr.Output(atan2(Pendulum.x, -Pendulum.y), noise=self.noise, unit="rad"))

    def inputs(self, samples: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        t, path = known_path(samples)
        return {"u": (t, self.input_scale * path)}

    def plan(self, samples: int) -> gr.Experiment:
        """An experiment without its measurements."""
        t = times(samples)
        outputs = {"phi": np.zeros(t.size)}
        return gr.Experiment(t, self.inputs(samples), outputs, hold="foh", skip=TRANSIENT, name=self.name)


# the text calls 0.002 the variance of the measurement noise, the program takes it as standard deviation
PRINTED = Settings("text", "L", k=0.05, input_scale=0.6, disturbance_scale=0.2, noise=0.002**0.5)
PROGRAM = Settings("program", "k", k=TRUTH, input_scale=0.2, disturbance_scale=0.6, noise=0.002)


def times(samples: int) -> np.ndarray:
    """When φ is measured: the start and ``samples`` instants after it."""
    return SAMPLING * np.arange(samples + 1)


@cache
def known_path(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """One path of the filter, the same for every length; its seed is ours, the source does not give its path."""
    t = SPACING * np.arange(round(samples * SAMPLING / SPACING) + 1)
    process = build_process(["u"], [SHAPE], [1.0])
    return t, sample_path(process, t, 99)[0] @ process.C[0]
