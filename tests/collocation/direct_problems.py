"""Models with data for tests of direct collocation."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille import atan2, der
from grisaille.collocation.direct import (
    DirectOptions,
    DirectProgram,
    curvature_at,
    inside_bounds,
    quantities_along,
    theta_covariance,
)
from grisaille.estimation import FitRequest, parameter_guesses, resolve_unknowns
from grisaille.structure import structure_of


class Oscillator(gr.Model):
    """Linear, second order; only one of two equations is disturbed."""

    a = gr.Parameter(1.0)
    b = gr.Parameter(0.5)
    s = gr.Parameter(0.4, bounds=(1e-6, np.inf))
    x, v = gr.Variable(1.0), gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=s)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == v, der(v) == -a * x - b * v + u + w]


class Pendulum(gr.Model):
    """Index 3, with a coloured force; the angle is measured."""

    m = gr.Parameter(0.3, "kg")
    k = gr.Parameter(0.1, "kg/m", bounds=(0.001, 2.0))
    s = gr.Parameter(0.2, bounds=(0.001, 20.0))
    x, y = gr.Variable(0.5), gr.Variable(-(0.75**0.5))
    vx, vy = gr.Variable(0.0), gr.Variable(0.0)
    tension = gr.Variable()
    u = gr.Input("N")
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=4.0), scale=s)
    phi = gr.Output(atan2(x, -y), noise=0.01, unit="rad")
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * abs(vx) * vx + u + w,
        m * der(vy) == tension * y - k * abs(vy) * vy - m * 9.81,
        x**2 + y**2 == 1.0,
    ]


class Buffer(gr.Model):
    """A tank behind an equation that stays implicit: flow + flow³ = head; index 1."""

    c = gr.Parameter(0.8, bounds=(0.0, 10.0))
    head = gr.Variable(2.0)
    flow = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(flow, noise=0.02)
    equations = [der(head) == -c * flow + 0.3 + w, flow + flow**3 == head]


def flow_at(head):
    """The real root of flow + flow³ = head."""
    return float(next(r.real for r in np.roots([1.0, 0.0, 1.0, -head]) if abs(r.imag) < 1e-9))


def buffered(times, seed=4, c=0.8):
    """A record of ``Buffer``: white noise and implicit equations, by small Euler steps."""
    rng, steps = np.random.default_rng(seed), 25
    head, flows = 2.0, [1.0]
    for h in np.diff(times) / steps:
        for _ in range(steps):
            flow = flow_at(head)
            head += h * (0.3 - c * flow) + 0.05 * h**0.5 * rng.standard_normal()
        flows.append(flow_at(head))
    return gr.Experiment(times, {}, {"y": np.array(flows) + 0.02 * rng.standard_normal(len(times))})


def data(model, times, output, *, u=None, seed=1, noise=True, **options):
    """One simulated experiment."""
    inputs = {} if u is None else {"u": u}
    run = gr.simulate(model, times, inputs=inputs, realizations=1, seed=seed, noise=noise)
    return gr.Experiment(times, inputs, {output: run[output].to_numpy().reshape(-1)}, **options), run


def program(model, experiments, estimate, guess=None, **options):
    data = experiments if isinstance(experiments, list) else [experiments]
    question = posed(model, data, estimate, guess)
    return Program(question.points(), question.unknowns, DirectOptions(**options))


class Program(DirectProgram):
    """Paths at given unknowns, too, and covariances of those that no bound decided."""

    def solve(self, theta=None, *, free=True, **options):
        theta = self.guess if theta is None else theta
        found = super().solve(theta, bounds=self.bounds if free else (theta, theta), **options)
        found.point, found.program = found.at.point, found.at.program
        inside = inside_bounds(found.theta, self.bounds, self.slots.sizes)
        found.covariance = theta_covariance(found.at, inside) if free else np.zeros((len(inside), len(inside)))
        return found


def posed(model, data, estimate, guess=None):
    """Unknowns with guesses, and the experiments at them."""
    data = [e if e.name else e.replace(name=f"experiment {k + 1}") for k, e in enumerate(data)]
    structure = structure_of(model)
    unknowns = resolve_unknowns(structure, data, estimate, guess=guess)
    return FitRequest(model, structure, data, parameter_guesses(structure.model, unknowns)).with_starts()


class Path:
    """What the user knows along the path of a record, at its first instant and at the ends of elements."""

    def __init__(self, solution, r):
        mesh, model = solution.program.meshes[r], solution.program.model
        self.sample_at, self.times = mesh.sample_at, mesh.bounds
        self.names = model.structure.system.observed_names
        self.values = solution.program.look("observed", solution.point, r)[0]
        curvature = curvature_at(solution.at, np.isfinite(np.diag(solution.covariance)))
        covariance = np.nan_to_num(solution.covariance)
        self.deviations = quantities_along(solution.at, curvature, r, covariance, model.X)[1]

    def __getitem__(self, name):
        return self.values[:, self.names.index(name)]


def followed(solution, r=0):
    return Path(solution, r)
