"""How often intervals under priors hold the truth, noise and unknowns alike: 95 % should, the truth being as believed.

    python benchmarks/prior_coverage.py [study …] [--sets 400]

Every set draws the truth from the priors and the data from the truth, with noise of unknown size, fits by output error
and looks at the table's intervals. Refused are counts that an exact binomial test at 0.1 % refuses (of 400: below 364
or above 393).

tight        twelve slopes, each believed to 1e-4, twenty samples: the data add nothing to the priors
even         the same, believed to 0.15, about what the data tell of them
weak         the same, believed to 100: the data decide
smoothness   a table of nine values with gr.Smoothness(0.1), fifteen samples
two          two outputs of different noise and number, slopes of their own and a common one, half of them believed
alone        the same without priors
decay        a nonlinear model with one believed rate, eight samples
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

import grisaille as gr
from grisaille import der

REFUSED = 1e-3


@dataclass(frozen=True)
class Drawn:
    """One set: what is fitted, and the truth by the names of the table."""

    model: gr.Model
    data: gr.Experiment
    names: list[str]
    priors: dict[str, object]
    truth: dict[str, float]


class Slopes(gr.Model):
    """A plane over twelve inputs."""

    p = gr.Parameter([0.0] * 12, size=12, bounds=(-1e4, 1e4))
    u = gr.Input(size=12)
    y = gr.Output(p @ u)
    equations = []


class Table(gr.Model):
    """A curve with nine unknown values."""

    c = gr.Parameter([0.7] * 9, size=9, bounds=(-9, 9))
    u = gr.Input()
    y = gr.Output(gr.table(u, np.linspace(0, 1, 9), c))
    equations = []


class Two(gr.Model):
    """Two outputs, each with slopes of its own, and a slope that both have."""

    a, b, c, d, e = (gr.Parameter(0.0, bounds=(-1e4, 1e4)) for _ in range(5))
    u, v, w = gr.Input(), gr.Input(), gr.Input()
    y = gr.Output(a * u + b * v + e * w)
    z = gr.Output(c * u + d * v + e * w)
    equations = []


class Decay(gr.Model):
    """A decay with a source."""

    a, b = gr.Parameter(1.0, bounds=(0.01, 10)), gr.Parameter(0.5, bounds=(0.01, 10))
    x = gr.Variable(0.0)
    q = gr.Input()
    y = gr.Output(x)
    equations = [der(x) == a * q - b * x]


def slopes(random: np.random.Generator, std: float) -> Drawn:
    p, u = std * random.standard_normal(12), random.standard_normal((20, 12))
    data = gr.Experiment(
        inputs={f"u[{k}]": u[:, k] for k in range(12)}, outputs={"y": u @ p + 0.5 * random.standard_normal(20)}
    )
    names = [f"p[{k}]" for k in range(12)]
    truth = {**dict(zip(names, p.tolist(), strict=True)), "noise(y)": 0.5}
    return Drawn(Slopes(), data, names, {n: gr.Normal(0.0, std) for n in names}, truth)


def smooth(random: np.random.Generator) -> Drawn:
    """Values that bend as the prior believes: its rows are second differences, with unit variance."""
    knots, scale = np.linspace(0, 1, 9), 0.1
    u = random.uniform(0, 1, 15)
    start = gr.Experiment(inputs={"u": u}, outputs={"y": np.zeros(15)})
    rows = np.array(_smooth_rows(start, scale))
    c = 0.5 + 0.3 * knots + np.linalg.pinv(rows) @ random.standard_normal(len(rows))
    data = start.replace(outputs={"y": np.interp(u, knots, c) + 0.1 * random.standard_normal(15)})
    truth = {**{f"c[{k}]": float(v) for k, v in enumerate(c)}, "noise(y)": 0.1}
    return Drawn(Table(), data, ["c"], {"c": gr.Smoothness(scale)}, truth)


def _smooth_rows(data: gr.Experiment, scale: float) -> np.ndarray:
    from grisaille.estimators.fitting import build_problem

    problem = build_problem(Table(), data, ["c"], gr.OutputError(), priors={"c": gr.Smoothness(scale)})
    return np.asarray(problem.prior(problem.guess).slopes)


def two(random: np.random.Generator, std: float) -> Drawn:
    names, n = ["a", "b", "c", "d", "e"], 12
    p = (std or 1.0) * random.standard_normal(5)
    u, v, w = random.standard_normal((3, n))
    y = p[0] * u + p[1] * v + p[4] * w + 0.5 * random.standard_normal(n)
    z = p[2] * u + p[3] * v + p[4] * w + 0.1 * random.standard_normal(n)
    z[8:] = np.nan
    data = gr.Experiment(inputs={"u": u, "v": v, "w": w}, outputs={"y": y, "z": z})
    truth = {**dict(zip(names, p.tolist(), strict=True)), "noise(y)": 0.5, "noise(z)": 0.1}
    return Drawn(Two(), data, names, {n: gr.Normal(0.0, std) for n in ("a", "c", "e")} if std else {}, truth)


def decay(random: np.random.Generator) -> Drawn:
    b = 0.5 + 0.05 * random.standard_normal()
    t = np.linspace(0, 10, 8)
    q = np.where(t % 4 < 2, 1.0, 0.0)
    x = gr.simulate(Decay(a=1.0, b=b), t, {"q": q})["x"].values
    data = gr.Experiment(t, {"q": q}, {"y": x + 0.1 * random.standard_normal(8)})
    return Drawn(Decay(), data, ["a", "b"], {"b": gr.Normal(0.5, 0.05)}, {"a": 1.0, "b": b, "noise(y)": 0.1})


STUDIES: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "tight": lambda random: slopes(random, 1e-4),
    "even": lambda random: slopes(random, 0.15),
    "weak": lambda random: slopes(random, 100.0),
    "smoothness": smooth,
    "two": lambda random: two(random, 0.2),
    "alone": lambda random: two(random, 0.0),
    "decay": decay,
}


def counted(name: str, sets: int) -> Iterator[tuple[str, int]]:
    """Of each unknown of a study, how many intervals held the truth."""
    held: Counter[str] = Counter()
    for number in range(sets):
        drawn = STUDIES[name](np.random.default_rng([sum(map(ord, name)), number]))
        fit = gr.fit(drawn.model, drawn.data, drawn.names, gr.OutputError(), priors=drawn.priors or None)
        table = fit.parameters
        for unknown, value in drawn.truth.items():
            held[unknown] += int(table.lower[unknown] <= value <= table.upper[unknown])
    yield from held.items()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="STUDY", choices=[*STUDIES, list(STUDIES)], default=list(STUDIES))
    parser.add_argument("--sets", type=int, default=400)
    given = parser.parse_args()
    for name in given.studies:
        begin = time.perf_counter()
        found = dict(counted(name, given.sets))
        refused = [n for n, k in found.items() if binomtest(k, given.sets, 0.95).pvalue < REFUSED]
        told = ", ".join(f"{n} {k}" for n, k in found.items())
        verdict = f"REFUSED {', '.join(refused)}" if refused else "as claimed"
        print(f"{name}, of {given.sets}: {told}: {verdict} [{time.perf_counter() - begin:.0f} s]", flush=True)


if __name__ == "__main__":
    main()
