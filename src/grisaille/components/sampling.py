"""What stands between a signal and its samples: filters that make a measurement of infinite variance finite.

A signal that contains white noise has no value at an instant. Instruments do not ask for one: they filter, or they
average. Bind the signal to ``u``, measure ``y``::

    class Plant(gr.Model):
        ...
        filter = presampling_filter(time_constant=0.01, order=1, u=z1 + z2)
        level = gr.Output(filter.y, noise=0.02)

Each takes away as many derivatives of a disturbance as its transfer function has more poles than zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from grisaille.errors import ModelError
from grisaille.model.classes import Model
from grisaille.model.declarations import Input, Output, Parameter, Variable
from grisaille.model.functions import der

if TYPE_CHECKING:
    from grisaille.model.given import Statement


def presampling_filter(time_constant: Any = None, order: int = 1, **changes: Any) -> Model:
    """Return y = u / (T s + 1)ⁿ: n equal lags in a row; with n = order it takes away n derivatives.

    ``time_constant`` (T, in s) is a number or a formula; other members are changed by name, as in every model.
    """
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise ModelError(f"presampling_filter: order must be a whole number from 1, got {order!r}.")

    class PresamplingFilter(Model):
        """y = u / (T s + 1)ⁿ."""

        time_constant = Parameter(unit="s")
        u = Input()
        stage = Variable(size=order)
        y = Output(stage[order - 1])

        def equations(self) -> Iterator[Statement]:
            for k in range(order):
                yield self.time_constant * der(self.stage[k]) == (self.stage[k - 1] if k else self.u) - self.stage[k]

    given = {} if time_constant is None else {"time_constant": time_constant}
    return PresamplingFilter(**given, **changes)


class IntegratingSampler(Model):
    """y ≈ (1/T) ∫_{t−T}^{t} u dτ: the mean over the last ``window`` T.

    (1 − e^{−sT})/(sT) is replaced by 1/(1 + sT/2 + (sT)²/12), equal up to (sT)³. White noise of intensity q comes out
    with the variance q/T of the true mean, exactly. Takes away two derivatives (the true mean only one).
    """

    window = Parameter(unit="s")
    u = Input()
    mean, slope = Variable(), Variable()
    y = Output(mean)

    def equations(self) -> Iterator[Statement]:
        T = self.window
        yield der(self.mean) == self.slope
        yield T**2 / 12 * der(self.slope) == self.u - self.mean - T / 2 * self.slope


class Totalizer(Model):
    """y = ∫ u dτ from the first instant on: counters and meters; differences of readings are exact integrals."""

    u = Input()
    total = Variable(start=0.0, fixed=True)
    y = Output(total)

    def equations(self) -> Iterator[Statement]:
        yield der(self.total) == self.u
