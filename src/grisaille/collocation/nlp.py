"""Nonlinear programs given to IPOPT, silently, with exact sparse derivatives by CasADi.

Reference: A. Wächter, L. T. Biegler, Mathematical Programming 106 (2006) 25.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
QUIET = {
    "print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "error_on_fail": False, "show_eval_warnings": False,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Ended:
    """Where IPOPT stopped."""

    x: Floats
    multipliers: Floats
    converged: bool
    message: str
    iterations: int


def build_ipopt(x: ca.MX, f: ca.MX, g: ca.MX | None, options: Mapping[str, Any]) -> ca.Function:
    """minimise f(x) under g(x) = 0; ``options`` of IPOPT, beside silence."""
    problem = {"x": x, "f": f} if g is None else {"x": x, "f": f, "g": g}
    named = {f"ipopt.{name}": value for name, value in options.items()}
    return ca.nlpsol("solver", "ipopt", problem, {**QUIET, **named})


def run_ipopt(solver: ca.Function, start: Floats, lower: Floats, upper: Floats) -> Ended:
    """From a point, between bounds."""
    found = solver(x0=np.clip(start, lower, upper), lbx=lower, ubx=upper, lbg=0.0, ubg=0.0)
    x, multipliers = (np.array(found[name].full()).ravel() for name in ("x", "lam_g"))
    stats = solver.stats()
    return Ended(x, multipliers, bool(stats["success"]), f"IPOPT: {stats['return_status']}", int(stats["iter_count"]))
