"""How often the tests of residuals call a right model unhealthy: null fits, rejections at 5 % and 1 %, exact binomial.

    python benchmarks/test_sizes.py [fits] [part of a family's name …] [--store FILE]

Each family draws records of a model by NumPy, fits that model and asks ``fit.diagnose()`` for p values. A test keeps
its size where rejections are not more than the level by the exact one-sided binomial test at 1 %, Holm's correction
over all families, tests and both levels. With a store, fits that were made before are not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
from scipy.stats import binomtest

import grisaille as gr
from grisaille import der

LEVELS = (0.05, 0.01)
ERROR = 0.01
"""Probability of calling a test too large though all keep their size."""
Draw = Callable[[np.random.Generator], gr.Fit]


class Saturation(gr.Model):
    """A static formula with a noise level of its own."""

    a, b = gr.Parameter(1.0, bounds=(0.01, 20.0)), gr.Parameter(0.5, bounds=(0.01, 10.0))
    u, v = gr.Input(), gr.Variable()
    y = gr.Output(v)
    equations = [v == a * (1 - gr.exp(-b * u))]


class Lag(gr.Model):
    """First order, driven by steps."""

    a, b = gr.Parameter(1.0, bounds=(0.01, 20.0)), gr.Parameter(2.0, bounds=(-10.0, 10.0))
    u, x = gr.Input(), gr.Variable(0.5)
    y = gr.Output(x)
    equations = [der(x) == -a * x + b * u]


class QuietLag(Lag):
    """The same with declared noise."""

    y = gr.Output(Lag.x, noise=0.05)


class TwoOutputs(Lag):
    """The same seen twice."""

    y = gr.Output(Lag.x)
    s = gr.Output(Lag.x**2, noise=0.1)


class Wander(gr.Model):
    """Ornstein and Uhlenbeck's process about a mean."""

    a, mu = gr.Parameter(1.0, bounds=(1e-3, 50.0)), gr.Parameter(2.0, bounds=(-10.0, 10.0))
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=1.0)
    y = gr.Output(x, noise=0.3)
    equations = [der(x) == a * (mu - x) + w]


class DrivenWander(Wander):
    """The same with an input."""

    b, u = gr.Parameter(1.0, bounds=(-10.0, 10.0)), gr.Input()
    equations = [der(Wander.x) == -Wander.a * (Wander.x - b * u) + Wander.w]


class Damped(gr.Model):
    """Cubic damping under noise, for the nonlinear filters."""

    a = gr.Parameter(1.0, bounds=(1e-3, 50.0))
    x, u = gr.Variable(0.0), gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -a * x**3 + u + w]


def steps(n: int, each: int) -> np.ndarray:
    """Random steps, the same ones at every call."""
    signs = np.random.default_rng(3).choice([-1.0, 1.0], n // each + 1)
    return np.repeat(signs, each)[:n]


def lagged(u: np.ndarray, h: float) -> np.ndarray:
    """x of ``Lag`` at its true values, exactly."""
    x, e = np.empty(len(u)), np.exp(-h)
    x[0] = 0.5
    for k in range(1, len(u)):
        x[k] = e * x[k - 1] + 2 * (1 - e) * u[k - 1]
    return x


def wandering(random: np.random.Generator, n: int, h: float, mean: np.ndarray) -> np.ndarray:
    """x of ``Wander`` about a mean that is held over each interval."""
    x, e = np.zeros(n), np.exp(-h)
    for k in range(1, n):
        x[k] = mean[k - 1] + (x[k - 1] - mean[k - 1]) * e + np.sqrt((1 - e * e) / 2) * random.standard_normal()
    return x


def static(n: int) -> Draw:
    """Output error of a formula."""
    u = np.linspace(0.1, 5.0, n)
    seen = 1 - np.exp(-0.5 * u)

    def draw(random: np.random.Generator) -> gr.Fit:
        data = gr.Experiment(inputs={"u": u}, outputs={"y": seen + 0.03 * random.standard_normal(n)})
        return gr.fit(Saturation(), data, ["a", "b"], gr.OutputError())

    return draw


def lag(model: type[gr.Model], n: int, missing: float = 0.0, outputs: int = 1, **options: object) -> Draw:
    """Output error of a lag; a part of the samples may be missing."""
    h = 0.1
    t, u = h * np.arange(n), steps(n, 10)
    x = lagged(u, h)

    def draw(random: np.random.Generator) -> gr.Fit:
        y = x + 0.05 * random.standard_normal(n)
        y[random.random(n) < missing] = np.nan
        seen = {"y": y} if outputs == 1 else {"y": y, "s": x**2 + 0.1 * random.standard_normal(n)}
        return gr.fit(model(), gr.Experiment(t, {"u": u}, seen), ["a", "b", "start(x)"], gr.OutputError(**options))

    return draw


def records(count: int, n: int) -> Draw:
    """Output error of several records with one noise level."""
    h = 0.1
    t, u = h * np.arange(n), steps(n, 7)
    x = lagged(u, h)

    def draw(random: np.random.Generator) -> gr.Fit:
        data = [gr.Experiment(t, {"u": u}, {"y": x + 0.05 * random.standard_normal(n)}) for _ in range(count)]
        return gr.fit(Lag(), data, ["a", "b"], gr.OutputError())

    return draw


def wander(n: int, unknowns: tuple[str, ...], driven: bool = False, filter: str = "auto") -> Draw:
    """The Kalman filter's innovations."""
    h, model = 0.3, DrivenWander if driven else Wander
    t, u = h * np.arange(n), steps(n, 6)
    mean = u if driven else np.full(n, 2.0)

    def draw(random: np.random.Generator) -> gr.Fit:
        y = wandering(random, n, h, mean) + 0.3 * random.standard_normal(n)
        data = gr.Experiment(t, {"u": u} if driven else {}, {"y": y})
        return gr.fit(model(), data, list(unknowns), gr.KalmanML(filter=filter))

    return draw


def damped(n: int, filter: str) -> Draw:
    """A nonlinear filter; paths by Euler's method with steps of 2 ms."""
    h, inner = 0.2, 100
    t, u = h * np.arange(n), 2 * steps(n, 8)

    def draw(random: np.random.Generator) -> gr.Fit:
        x, seen = 0.0, np.empty(n)
        for k in range(n):
            seen[k] = x
            for z in 0.5 * np.sqrt(h / inner) * random.standard_normal(inner):
                x += h / inner * (u[k] - x**3) + z
        data = gr.Experiment(t, {"u": u}, {"y": seen + 0.1 * random.standard_normal(n)})
        return gr.fit(Damped(), data, ["a", "scale(w)"], gr.KalmanML(filter=filter))

    return draw


def simulated(n: int, realizations: int, count: int = 1, **options: object) -> Draw:
    """Errors of a simulated mean against those of simulated records."""
    h = 0.3
    t, u = h * np.arange(n), steps(n, 6)

    def draw(random: np.random.Generator) -> gr.Fit:
        paths = [wandering(random, n, h, u) + 0.3 * random.standard_normal(n) for _ in range(count)]
        method = gr.SimulatedPEM(realizations=realizations, seed=int(random.integers(1 << 30)), **options)
        return gr.fit(DrivenWander(), [gr.Experiment(t, {"u": u}, {"y": y}) for y in paths], ["a", "b"], method)

    return draw


ALL = ("a", "mu", "scale(w)", "noise(y)")
FAMILIES: dict[str, tuple[float, Draw]] = {
    "formula, n = 30": (1, static(30)),
    "lag, n = 41": (1, lag(Lag, 41)),
    "lag, n = 60, noise known": (1, lag(QuietLag, 60)),
    "OU, n = 60, levels estimated": (1, wander(60, ALL)),
    "OU, n = 60, levels known": (1, wander(60, ("a", "mu"))),
    "OU driven, n = 60, levels estimated": (1, wander(60, ("a", "b", "scale(w)", "noise(y)"), driven=True)),
    "lag, n = 60, 30 % missing": (0.25, lag(Lag, 60, missing=0.3)),
    "lag, n = 60, two outputs": (0.25, lag(TwoOutputs, 60, outputs=2)),
    "lag, three records of n = 30": (0.25, records(3, 30)),
    "lag, n = 60, multiple shooting": (0.1, lag(Lag, 60, shooting="multiple")),
    "cubic, n = 60, extended filter": (0.1, damped(60, "extended")),
    "cubic, n = 60, unscented filter": (0.1, damped(60, "unscented")),
    "OU driven, n = 200, simulated PEM": (0.25, simulated(200, 200)),
    "OU driven, n = 60, simulated PEM": (0.25, simulated(60, 200)),
    "OU driven, three records of n = 40, simulated PEM": (0.1, simulated(40, 100, 3)),
    "OU driven, n = 60, simulated PEM of mean and variance": (0.25, simulated(60, 100, match="mean-variance")),
}
"""Part of the fits that each takes, by cost, and how one is made."""


@dataclass(frozen=True)
class Count:
    """Rejections of one test of one family at one level."""

    family: str
    test: str
    level: float
    rejected: int
    fits: int

    @property
    def p(self) -> float:
        """Of so many or more rejections by a test that keeps its size."""
        return float(binomtest(self.rejected, self.fits, self.level, alternative="greater").pvalue)


def draws(family: str, draw: Draw, fits: int, store: Path | None) -> dict[str, list[float]]:
    """p values of every test over null fits, from where the store has them."""
    kept = json.loads(store.read_text()) if store and store.exists() else {}
    mine = kept.get(family, {"fits": 0, "p": {}})
    found: dict[str, list[float]] = mine["p"]
    for k in range(mine["fits"], fits):
        random = np.random.default_rng([1, crc32(family.encode()), k])
        for verdict in draw(random).diagnose().verdicts:
            if np.isfinite(verdict.p):
                found.setdefault(verdict.test, []).append(verdict.p)
        if store and (k % 20 == 19 or k == fits - 1):
            kept = json.loads(store.read_text()) if store.exists() else {}
            beside = store.with_suffix(".part")
            beside.write_text(json.dumps({**kept, family: {"fits": k + 1, "p": found}}))
            os.replace(beside, store)
    return found


def count(family: str, found: dict[str, list[float]]) -> list[Count]:
    """Rejections at both levels."""
    return [
        Count(family, test, level, int((np.array(p) < level).sum()), len(p))
        for test, p in found.items()
        for level in LEVELS
    ]


def holm(p: list[float]) -> list[float]:
    """Adjusted p values."""
    order, worst, adjusted = np.argsort(p), 0.0, [0.0] * len(p)
    for rank, k in enumerate(order):
        worst = max(worst, min(1.0, p[k] * (len(p) - rank)))
        adjusted[k] = worst
    return adjusted


def main(fits: int, wanted: list[str], store: Path | None) -> None:
    """Print a row for each test, and the verdict."""
    counts: list[Count] = []
    for family, (part, draw) in FAMILIES.items():
        if wanted and not any(w in family for w in wanted):
            continue
        begun = time.process_time()
        mine = count(family, draws(family, draw, max(2, round(part * fits)), store))
        counts += mine
        told = "; ".join(
            f"{a.test} {100 * a.rejected / a.fits:.1f} / {100 * b.rejected / b.fits:.2f}"
            for a, b in zip(mine[::2], mine[1::2], strict=True)
        )
        print(f"{family} ({mine[0].fits} series, {time.process_time() - begun:.0f} s): {told}", flush=True)
    adjusted = holm([c.p for c in counts])
    large = [(c, p) for c, p in zip(counts, adjusted, strict=True) if p < ERROR]
    for c, p in large:
        print(f"too often: {c.family}, {c.test}, {c.rejected} of {c.fits} at {c.level:g} (p = {p:.2g} by Holm)")
    print(f"{len(large)} of {len(counts)} rates are above their level; smallest p by Holm {min(adjusted):.2g}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fits", type=int, nargs="?", default=2000)
    parser.add_argument("family", nargs="*")
    parser.add_argument("--store", type=Path, default=None)
    chosen = parser.parse_args()
    main(chosen.fits, chosen.family, chosen.store)
