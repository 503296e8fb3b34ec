"""How often residual tests refuse right models whose outputs have laws: 1 % and 5 % of null fits should be refused.

    python benchmarks/law_residuals.py [law …] [--sets 1000] [--samples 60]

Each set is drawn with its own seed, fitted, and its randomised quantile residuals are tested as ``fit.diagnose()``
does. Printed are, for each law and test, the shares of p values below 1 % and 5 %; marked is what an exact binomial
test at 0.1 % refuses as too often. Sets have names of their own, and so random numbers of their own by which counts
are spread: sizes hold over both. Tests of normality and of size are allowed to be refused less often: estimated
numbers of a law make residuals more like it than those of the truth are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

import grisaille as gr

LEVELS = (0.01, 0.05)
REFUSED = 1e-3
Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


class Plain(gr.Model):
    """A decay over the rows of a table, with an input of its own that the output follows."""

    u, t = gr.Input(), gr.Input()
    k = gr.Parameter(0.3, bounds=(0.01, 3.0))
    b = gr.Parameter(1.0, bounds=(1e-3, 1e3))
    s = gr.Parameter(1.0, bounds=(1e-2, 1e3))


def _mean(m: type[Plain]) -> object:
    return m.b * (gr.exp(-m.k * m.t) + 0.2 + 0.1 * m.u)


class FewCounts(Plain):
    y = gr.Output(_mean(Plain), distribution=gr.laws.Poisson())


class Dispersed(Plain):
    y = gr.Output(_mean(Plain), distribution=gr.laws.NegativeBinomial(size=Plain.s))


class HeavyTails(Plain):
    y = gr.Output(_mean(Plain), distribution=gr.laws.Student(df=4.0, scale=Plain.s))


class Skewed(Plain):
    y = gr.Output(_mean(Plain), distribution=gr.laws.Gamma(shape=Plain.s))


class Relative(Plain):
    y = gr.Output(_mean(Plain), distribution=gr.laws.LogNormal(log_std=Plain.s))


class BelowLimit(Plain):
    limited = gr.laws.Censored(below=1.0, of=gr.laws.LogNormal(log_std=Plain.s))
    y = gr.Output(_mean(Plain), distribution=limited)


class InSteps(Plain):
    y = gr.Output(_mean(Plain), distribution=gr.laws.Rounded(step=0.5, of=gr.laws.Normal(std=Plain.s)))


@dataclass(frozen=True)
class Study:
    """A model, its true values, and how its data are drawn around the location, by NumPy alone."""

    model: type[Plain]
    b: float
    s: float
    draw: Draw
    estimated: tuple[str, ...] = ("k", "b", "s")


STUDIES = {
    "Poisson": Study(FewCounts, 2.0, 1.0, lambda g, m: g.poisson(m), ("k", "b")),
    "NegativeBinomial": Study(Dispersed, 6.0, 2.0, lambda g, m: g.negative_binomial(2.0, 2.0 / (2.0 + m))),
    "Student": Study(HeavyTails, 3.0, 0.3, lambda g, m: m + 0.3 * g.standard_t(4.0, len(m))),
    "Gamma": Study(Skewed, 3.0, 2.0, lambda g, m: g.gamma(2.0, m / 2.0)),
    "LogNormal": Study(Relative, 3.0, 0.4, lambda g, m: m * np.exp(0.4 * g.standard_normal(len(m)))),
    "Censored": Study(BelowLimit, 3.0, 0.4, lambda g, m: np.maximum(m * np.exp(0.4 * g.standard_normal(len(m))), 1.0)),
    "Rounded": Study(InSteps, 3.0, 0.3, lambda g, m: 0.5 * np.round((m + 0.3 * g.standard_normal(len(m))) / 0.5)),
}


def p_values(study: Study, seed: int, samples: int = 60) -> dict[str, float]:
    """Return the p value of each test of one null fit."""
    random = np.random.default_rng(seed)
    t, u = np.linspace(0.0, 8.0, samples), random.standard_normal(samples).cumsum() * 0.2
    u = np.clip(u, -1.0, 1.0)
    location = study.b * (np.exp(-0.3 * t) + 0.2 + 0.1 * u)
    y = study.draw(random, location).astype(float)
    table = gr.Experiment(inputs={"t": t, "u": u}, outputs={"y": y}, name=f"set {seed}")
    model = study.model().replace({"b": study.b, "s": study.s})
    fit = gr.fit(model, table, list(study.estimated))
    return {v.test: v.p for v in fit.diagnose().verdicts}


def shares(study: Study, sets: int, samples: int) -> Iterator[tuple[str, int, np.ndarray]]:
    """Return of each test how many sets there were, and how many p values lay below each level."""
    drawn = [p_values(study, seed, samples) for seed in range(sets)]
    for test in dict.fromkeys(name for found in drawn for name in found):
        p = np.array([found[test] for found in drawn if np.isfinite(found.get(test, np.nan))])
        yield test, len(p), np.array([int(np.sum(p < level)) for level in LEVELS])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("laws", nargs="*", choices=[*STUDIES, []], default=[])
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--samples", type=int, default=60)
    asked = parser.parse_args()
    for name in asked.laws or STUDIES:
        print(f"{name}, {asked.sets} null fits of {asked.samples} samples", flush=True)
        for test, count, below in shares(STUDIES[name], asked.sets, asked.samples):
            most = [int(binom.isf(REFUSED, count, level)) for level in LEVELS]
            mark = "  TOO OFTEN" if any(n > limit for n, limit in zip(below, most, strict=True)) else ""
            said = ", ".join(f"{n / count:.1%} below {level:.0%}" for n, level in zip(below, LEVELS, strict=True))
            print(f"  {test:<18}{said}{mark}", flush=True)


if __name__ == "__main__":
    main()
