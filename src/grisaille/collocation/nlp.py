"""Nonlinear programs given to IPOPT, silently, with exact sparse derivatives by CasADi.

After every iteration IPOPT tells where it is, so that a search that is interrupted keeps what it has reached.
Reference: A. Wächter, L. T. Biegler, Mathematical Programming 106 (2006) 25.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.array_types import Floats

SILENT_OPTIONS = {
    "print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "error_on_fail": False, "show_eval_warnings": False,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class IpoptResult:
    """Where IPOPT stopped."""

    x: Floats
    multipliers: Floats
    converged: bool
    message: str
    iterations: int


class Ipopt:
    """The problem min f(x) subject to g(x) = 0; ``options`` of IPOPT beside silence; ``seen`` is called with every
    iterate.
    """

    def __init__(
        self, x: ca.MX, f: ca.MX, g: ca.MX, options: Mapping[str, Any], seen: Callable[[Floats], None] | None = None
    ) -> None:
        self._watch = _Watch(x.numel(), g.numel(), seen)
        named = {f"ipopt.{name}": value for name, value in options.items()}
        options = {**SILENT_OPTIONS, **named, "iteration_callback": self._watch}
        self._solver = ca.nlpsol("solver", "ipopt", {"x": x, "f": f, "g": g}, options)

    def run(self, start: Floats, lower: Floats, upper: Floats) -> IpoptResult:
        """Run IPOPT from a point, between bounds; raise ``KeyboardInterrupt`` after the iteration in which that
        came.
        """
        with self._watch.listening():
            found = self._solver(x0=np.clip(start, lower, upper), lbx=lower, ubx=upper, lbg=0.0, ubg=0.0)
        if self._watch.is_interrupted:
            raise KeyboardInterrupt
        x, multipliers = (np.array(found[name].full()).ravel() for name in ("x", "lam_g"))
        stats = self._solver.stats()
        message = f"IPOPT: {stats['return_status']}"
        return IpoptResult(x, multipliers, bool(stats["success"]), message, int(stats["iter_count"]))


class _Watch(ca.Callback):  # type: ignore[misc]  # CasADi has no types
    """Called by IPOPT after every iteration; what it returns ends the search.

    An exception would be lost in compiled code: Ctrl-C is noted while IPOPT runs, and raised when it has ended.
    """

    def __init__(self, nx: int, ng: int, seen: Callable[[Floats], None] | None) -> None:
        ca.Callback.__init__(self)
        self.sizes, self.seen, self.is_interrupted = {"x": nx, "lam_x": nx, "g": ng, "lam_g": ng, "f": 1}, seen, False
        self.construct("watch", {})

    def get_n_in(self) -> int:
        return int(ca.nlpsol_n_out())

    def get_sparsity_in(self, k: int) -> ca.Sparsity:
        return ca.Sparsity.dense(self.sizes.get(ca.nlpsol_out(k), 0), 1)

    def eval(self, given: list[ca.DM]) -> list[int]:
        if self.seen is not None:
            self.seen(np.array(given[0].full()).ravel())
        return [int(self.is_interrupted)]

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Watch for an interruption; only the main thread receives it."""
        self.is_interrupted = False
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, lambda *_: setattr(self, "is_interrupted", True))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
