"""A search that was interrupted keeps what it reached.

``Interrupted`` is a ``KeyboardInterrupt``: studies and scripts stop as they would, while ``gr.fit`` gives the fit as
far as it came, marked as not converged, from which ``guess=fit`` goes on.
"""

from __future__ import annotations

from grisaille.estimation.estimate import Estimate


class Interrupted(KeyboardInterrupt):
    """Raised by an estimator in place of a ``KeyboardInterrupt``, with the estimate reached so far."""

    def __init__(self, estimate: Estimate) -> None:
        super().__init__("the fit was interrupted")
        self.estimate = estimate
