"""Six models measured by six laws, with trajectories from closed forms and SciPy, for ``law_coverage.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import grisaille as gr
from grisaille import der

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Case:
    """A model, its truth, and how its output ``y`` is drawn.

    plan : experiments whose values of ``y`` are replaced; samples that are NaN stay so
    means : the predictions of each at the truth
    draw : values of (random numbers, predictions)
    """

    model: gr.Model
    truth: dict[str, float]
    plan: tuple[gr.Experiment, ...]
    means: tuple[np.ndarray, ...]
    draw: Draw

    def data(self, seed: int, number: int) -> list[gr.Experiment]:
        """Return one set of data."""
        random, drawn = np.random.default_rng([seed, number]), []
        for k, (experiment, mean) in enumerate(zip(self.plan, self.means, strict=True)):
            y = np.where(np.isnan(experiment.outputs["y"].values), np.nan, self.draw(random, mean))
            drawn.append(experiment.replace(outputs={"y": y}, name=f"set {number}, experiment {k + 1}"))
        return drawn


def static() -> Case:
    """Counts of a detector that saturates."""

    class Saturation(gr.Model):
        top, half = gr.Parameter(40.0, bounds=(1.0, 500.0)), gr.Parameter(1.0, bounds=(0.05, 20.0))
        size = gr.Parameter(5.0, bounds=(0.1, 1000.0))
        dose, rate = gr.Input(), gr.Variable()
        y = gr.Output(rate, distribution=gr.laws.NegativeBinomial(size=size))
        equations = [rate == top * dose / (half + dose)]

    dose = np.linspace(0.2, 4.0, 120)
    plan = gr.Experiment(inputs={"dose": dose}, outputs={"y": 0 * dose})
    mean = 50 * dose / (0.8 + dose)
    return Case(
        Saturation(), {"top": 50.0, "half": 0.8, "size": 8.0}, (plan,), (mean,),
        lambda r, m: r.negative_binomial(8.0, 8.0 / (8.0 + m)).astype(float),
    )  # fmt: skip


def ordinary() -> Case:
    """How many of a changing number have survived."""

    class Survival(gr.Model):
        k, late = gr.Parameter(0.2, bounds=(0.01, 3.0)), gr.Parameter(0.1, bounds=(-1.0, 1.0))
        n, alive = gr.Input(), gr.Variable(start=1.0)
        y = gr.Output(n * alive, distribution=gr.laws.Binomial(n=n))
        equations = [der(alive) == -(k + late * gr.time / 10) * alive]

    t = np.linspace(0.0, 8.0, 60)
    n = 10.0 + np.arange(60) % 17
    plan = gr.Experiment(t, {"n": n}, {"y": 0 * t})
    mean = n * np.exp(-0.3 * t - 0.2 * t**2 / 20)
    return Case(
        Survival(), {"k": 0.3, "late": 0.2}, (plan,), (mean,),
        lambda r, m: r.binomial(n.astype(int), m / n).astype(float),
    )  # fmt: skip


def index_one() -> Case:
    """A tank whose outflow solves an equation, measured with an error in proportion."""

    class Leak(gr.Model):
        c, shape = gr.Parameter(0.5, bounds=(0.05, 5.0)), gr.Parameter(30.0, bounds=(1.0, 1000.0))
        h, q = gr.Variable(start=4.0), gr.Variable(start=1.0)
        y = gr.Output(q, distribution=gr.laws.Gamma(shape=shape))
        equations = [der(h) == -q, q + q**3 / 10 == c * h]

    def flow(h: float) -> float:
        return float(brentq(lambda q: q + q**3 / 10 - 0.6 * h, 0.0, 10.0, xtol=1e-14))

    t = np.linspace(0.0, 6.0, 120)
    h = solve_ivp(lambda _, h: [-flow(h[0])], (0, 6), [4.0], t_eval=t, rtol=1e-10, atol=1e-12).y[0]
    mean = np.array([flow(v) for v in h])
    plan = gr.Experiment(t, {}, {"y": 0 * t})
    return Case(Leak(), {"c": 0.6, "shape": 50.0}, (plan,), (mean,), lambda r, m: r.gamma(50.0, m / 50.0))


def index_three() -> Case:
    """A pendulum in Cartesian coordinates, with a sensor that has outliers."""

    class Pendulum(gr.Model):
        k, s = gr.Parameter(0.2, bounds=(0.0, 2.0)), gr.Parameter(0.05, bounds=(1e-3, 1.0))
        x, down = gr.Variable(start=1.0, fixed=True), gr.Variable(start=0.0)
        vx, vy, tension = gr.Variable(start=0.0), gr.Variable(start=0.0, fixed=True), gr.Variable()
        y = gr.Output(x, distribution=gr.laws.Student(df=4.0, scale=s))
        equations = [
            der(x) == vx, der(down) == vy, der(vx) == -tension * x - k * vx,
            der(vy) == -tension * down - k * vy - 9.81, x**2 + down**2 == 1.0,
        ]  # fmt: skip

    t = np.linspace(0.0, 3.0, 120)
    angle = solve_ivp(
        lambda _, a: [a[1], -9.81 * np.sin(a[0]) - 0.3 * a[1]], (0, 3), [np.pi / 2, 0.0], t_eval=t, rtol=1e-10,
        atol=1e-12,
    ).y[0]  # fmt: skip
    plan = gr.Experiment(t, {}, {"y": 0 * t})
    return Case(
        Pendulum(), {"k": 0.3, "s": 0.03}, (plan,), (np.sin(angle),),
        lambda r, m: m + 0.03 * r.standard_t(4.0, len(m)),
    )  # fmt: skip


def two_experiments() -> Case:
    """Growth from two starts, with errors that are factors."""

    class Growth(gr.Model):
        r, s = gr.Parameter(0.3, bounds=(0.01, 3.0)), gr.Parameter(0.2, bounds=(0.01, 2.0))
        most, first = gr.Parameter(8.0, bounds=(1.0, 100.0)), gr.Parameter(1.0)
        b = gr.Variable(start=first)
        y = gr.Output(b, distribution=gr.laws.LogNormal(log_std=s))
        equations = [der(b) == r * b * (1 - b / most)]

    plan, means = [], []
    for count, end, first in ((70, 12.0, 1.0), (50, 9.0, 3.0)):
        t = np.linspace(0.0, end, count)
        plan.append(gr.Experiment(t, {}, {"y": 1 + 0 * t}, constants={"first": first}))
        means.append(10 / (1 + (10 / first - 1) * np.exp(-0.5 * t)))
    return Case(
        Growth(), {"r": 0.5, "most": 10.0, "s": 0.1}, tuple(plan), tuple(means),
        lambda r, m: m * np.exp(0.1 * r.standard_normal(len(m))),
    )  # fmt: skip


def gaps() -> Case:
    """A decay of which samples are missing, and others lie below a limit of detection that is a column."""

    class Assay(gr.Model):
        k, first = gr.Parameter(0.2, bounds=(0.01, 3.0)), gr.Parameter(4.0, bounds=(0.1, 100.0))
        s, limit = gr.Parameter(0.3, bounds=(0.01, 3.0)), gr.Input()
        c = gr.Variable(start=first)
        y = gr.Output(c, distribution=gr.laws.Censored(below=limit, of=gr.laws.LogNormal(log_std=s)))
        equations = [der(c) == -k * c]

    t = np.linspace(0.0, 10.0, 150)
    limit = np.where(np.arange(150) % 2 == 0, 0.6, 0.3)
    y = np.where(np.arange(150) % 5 == 3, np.nan, 1.0)
    return Case(
        Assay(), {"k": 0.3, "first": 5.0, "s": 0.2}, (gr.Experiment(t, {"limit": limit}, {"y": y}),),
        (5 * np.exp(-0.3 * t),), lambda r, m: np.maximum(m * np.exp(0.2 * r.standard_normal(len(m))), limit),
    )  # fmt: skip


MODELS: dict[str, Callable[[], Case]] = {
    "static": static, "ode": ordinary, "index-1": index_one, "index-3": index_three,
    "two-experiments": two_experiments, "gaps": gaps,
}  # fmt: skip
