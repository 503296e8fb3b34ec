"""How often intervals of simulated prediction errors hold the truth, and how often a miss is marked.

    python benchmarks/simulated_pem_coverage.py [SETS [PROBLEM …]]

Every set is one simulated record, fitted with random numbers of its own. For each problem and unknown: mean and
standard deviation of the estimates, the median of the standard errors, how many 95 % intervals hold the truth with the
exact binomial p, how many tables are marked (``std. error*``, ``std. error!``, or a status that says NOT), and how many
of the misses are.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import binom

import grisaille as gr
from grisaille import der

LOWPASS = gr.spectra.lowpass


class Thermostat(gr.Model):
    """A room between two temperatures at which its heater switches; the weather disturbs."""

    low = gr.Parameter(19.0)
    band = gr.Parameter(2.4, bounds=(0.5, 6.0))
    tau = gr.Parameter(3.0, bounds=(0.5, 20.0))
    T = gr.Variable(18.0)
    on = gr.Discrete(1)
    w = gr.Disturbance(gr.spectra.matern12(2.0), scale=1.0)
    y = gr.Output(T, noise=0.1)
    equations = [
        der(T) == (10.0 + w - T) / tau + 8.0 * on,
        gr.when(T > low + band, on == 0).otherwise(T < low, on == 1),
    ]


class Assay(gr.Model):
    """A pool that is measured at once, and late in another place."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    tau = gr.Parameter(1.7, bounds=(0.1, 4.0))
    x = gr.Variable(1.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.matern12(2.0), scale=0.1)
    y = gr.Output(x, noise=0.05)
    late = gr.Output(gr.delay(x, tau), noise=0.05)
    equations = [der(x) == u - k * x + w]


class Overflow(gr.Model):
    """A tank with a second outlet that opens at a level."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    c = gr.Parameter(1.5, bounds=(0.3, 4.0))
    h = gr.Variable(0.5)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.matern12(1.0), scale=0.3)
    y = gr.Output(h, noise=0.05)
    equations = [der(h) == u - k * h - gr.where(h > c, 0.6, 0.0) + w]


class Waves(gr.Model):
    """A basin that waves fill."""

    a = gr.Parameter(1.2, bounds=(0.1, 5.0))
    level = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(LOWPASS(2.0), scale=1.0)
    y = gr.Output(level, noise=0.01)
    equations = [der(level) == -a * level + u + 0.8 * w**2]


class Bursts(gr.Model):
    """Gains that are log-normal."""

    a = gr.Parameter(0.8, bounds=(0.1, 5.0))
    x = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(LOWPASS(1.0), scale=1.0)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -a * x + u + 0.5 * gr.exp(w)]


class Growth(gr.Model):
    """A rate that is disturbed."""

    a = gr.Parameter(0.8, bounds=(0.1, 5.0))
    x = gr.Variable(1.0)
    u = gr.Input()
    w = gr.Disturbance(LOWPASS(2.0), scale=0.5)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -a * x + u + w * x]


class Cascade(gr.Model):
    """Two basins, both measured."""

    a = gr.Parameter(0.8, bounds=(0.1, 5.0))
    b = gr.Parameter(0.5, bounds=(0.05, 5.0))
    x = gr.Variable(0.0)
    z = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(LOWPASS(2.0), scale=1.0)
    y = gr.Output(x, noise=0.05)
    q = gr.Output(z, noise=0.02)
    equations = [der(x) == -a * x + u + 0.8 * w**2, der(z) == -b * z + x]


@dataclass(frozen=True)
class Study:
    """One problem: what is simulated, and how it is fitted."""

    model: type[gr.Model]
    truth: Mapping[str, float]
    guess: Mapping[str, float]
    end: float
    samples: int
    realizations: int
    options: Mapping[str, Any] = field(default_factory=dict)
    forced: bool = True

    def inputs(self, times: np.ndarray) -> dict[str, np.ndarray]:
        return {"u": 1.0 + np.sign(np.sin(0.5 * times))} if self.forced else {}


BOTH, ROUGHLY = {"match": "mean-variance"}, {"rtol": 1e-3}
STUDIES = {
    "thermostat": Study(Thermostat, {"band": 2.4, "tau": 3.0}, {"band": 2.0, "tau": 2.5}, 6.0, 61, 50, ROUGHLY, False),
    "delayed output": Study(Assay, {"k": 0.5, "tau": 1.7}, {"k": 0.4, "tau": 1.0}, 20.0, 41, 40, ROUGHLY),
    "threshold": Study(Overflow, {"k": 0.5, "c": 1.5}, {"k": 0.4, "c": 1.2}, 20.0, 81, 50, ROUGHLY),
    "few realizations": Study(Waves, {"a": 1.2}, {"a": 0.8}, 40.0, 201, 10),
    "w²": Study(Waves, {"a": 1.2, "scale(w)": 1.0}, {"a": 0.8}, 40.0, 201, 200, BOTH),
    "exp(w)": Study(Bursts, {"a": 0.8, "scale(w)": 1.0}, {}, 30.0, 121, 200, BOTH),
    "w·x": Study(Growth, {"a": 0.8, "scale(w)": 0.5}, {}, 30.0, 121, 200, BOTH),
    "w², two outputs": Study(Cascade, {"a": 0.8, "b": 0.5, "scale(w)": 1.0}, {}, 30.0, 121, 200, BOTH),
}


@dataclass(frozen=True)
class Outcome:
    """What one set gave."""

    estimates: Sequence[float]
    errors: Sequence[float]
    held: Sequence[bool]
    marked: bool


def run(study: Study, sets: int, seed: int = 4321) -> tuple[list[Outcome], int]:
    """Fit every set; give what came out, and how many did not converge or were refused."""
    times = np.linspace(0.0, study.end, study.samples)
    inputs = study.inputs(times)
    truth = gr.simulate(study.model(), times, inputs, dict(study.truth), realizations=sets, seed=seed, noise=True)
    outputs = [o for o in ("y", "q", "late") if o in truth]
    found, lost = [], 0
    for i in range(sets):
        data = gr.Experiment(times, inputs, {o: truth[o].values[i] for o in outputs})
        method = gr.SimulatedPEM(realizations=study.realizations, seed=1000 + i, **study.options)
        try:
            fit = gr.fit(study.model(), data, list(study.truth), method, guess=dict(study.guess), progress=False)
        except gr.GrisailleError as error:
            print("  refused:", str(error)[:150], flush=True)
            lost += 1
            continue
        if not fit.converged:
            print("  ", fit.status[:150], flush=True)
            lost += 1
            continue
        table = fit.intervals()
        inside = [bool(table.loc[n, "lower"] <= v <= table.loc[n, "upper"]) for n, v in study.truth.items()]
        heading = next(line for line in str(fit).splitlines() if "std. error" in line)
        marked = "std. error*" in heading or "std. error!" in heading or "NOT" in fit.status
        values = [fit[n] for n in study.truth]
        found.append(Outcome([float(v) for v in values], [v.std_error for v in values], inside, marked))
    return found, lost


def report(name: str, study: Study, found: Sequence[Outcome], lost: int) -> None:
    """Print a row for each unknown."""
    n = len(found)
    for k, (unknown, true) in enumerate(study.truth.items()):
        estimates, errors = (np.array([getattr(f, a)[k] for f in found]) for a in ("estimates", "errors"))
        held = sum(f.held[k] for f in found)
        p = min(1.0, 2 * min(binom.cdf(held, n, 0.95), binom.sf(held - 1, n, 0.95)))
        missed = [f for f in found if not f.held[k]]
        print(
            f"{name:18}{unknown:10} truth {true:<5g} mean {estimates.mean():.4f} std {estimates.std():.4f} error "
            f"{np.median(errors):.4f}  holds {held}/{n} (p {p:.4f})  marked {sum(f.marked for f in found)}, of misses "
            f"{sum(f.marked for f in missed)}/{len(missed)}  lost {lost}"
        )


if __name__ == "__main__":
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for name in sys.argv[2:] or STUDIES:
        begun = time.perf_counter()
        report(name, STUDIES[name], *run(STUDIES[name], sets))
        print(f"  {time.perf_counter() - begun:.0f} s", flush=True)
