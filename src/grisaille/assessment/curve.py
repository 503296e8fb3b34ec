"""An estimated curve: the values of a table with their confidence band.

The table is y = f(x, θ); its standard error by the delta method, s² = gᵀ C g with g = ∂f/∂θ exact and C the covariance
of the estimates. Where g meets an unknown that the data do not determine the band is infinite.

Beside a prior, what the data tell is the share of the variance that their noise has, gᵀ H⁻¹ D H⁻¹ g / gᵀ H⁻¹ g, with
the information H = D + P of data and priors: one without priors, zero where the curve is the prior's alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.assessment.deviances import check_level
from grisaille.errors import EstimationError
from grisaille.estimation.curves.curve_values import curve_values, unknowns_in
from grisaille.estimation.determination.prior_information import data_information
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.uncertainty import half_width
from grisaille.model.curve_tables import CurveTable, find_curves
from grisaille.model.expression import Expression
from grisaille.model.lowering.table_lowering import lower_table, lower_table2
from grisaille.model.names import suggestion
from grisaille.model.notation.text import render
from grisaille.model.table_functions import table_arguments
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from grisaille.drawing import Canvas

MIN_DATA_INFORMATION = 1e-8
"""Information of the data on a value, beside that of the prior, which is rounding."""
DRAWN_POINTS = 200
"""Of a curve that is drawn."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A table whose values were estimated; ``curve.table`` has a row per knot, ``curve.at(x)`` one per x."""

    name: str
    unit: str
    arguments: tuple[str, ...]
    """What the table is looked up by."""
    units: tuple[str, ...]
    source: CurveTable
    level: float
    theta: np.ndarray
    covariance: np.ndarray
    student: float
    shares: np.ndarray
    """Share of the data in each value."""
    reached: np.ndarray
    """Whether any data depend on each value."""
    formula: ca.Function
    """(x, θ) → y, ∂y/∂θ."""

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return a row per knot: the value, its standard error, the band, and the share of the data in its
        information.
        """
        grids = [knots[:n] for knots, n in zip(self.source.knots, self.source.shape, strict=True)]
        mesh = [g.ravel() for g in np.meshgrid(*grids, indexing="ij")]
        columns = ["knot"] if len(grids) == 1 else ["first knot", "second knot"]
        table = self._frame(dict(zip(columns, mesh, strict=True)), mesh, self.level)
        table["data"] = self.shares
        return table

    def at(self, *x: ArrayLike, level: float | None = None) -> pd.DataFrame:
        """Return the curve and its band at any arguments.

        x : a number or an array; of a surface two of them, of one shape
        level : confidence of the band; that of the curve otherwise
        """
        if len(x) != len(self.arguments):
            raise EstimationError(
                f"{self.name} is a function of {' and '.join(self.arguments)}; got {len(x)} arguments."
            )
        places = [np.atleast_1d(np.asarray(a, dtype=float)).ravel() for a in x]
        try:
            places = [p.copy() for p in np.broadcast_arrays(*places)]
        except ValueError:
            raise EstimationError(f"The arguments of {self.name} have {[len(p) for p in places]} entries.") from None
        chosen = self.level if level is None else level
        check_level(chosen)
        return self._frame(dict(zip(self.arguments, places, strict=True)), places, chosen)

    def _frame(self, columns: dict[str, np.ndarray], places: list[np.ndarray], level: float) -> pd.DataFrame:
        import pandas as pd

        value, slopes = self._evaluated(places)
        error = standard_errors(slopes, self.covariance)
        half = half_width(error, level, self.student)
        return pd.DataFrame(
            {**columns, "value": value, "std_error": error, "lower": value - half, "upper": value + half}
        )

    def _evaluated(self, places: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        n = len(places[0])
        theta = np.repeat(self.theta[:, None], n, axis=1)
        value, slopes = self.formula(np.vstack(places), theta)
        rows = np.array(slopes.full()).reshape(n, -1) if n == 1 else np.array(slopes.full()).T.reshape(n, -1)
        return np.array(value.full()).ravel(), rows

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what has to be known about the band, a sentence each."""
        table, found = self.table, []
        knots = [", ".join(f"{row[k]:g}" for k in range(len(self.arguments))) for row in table.itertuples(index=False)]
        is_open = np.isinf(table["std_error"].to_numpy())
        if is_open.any():
            told = "; ".join(k for k, o in zip(knots, is_open, strict=True) if o)
            found.append(
                f"no data reach the knots {told}: nothing is known there. Measure there, or give the values "
                f"prior=gr.Smoothness(scale)."
            )
        by_prior = ~is_open & ~self.reached
        if by_prior.any():
            told = "; ".join(k for k, o in zip(knots, by_prior, strict=True) if o)
            found.append(
                f"no data reach the knots {told}: the values there follow from the others by the prior, and the band "
                f"is as wide as the prior makes it."
            )
        held = ~is_open & (table["std_error"].to_numpy() == 0)
        if held.any():
            told = "; ".join(k for k, o in zip(knots, held, strict=True) if o)
            found.append(f"at the knots {told} the values are known, or stand at a bound, and have no band.")
        return tuple(found)

    def plot(self, *, ax: Canvas | None = None) -> Figure:
        """Plot the curve with its band and its knots; of a surface the values as a picture.

        ax : axes to draw on instead of a new figure
        """
        from grisaille.assessment.plotting import draw_curve

        return draw_curve(self, ax)

    def drawn(self) -> pd.DataFrame:
        """Return points close enough to be drawn as a line, knots among them."""
        knots = np.array(self.source.knots[0])
        return self.at(np.union1d(knots, np.linspace(knots[0], knots[-1], DRAWN_POINTS)))

    def __str__(self) -> str:
        manner = f"{self.source.kind}, {' and '.join(self.source.outside)} outside"
        head = f"{self.name}({', '.join(self.arguments)}), {manner}, band {100 * self.level:g} %"
        lines = [head, self.table.to_string(index=False, float_format=lambda v: f"{v:.5g}")]
        return "\n".join([*lines, *(f"• {note}" for note in self.notes)])

    __repr__ = __str__


def curve(fit: Fitted, name: str | Expression, level: float, experiment: str | None) -> Curve:
    """Return the table that has these values; arguments as in ``Fit.curve``."""
    check_level(level)
    structure = structure_of(fit.initial_model)
    flat = structure.model
    wanted = str(getattr(name, "path", name))
    source = _found(find_curves(flat), wanted)
    unknowns = fit.estimate.unknowns
    own = unknowns_in(flat, source, unknowns)
    if not own:
        raise EstimationError(
            f"'{wanted}' was not estimated: its table has no band. Estimated: {', '.join(fit.names)}."
        )
    run = fit.find_experiment(experiment) if experiment is not None else fit.experiments[0]
    if experiment is None and any(u.experiment is not None for u in own):
        raise EstimationError(
            f"'{wanted}' has values of its own in each experiment: fit.curve({wanted!r}, experiment=…) with one of "
            f"{', '.join(fit.experiment_names)}."
        )
    theta, values = curve_values(flat, source, unknowns, run)
    looked_up, _ = table_arguments(source.node)
    x = ca.SX.sym("x", len(looked_up))
    lowered = lower_table if len(looked_up) == 1 else lower_table2
    y = lowered(source.node.data, *ca.vertsplit(x), *values)
    slopes = ca.densify(ca.jacobian(y, theta))
    arguments = tuple(map(render, looked_up))
    known = {n: d.unit for some in (flat.variables, flat.inputs, flat.outputs) for n, d in some.items()}
    at_knots = ca.Function("values", [theta], [ca.densify(ca.jacobian(ca.vertcat(*values), theta))])
    rows = np.array(at_knots(fit.estimate.theta).full())
    return Curve(
        name=source.vector or wanted, unit=own[0].unit, arguments=arguments,
        units=tuple(known.get(a, "") for a in arguments), source=source, level=level,
        theta=fit.estimate.theta, covariance=fit.estimate.covariance, student=float(np.min(fit.student)),
        **_data_shares(fit, rows), formula=ca.Function("curve", [x, theta], [y, slopes]),
    )  # fmt: skip


def estimated_curves(fit: Fitted) -> list[tuple[str, str | None]]:
    """Return (name, experiment) of every curve that a fit has estimated, for reports."""
    flat = structure_of(fit.initial_model).model
    found: list[tuple[str, str | None]] = []
    for source in find_curves(flat):
        own = unknowns_in(flat, source, fit.estimate.unknowns)
        name = source.vector or sorted(source.parameters)[0]
        if own and len([c for c in find_curves(flat) if name in (c.vector, *c.parameters)]) == 1:
            is_local = any(u.experiment is not None for u in own)
            found += [(name, e.name) for e in fit.experiments] if is_local else [(name, None)]
    return found


def standard_errors(slopes: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return √(g C gᵀ) of each row g; infinite where g has a part along what is not determined."""
    is_open = np.isinf(np.diag(covariance))
    finite = np.where(is_open[:, None] | is_open[None, :], 0.0, covariance)
    error = np.sqrt(np.clip(np.einsum("ki,ij,kj->k", slopes, finite, slopes), 0.0, None))
    error[(np.abs(slopes[:, is_open]) > 0).any(axis=1)] = np.inf
    return np.asarray(error)


def _found(curves: list[CurveTable], wanted: str) -> CurveTable:
    named = [c for c in curves if c.vector == wanted] or [
        c for c in curves if any(p == wanted or p.startswith(f"{wanted}[") for p in c.parameters)
    ]
    if len(named) == 1:
        return named[0]
    if named:
        raise EstimationError(f"'{wanted}' stands in {len(named)} tables: {'; '.join(c.text for c in named[:4])}.")
    if not curves:
        raise EstimationError("The model has no table with parameters as values: write gr.table(x, knots, values).")
    known = [c.vector or sorted(c.parameters)[0] for c in curves]
    raise EstimationError(f"No table has values called '{wanted}'. {suggestion(wanted, known)}")


def _data_shares(fit: Fitted, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return, for each value, the share of the data in its information, and whether any data depend on it."""
    e = fit.estimate
    is_open = np.isinf(np.diag(e.covariance))
    lost = (np.abs(rows[:, is_open]) > 0).any(axis=1)
    found = data_information(e.unknowns, e.theta, e.evaluation.information, e.free)
    if found is None:
        return {"shares": np.where(lost, 0.0, 1.0), "reached": ~lost}
    blind = np.diag(found.data) <= MIN_DATA_INFORMATION * np.diag(found.believed)
    moved = np.abs(rows) > 0
    unreached = moved.any(axis=1) & ~(moved & ~blind).any(axis=1)
    return {"shares": np.where(lost, 0.0, found.shares(rows)), "reached": ~(lost | unreached)}
