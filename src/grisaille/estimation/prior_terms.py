"""The priors of all unknowns as one term of a criterion; how a single law counts is in ``laws.prior_measure``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.laws import JointLaw, Law
from grisaille.laws.prior_measure import PriorResidual, minus_log_prior, prior_residual, search_curvature
from grisaille.laws.term import PriorTerm


def prior_term(unknowns: Sequence[Unknown], theta: np.ndarray) -> PriorTerm:
    """Return the priors of unknowns at θ."""
    n = len(theta)
    if all(u.prior is None for u in unknowns):
        return PriorTerm(np.zeros(0), *np.zeros((3, 0, n)))
    single = [(k, r) for k, u in enumerate(unknowns) if (r := scalar_prior(u, float(theta[k]))) is not None]
    rows, offset = joint_priors(unknowns)
    at = np.eye(n)[[k for k, _ in single]]
    values, *others = (np.array([getattr(r, n) for _, r in single]) for n in ("value", "slope", "row", "upward"))
    slopes, curved, upward = (v[:, None] * at for v in others)
    return PriorTerm(
        np.concatenate([values, rows @ theta + offset]),
        np.vstack([slopes, rows]),
        np.vstack([curved, rows]),
        np.vstack([upward, np.zeros_like(rows)]),
    )


def says_more_than_limits(prior: object) -> bool:
    """Return whether a prior, if there is one, prefers some values to others."""
    return prior is not None and not (isinstance(prior, Law) and prior.is_flat)


def scalar_prior(unknown: Unknown, value: float) -> PriorResidual | None:
    """Return the residual of an unknown's own prior; None without one, and where it is flat or a joint one."""
    prior = unknown.prior
    if prior is None or isinstance(prior, JointLaw):
        return None
    if isinstance(prior, Law):
        return prior_residual(prior, value)
    raise EstimationError(
        f"The prior of '{unknown.name}' is {prior!r}, which is no law of one number: use one of gr.laws, or your own "
        f"that derives from gr.laws.Law."
    )


def joint_priors(unknowns: Sequence[Unknown]) -> tuple[np.ndarray, np.ndarray]:
    """Return (A, b) of all priors of several unknowns: A θ + b are residuals, as of scalar ones."""
    names = [u.name for u in unknowns]
    joint = {id(u.prior): u.prior for u in unknowns if isinstance(u.prior, JointLaw)}
    rows, offsets = [np.zeros((0, len(names)))], [np.zeros(0)]
    for prior in joint.values():
        missing = [n for n in prior.names if n not in names]
        if missing:
            raise EstimationError(
                f"The joint prior names '{missing[0]}', which is not estimated; estimated: {', '.join(names)}."
            )
        matrix, offset = prior.residual_rows()
        rows.append(matrix @ np.eye(len(names))[[names.index(n) for n in prior.names]])
        offsets.append(offset)
    return np.vstack(rows), np.concatenate(offsets)


@dataclass(frozen=True)
class PriorFormula:
    """What a criterion contains of priors, as formulas of CasADi's θ."""

    unknowns: tuple[Unknown, ...]

    @property
    def key(self) -> Hashable:
        """Laws with their places, and what joint priors add."""
        rows, offset = joint_priors(self.unknowns)
        return tuple(self._laws), rows.tobytes(), offset.tobytes()

    def __call__(self, theta: ca.SX) -> ca.SX:
        """Return ½ Σ r²."""
        rows, offset = joint_priors(self.unknowns)
        total = ca.SX(0)
        for k, law in self._laws:
            total += minus_log_prior(law, theta[k])
        return total + ca.sumsqr(ca.DM(rows) @ theta + ca.DM(offset)) / 2

    def curvature(self, theta: ca.SX) -> ca.SX:
        """Return a curvature to search with, which is nowhere negative for priors of single unknowns."""
        rows, _ = joint_priors(self.unknowns)
        total = ca.SX(ca.DM(rows.T @ rows))
        for k, law in self._laws:
            total[k, k] += ca.substitute(search_curvature(law, at := ca.SX.sym("at")), at, theta[k])
        return total

    @property
    def _laws(self) -> list[tuple[int, Law]]:
        return [(k, u.prior) for k, u in enumerate(self.unknowns) if isinstance(u.prior, Law) and not u.prior.is_flat]


def prior_formula(unknowns: Sequence[Unknown]) -> PriorFormula | None:
    """Return what a criterion contains as formulas; None without priors."""
    return None if all(u.prior is None for u in unknowns) else PriorFormula(tuple(unknowns))
