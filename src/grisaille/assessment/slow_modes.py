"""Slow modes driven by noise, observed for too short a time: neither covariance nor profile then gives valid intervals.

For dx = a (μ − x) dt + noise, a T small, the law of â is not normal, nor is that of its likelihood ratio χ²: with μ
estimated too, intervals of 95 % hold the truth in 70 to 91 % of all records. The same holds for every real eigenvalue λ
of the model linearised along its path, dX = (A X + c) dt + B dV, y = H X + d, for which

    |λ| T < 10,    λ moves with an unknown,    noise drives it,    an output sees it, and an unknown moves the mean
    H r (lᵀc / −λ) + d of that output under this mode, over time more than it changes it

or, also where the mean is known, λ = 0 is inside of its interval (a unit root). l, r: the eigenvectors with lᵀr = 1.
Estimates of λ are too fast, with an estimated mean by 4/T and more, so that |λ| T < 10 is asked of the slow end of its
interval.
Reference: B. E. Hansen, Review of Economics and Statistics 81 (1999) 594.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.errors import GrisailleError
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.likelihood import own_theta_and_steps
from grisaille.filtering.filter_runner import FilterRunner

MIN_TIME_CONSTANTS = 10.0
"""Time constants in a record below which intervals are not calibrated where the mean is estimated."""
INSTANTS = 15
DIFFERENCE_STEP = 1e-4
"""Of differences, in standard errors."""
MIN_EIGENVALUE_CHANGE = 1e-2
"""Change of λ by a standard error, times the length of the record, that counts."""
MIN_NOISE_SHARE = 0.5
"""Of √(2|λ|/T), the error that noise alone leaves to λ: where it is smaller, inputs or starts tell λ, not noise."""
MIN_RELATIVE_ENTRY = 1e-6
"""Of the largest entry: below it there is nothing."""


@dataclass(frozen=True)
class SlowMode:
    """A slow mode that is observed for too short a time."""

    constants: float
    """|λ| T"""
    least: float
    """The same at the slow end of λ's interval."""
    length: float
    """1/|λ|"""
    rates: tuple[str, ...]
    """Unknowns that its eigenvalue depends on."""
    means: tuple[str, ...]
    """Unknowns that its mean depends on."""

    @property
    def sentence(self) -> str:
        which = ", ".join(self.rates)
        seen = f"{self.constants:.2g} time constants of {self.length:.3g}"
        if self.means:
            perhaps = f" (perhaps {self.least:.2g})" if self.constants >= MIN_TIME_CONSTANTS else ""
            why = f"the record lasts {seen}{perhaps} while the mean ({', '.join(self.means)}) is estimated too, where"
            held = "intervals of 95 % hold the truth in 70 to 91 % of all cases"
        else:
            why, held = f"the record lasts {seen}, perhaps none: near a unit root", "estimates are not normal"
        return f"interval: NOT calibrated for {which}: {why} {held}. Use fit.intervals(method='bootstrap')."


def slow_modes(fit: Fitted) -> list[SlowMode]:
    """Return all of them, the slowest of each set of unknowns; none where the model cannot be followed again."""
    e = fit.estimate
    if not (fit.method.ahead is not None and e.is_likelihood and e.free.any()):
        return []
    found: dict[tuple[str, ...], SlowMode] = {}
    lasted = {c.name: float(c.grid[-1] - c.grid[0]) for c in e.cases}
    for case in e.cases:
        try:
            # what is shared is seen in all records
            own = [e.unknowns[k].experiment is not None and len(e.cases) > 1 for k in case.unknowns]
            total = lasted[case.name] if any(own) else sum(lasted.values())
            covariance = np.where(np.outer(e.free, e.free), e.covariance, 0.0)[np.ix_(case.unknowns, case.unknowns)]
            names = [e.unknowns[k].name for k in case.unknowns]
            modes = _Linearised(case.runner, *own_theta_and_steps(case, e.theta)).slow(total, names, covariance)
            for mode in modes:
                if mode.rates not in found or mode.constants < found[mode.rates].constants:
                    found[mode.rates] = mode
        except (GrisailleError, np.linalg.LinAlgError):
            continue
    return list(found.values())


class _Linearised:
    """Matrices of one experiment along its path."""

    def __init__(self, runner: FilterRunner, theta: np.ndarray, steps: Discretisation) -> None:
        self.q, self.dq, _ = runner.posed(theta, True)
        filter = runner.filter_on(steps, theta)
        m = self.model = filter.model
        cells = filter.cells(self.q)
        at = np.flatnonzero(cells.sample_at >= 0)
        some = np.unique(np.linspace(0, len(at) - 1, INSTANTS).astype(int))
        X, z = np.zeros((len(at), m.n)), np.zeros((len(at), m.z.numel()))
        if m.nonlinear:
            found = runner.states(theta, steps)
            X, z = found.x_best, found.z if found.z is not None and m.z.numel() else z
        t, u = filter.at_samples(cells)
        self.points = [(t[k], X[k], z[k], u[k]) for k in some]
        jacobians = [ca.jacobian(f, v) for f in (m.drift, m.measured, m.residual) for v in (m.X, m.z)]
        self.formulas = ca.Function(
            "linearised", [m.t, m.X, m.z, m.u, m.q], [m.drift, m.measured, m.residual, m.noise, *jacobians]
        )

    def matrices(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return means over the path of A, H, B, and c, d at its instants; algebraic unknowns eliminated."""
        found = []
        for t, X, z, u in self.points:
            f, h, g, B, fX, fz, hX, hz, gX, gz = (np.array(v, dtype=float) for v in self.formulas(t, X, z, u, q))
            if len(z):
                f, h = f - fz @ np.linalg.solve(gz, g), h - hz @ np.linalg.solve(gz, g)
                fX, hX = fX - fz @ np.linalg.solve(gz, gX), hX - hz @ np.linalg.solve(gz, gX)
            if np.isfinite(h).all() and np.isfinite(hX).all():  # an output may be undefined where it was not measured
                found.append((fX, hX, B, f.ravel() - fX @ X, h.ravel() - hX @ X))
        if not found:
            raise np.linalg.LinAlgError("outputs are undefined all along the path")
        A, H, B, c, d = (np.array(v) for v in zip(*found, strict=True))
        return A.mean(axis=0), H.mean(axis=0), np.abs(B).max(axis=0), c, d

    def slow(self, T: float, names: list[str], covariance: np.ndarray) -> Iterator[SlowMode]:
        """Yield modes that the record of length T is too short for."""
        A, H, B, c, d = self.matrices(self.q)
        if not all(np.isfinite(v).all() for v in (A, H, B, c, d)) or not len(A):
            return
        errors = np.sqrt(np.diag(covariance))
        known = np.flatnonzero((errors > 0) & np.isfinite(errors))
        shifted = {int(j): self.matrices(self.q + DIFFERENCE_STEP * errors[j] * self.dq[j]) for j in known}
        for rate in (v.real for v in np.linalg.eigvals(A) if abs(v.imag) < 1e-9 * (abs(v) + 1 / T)):
            here = _mode(A, H, c, d, rate, T)
            if here is None or not _is_driven(A, B, rate) or not (np.abs(here[1]) > 0).any():
                continue
            there = {j: m for j, s in shifted.items() if (m := _mode(s[0], s[1], s[3], s[4], rate, T)) is not None}
            moves = {j: (m[0] - here[0]) / DIFFERENCE_STEP for j, m in there.items()}
            slope = np.array([moves.get(j, 0.0) / errors[j] if j in moves else 0.0 for j in range(len(names))])
            finite = np.where(np.isfinite(covariance), covariance, 0.0)
            error = float(np.sqrt(max(slope @ finite @ slope, 0.0)))
            if error < MIN_NOISE_SHARE * np.sqrt(2 * abs(rate) / T):
                continue
            least = max(abs(rate) - 1.96 * error, 0.0)
            most = max((abs(v) for v in moves.values()), default=0.0)
            rates = [j for j, v in moves.items() if abs(v) * T > MIN_EIGENVALUE_CHANGE and abs(v) > 0.1 * most]
            means = (
                [j for j, m in there.items() if _is_mean(m[2] - here[2], here)]
                if least * T < MIN_TIME_CONSTANTS
                else []
            )
            means = [j for j in means if j not in rates] or means
            if rates and (means or least == 0):
                yield SlowMode(
                    abs(rate) * T, least * T, 1 / abs(rate) if rate else np.inf, tuple(names[j] for j in rates),
                    tuple(names[j] for j in means),
                )  # fmt: skip


def _mode(
    A: np.ndarray, H: np.ndarray, c: np.ndarray, d: np.ndarray, rate: float, T: float
) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Return the real eigenvalue nearest to a rate, H r, and the mean of the outputs under it at every instant."""
    values, right = np.linalg.eig(A)
    k = int(np.argmin(np.abs(values - rate)))
    r = right[:, k].real
    lefts, left = np.linalg.eig(A.T)
    left_vector = left[:, int(np.argmin(np.abs(lefts - values[k])))].real
    size = float(left_vector @ r)
    if abs(size) < 1e-9:
        return None
    value = float(values[k].real)
    slow = min(value, -1e-3 / T) if value <= 0 else max(value, 1e-3 / T)
    gain = H @ r
    gain = np.where(np.abs(gain) > MIN_RELATIVE_ENTRY * np.abs(gain).max(initial=0.0), gain, 0.0)
    return value, gain, np.outer(c @ left_vector / (-slow * size), gain) + d


def _is_driven(A: np.ndarray, B: np.ndarray, rate: float) -> bool:
    lefts, left = np.linalg.eig(A.T)
    vector = np.abs(left[:, int(np.argmin(np.abs(lefts - rate)))].real)
    return bool(B.size and (vector @ B).max() > MIN_RELATIVE_ENTRY * vector.max() * B.max() > 0)


def _is_mean(change: np.ndarray, here: tuple[float, np.ndarray, np.ndarray]) -> bool:
    """Return whether the mean of an output that depends on the mode changes more by a constant than by what varies in
    time.
    """
    size = np.abs(here[2]).max(initial=0.0) + np.abs(change).max(initial=0.0) / DIFFERENCE_STEP
    seen = here[1] != 0
    middle, spread = np.abs(change.mean(axis=0))[seen], change.std(axis=0)[seen]
    return bool(((middle > spread) & (middle > 1e-3 * DIFFERENCE_STEP * size)).any())
