"""How often the check of a filter's approximation alarms where nothing is wrong, misses what is, and what it costs.

    python benchmarks/approximation.py           all of it, some three minutes
    python benchmarks/approximation.py wells     the double wells alone

Weakly nonlinear and linear plants, ten with four records each: an alarm is false. Double wells x' = a x − x³ + w, whose
exact likelihood on a grid is not what any Kalman filter has, a dozen records each of coarse and of dense samples: an
alarm is due. The cost of the check is that of all values of the other filter beside a warm fit, compilation apart.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import grisaille as gr
from grisaille import der

WHITE, MATERN = gr.spectra.white, gr.spectra.matern12
TIMES = np.arange(0.0, 30.0, 0.2)
STEPS = np.sign(np.sin(0.5 * TIMES))


class Masses(gr.Model):
    """Two masses and springs: linear."""

    k = gr.Parameter(2.0, bounds=(0.2, 20.0))
    c = gr.Parameter(0.3, bounds=(0.01, 5.0))
    x, v, z, r = (gr.Variable(0.0) for _ in range(4))
    u = gr.Input()
    w = gr.Disturbance(WHITE(), scale=0.3)
    y = gr.Output(z, noise=0.05)
    equations = [der(x) == v, der(v) == -k * (2 * x - z) - c * v + u, der(z) == r, der(r) == -k * (z - x) - c * r + w]


class Tanks(gr.Model):
    """Two tanks that empty by Torricelli's law, one into the other."""

    a = gr.Parameter(0.4, bounds=(0.05, 4.0))
    b = gr.Parameter(0.3, bounds=(0.05, 4.0))
    h, g = gr.Variable(2.0), gr.Variable(3.0)
    q = gr.Input()
    w = gr.Disturbance(WHITE(), scale=0.03)
    y, z = gr.Output(h, noise=0.03), gr.Output(g, noise=0.03)
    equations = [der(h) == q - a * gr.sqrt(h) + w, der(g) == a * gr.sqrt(h) - b * gr.sqrt(g)]


class Furnace(gr.Model):
    """A body that radiates."""

    e = gr.Parameter(0.6, bounds=(0.05, 4.0))
    T = gr.Variable(1.2)
    q = gr.Input()
    w = gr.Disturbance(MATERN(3.0), scale=0.1)
    y = gr.Output(T, noise=0.01)
    equations = [der(T) == q + w - e * T**4]


class Vehicle(gr.Model):
    """Drag that grows with the square of the speed."""

    c = gr.Parameter(0.2, bounds=(0.01, 4.0))
    v = gr.Variable(2.0)
    F = gr.Input()
    wind = gr.Disturbance(WHITE(), scale=0.1)
    y = gr.Output(v, noise=0.05)
    equations = [der(v) == F - c * v * gr.smooth_abs(v, 0.1) + wind]


class Arm(gr.Model):
    """A robot's arm under gravity, with smoothed friction."""

    m = gr.Parameter(3.0, bounds=(0.5, 20.0))
    f = gr.Parameter(0.4, bounds=(0.01, 4.0))
    p, v = gr.Variable(0.0), gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(MATERN(0.5), scale=0.3)
    y = gr.Output(p, noise=0.01)
    equations = [der(p) == v, der(v) == u + w - m * gr.sin(p) - f * gr.tanh(4 * v) - 0.3 * v]


class Epidemic(gr.Model):
    """Susceptible and infected parts of a population."""

    b = gr.Parameter(0.9, bounds=(0.1, 5.0))
    g = gr.Parameter(0.3, bounds=(0.02, 3.0))
    S, sick = gr.Variable(0.98), gr.Variable(0.02)
    w = gr.Disturbance(MATERN(4.0), scale=0.1)
    y = gr.Output(sick, noise=0.01)
    equations = [der(S) == -b * (1 + w) * S * sick, der(sick) == b * (1 + w) * S * sick - g * sick]


class Cell(gr.Model):
    """A battery with a bent open-circuit voltage and one relaxing branch."""

    R = gr.Parameter(0.05, bounds=(0.005, 1.0))
    C = gr.Parameter(4.0, bounds=(0.2, 40.0))
    s, v = gr.Variable(0.8), gr.Variable(0.0)
    i = gr.Input()
    w = gr.Disturbance(WHITE(), scale=0.003)
    y = gr.Output(3.0 + 1.2 * s - 0.8 * s**2 + 0.6 * s**3 - v - 0.02 * i, noise=0.003)
    equations = [der(s) == -0.02 * i + w, der(v) == (i - v / R) / C]


class Haldane(gr.Model):
    """Growth that too much substrate slows down."""

    mu = gr.Parameter(0.8, bounds=(0.1, 4.0))
    x, s = gr.Variable(0.5), gr.Variable(1.0)
    D = gr.Input()
    w = gr.Disturbance(WHITE(), scale=0.02)
    y, z = gr.Output(x, noise=0.03), gr.Output(s, noise=0.03)
    rate = mu * s / (0.5 + s + s**2 / 2)
    equations = [der(x) == rate * x - D * x + w, der(s) == D * (2 - s) - 1.5 * rate * x]


class Prey(gr.Model):
    """Predators and prey, pushed in proportion to their numbers."""

    a = gr.Parameter(0.8, bounds=(0.1, 4.0))
    d = gr.Parameter(0.6, bounds=(0.1, 4.0))
    n, p = gr.Variable(1.5), gr.Variable(0.8)
    w = gr.Disturbance(WHITE(), scale=0.05)
    y, z = gr.Output(n, noise=0.05), gr.Output(p, noise=0.05)
    equations = [der(n) == a * n - n * p + n * w, der(p) == n * p * 0.5 - d * p]


class Thermistor(gr.Model):
    """A first-order lag behind a sensor with a logarithmic law."""

    tau = gr.Parameter(2.0, bounds=(0.2, 20.0))
    T = gr.Variable(1.0)
    q = gr.Input()
    w = gr.Disturbance(WHITE(), scale=0.1)
    y = gr.Output(gr.log(T + 0.5), noise=0.03)
    equations = [tau * der(T) == q - T + w]


Problem = tuple[gr.Model, gr.Experiment, list[str]]


@dataclass(frozen=True)
class Plant:
    """A model, its known inputs, and what is estimated."""

    model: Callable[[], gr.Model]
    inputs: dict[str, np.ndarray]
    unknowns: list[str]
    outputs: tuple[str, ...] = ("y",)

    def problem(self, seed: int) -> Problem:
        """A record simulated from the model itself."""
        run = gr.simulate(self.model(), TIMES, self.inputs, realizations=1, seed=seed, noise=True)
        outputs = {name: run[name].values[0] for name in self.outputs}
        return self.model(), gr.Experiment(TIMES, self.inputs, outputs), self.unknowns


PLANTS = {
    "masses": Plant(Masses, {"u": STEPS}, ["k", "c", "scale(w)"]),
    "tanks": Plant(Tanks, {"q": 0.6 + 0.2 * STEPS}, ["a", "b", "scale(w)"], ("y", "z")),
    "furnace": Plant(Furnace, {"q": 1.0 + 0.4 * STEPS}, ["e", "scale(w)"]),
    "vehicle": Plant(Vehicle, {"F": 1.0 + 0.5 * STEPS}, ["c", "scale(wind)"]),
    "arm": Plant(Arm, {"u": 1.5 * STEPS}, ["m", "f", "scale(w)"]),
    "epidemic": Plant(Epidemic, {}, ["b", "g"]),
    "cell": Plant(Cell, {"i": 1.0 + STEPS}, ["R", "C", "scale(w)"]),
    "haldane": Plant(Haldane, {"D": 0.3 + 0.1 * STEPS}, ["mu", "scale(w)"], ("y", "z")),
    "prey": Plant(Prey, {}, ["a", "d", "scale(w)"], ("y", "z")),
    "thermistor": Plant(Thermistor, {"q": 1.5 + 0.5 * STEPS}, ["tau", "scale(w)"]),
}


def well(noise: float, interval: float, count: int, seed: int) -> Problem:
    """A double well with a = 1 and scale 0.6, from a plain Euler scheme in steps of five milliseconds."""

    class Well(gr.Model):
        a = gr.Parameter(0.7, bounds=(0.05, 5.0))
        x = gr.Variable(1.0)
        w = gr.Disturbance(WHITE(), scale=0.5)
        y = gr.Output(x, noise=noise)
        equations = [der(x) == a * x - x**3 + w]

    rng, step, x, path = np.random.default_rng(seed), 0.005, 1.0, []
    kicks = 0.6 * np.sqrt(step) * rng.normal(size=(count, round(interval / step)))
    for row in kicks:
        path.append(x)
        for kick in row:
            x += step * (x - x**3) + kick
    data = gr.Experiment(interval * np.arange(count), outputs={"y": np.array(path) + noise * rng.normal(size=count)})
    return Well(), data, ["a", "scale(w)"]


def wells(seeds: range) -> Iterator[tuple[str, Problem]]:
    for seed in seeds:
        yield f"well, coarse, {seed}", well(0.5, 1.0, 200, seed)
        yield f"well, dense, {seed}", well(0.2, 0.2, 1000, seed)


def weak(seeds: range) -> Iterator[tuple[str, Problem]]:
    for name, plant in PLANTS.items():
        for seed in seeds:
            yield f"{name}, {seed}", plant.problem(seed)


def looked_at(name: str, problem: Problem) -> float:
    """The distance of the fit that is given to the user; zero where the filter is exact."""
    fit = gr.fit(*problem, gr.KalmanML())
    check = fit.estimate.approximation
    distance = 0.0 if check is None else check.distance
    marked = "std. error!" in str(fit) and any(n.startswith("approximation") for n in fit.doubts)
    print(f"{name:<22} d = {distance:<8.3g} {'marked' if marked else 'noted' if distance >= 0.3 else ''}", flush=True)
    return distance


def cost(name: str, problem: Problem) -> float:
    """Time of the check beside that of a warm fit by the extended filter, the best of five each."""
    from grisaille.estimators.fitting import build_problem

    method = gr.KalmanML(filter="extended")
    posed = build_problem(*problem, method)
    found = method.estimate(posed)
    times: list[list[float]] = [[], []]
    method.review(posed, found)
    for _ in range(5):
        begin = time.perf_counter()
        again = method.estimate(build_problem(*problem, method))
        middle = time.perf_counter()
        method.review(posed, again)
        times[0].append(middle - begin)
        times[1].append(time.perf_counter() - middle)
    fit, check = (1e3 * min(t) for t in times)
    print(f"{name:<22} fit {fit:7.1f} ms, check {check:6.1f} ms, {check / fit:.1%}", flush=True)
    return check / fit


def main(asked: list[str]) -> None:
    if "wells" not in asked:
        found = [looked_at(name, p) for name, p in weak(range(100, 104))]
        print(f"weakly nonlinear or linear: noted {sum(d >= 0.3 for d in found)}, marked {sum(d >= 1 for d in found)} "
              f"of {len(found)}")  # fmt: skip
    found = [looked_at(name, p) for name, p in wells(range(100, 112))]
    print(f"double wells: not marked {sum(not d >= 1 for d in found)} of {len(found)}")
    if "wells" not in asked:
        shares = [cost(name, plant.problem(100)) for name, plant in PLANTS.items() if name != "masses"]
        shares.append(cost("well, dense", well(0.2, 0.2, 1000, 100)))
        print(f"cost of the check: {np.median(shares):.1%} of a warm fit (median), {max(shares):.1%} at most")


if __name__ == "__main__":
    main(sys.argv[1:])
