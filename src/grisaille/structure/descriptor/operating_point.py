"""Values of variables and their time derivatives at one instant of a trajectory.

From x, z, u at time t the reduced system gives every observed quantity g and, by total differentiation,

    g' = ∂g/∂t + ∂g/∂x · rhs + ∂g/∂z · z' + ∂g/∂u · u',      ∂r/∂z · z' = −(r' without its z' term),

and so on upwards; r is the implicit residual. Derivatives of inputs and disturbances beyond those of the reduced system
are taken as zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.descriptor.pencil import Matrix
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.initialization import Initializer
from grisaille.structure.system import System
from grisaille.structure.time_switches import steady_signals


@dataclass(frozen=True)
class OperatingPoint:
    """A consistent point of the reduced system."""

    label: str
    t: float
    x: Matrix
    z: Matrix
    u: Matrix


def jet_values(
    system: System, point: OperatingPoint, p: Matrix, wanted: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], float]:
    """Return the numbers of the wanted (name, order of derivative)."""
    tower = _Tower(system, point, p)
    values: dict[tuple[str, int], float] = {}
    switches = {s.name: float(v) for s, v in zip(system.signals, point.u, strict=True) if s.kind == "switch"}
    for order in range(max((k for _, k in wanted), default=-1) + 1):
        observed = tower.derivative_of_observed(order)
        values.update({(name, order): value if order == 0 else 0.0 for name, value in switches.items()})
        values.update({(name, order): float(v) for name, v in zip(system.observed_names, observed, strict=True)})
    return {jet: values[jet] for jet in wanted}


@dataclass(frozen=True)
class PointConditions:
    """The conditions of a start: its instant, the inputs there, and the starts that are fixed."""

    label: str = "the start"
    t: float = 0.0
    inputs: Mapping[str, float] = field(default_factory=dict)
    """Those that are not named have their default, or zero."""
    starts: Mapping[str, float] = field(default_factory=dict)


def start_point(
    structure: Structure,
    p: Matrix,
    conditions: PointConditions | None = None,
    disturbances: Mapping[str, float] | None = None,
) -> OperatingPoint:
    """Return the consistent start, disturbances at zero or at given values."""
    at = conditions or PointConditions()
    defaults = {n: i.default or 0.0 for n, i in structure.model.inputs.items()}
    u = steady_signals(structure.system, {**defaults, **at.inputs, **(disturbances or {})}, at.t, p)
    found = Initializer(structure).solve(at.t, u, p, at.starts)
    label = f"{at.label} with disturbances away from zero" if disturbances else at.label
    return OperatingPoint(label, at.t, found.x, found.z, u)


def locate(structure: Structure, values: Mapping[str, float], t: float, p: Matrix, label: str) -> OperatingPoint:
    """Return the point of the reduced system at which the named quantities have these values (a row of a
    trajectory).
    """
    system = structure.system
    u = steady_signals(system, values, t, p)
    variables = structure.model.variables
    given = {k: float(values[n]) for k, n in enumerate(system.observed_names) if n in values and n in variables}
    rows = ca.vertcat(system.constraints, system.residual, *(system.observed[k] for k in given))
    w = ca.vertcat(system.x, system.z)
    target = np.concatenate([np.zeros(system.nc + system.nz), list(given.values())])
    function = ca.Function("row", [system.t, w, system.u, system.p], [rows, ca.jacobian(rows, w)])
    found = np.array([values.get(n, 0.0) for n in (*system.state_names, *system.implicit_names)])
    for _ in range(20):
        value, slope = (np.array(part.full()) for part in function(t, found, u, p))
        step = np.linalg.lstsq(slope, target - value.ravel(), rcond=None)[0] if found.size else found
        found = found + step
        settled = np.abs(step).max(initial=0.0) <= 1e-10 * (1 + np.abs(found).max(initial=0.0))
        if settled and np.abs(target - value.ravel()).max(initial=0.0) <= 1e-5 * (1 + np.abs(target).max(initial=0.0)):
            return OperatingPoint(label, t, found[: system.nx], found[system.nx :], u)
    raise StructureError(
        f"The row at t = {t:g} of the trajectory does not satisfy the equations of {structure.model.name}: is it a "
        "result of gr.simulate with this model and these parameters?"
    )


class _Tower:
    """Total derivatives of higher and higher order, with z', z'', … solved for on the way."""

    def __init__(self, system: System, point: OperatingPoint, p: Matrix) -> None:
        self.system, self.point, self.p = system, point, p
        self.z = [system.z]
        self.signals = {(s.name, s.order): system.u[k] for k, s in enumerate(system.signals)}
        self.known: list[tuple[ca.SX, Matrix]] = [
            (system.t, np.array([point.t])),
            (system.x, point.x),
            (system.z, point.z),
            (system.u, point.u),
            (system.p, p),
        ]
        self.observed = system.observed
        self.residual = system.residual
        self.order = 0

    def derivative_of_observed(self, order: int) -> Matrix:
        while self.order < order:
            self._climb()
        return self._evaluate(self.observed)

    def _climb(self) -> None:
        self.order += 1
        self.z.append(ca.SX.sym(f"z{self.order}_", self.system.nz))
        self.residual, self.observed = (self._differentiate(f) for f in (self.residual, self.observed))
        self.known.append((self.z[-1], np.zeros(self.system.nz)))
        if self.system.nz:
            nz = self.system.nz
            slope = self._evaluate(ca.jacobian(self.system.residual, self.system.z)).reshape(nz, nz, order="F")
            self.known[-1] = (self.z[-1], -np.linalg.solve(slope, self._evaluate(self.residual)))

    def _differentiate(self, formula: ca.SX) -> ca.SX:
        s = self.system
        now = [s.t, s.x, *self.z[:-1], *self.signals.values()]
        rate = [ca.SX(1), s.rhs, *self.z[1:], *(self._next(*key) for key in list(self.signals))]
        return ca.jtimes(formula, ca.vertcat(*now), ca.vertcat(*rate))

    def _next(self, name: str, order: int) -> ca.SX:
        return self.signals.get((name, order + 1), ca.SX(0))

    def _evaluate(self, formula: ca.SX) -> Matrix:
        function = ca.Function("jet", [s for s, _ in self.known], [ca.densify(formula)])
        return np.array(function(*(v for _, v in self.known)).full()).ravel(order="F")
