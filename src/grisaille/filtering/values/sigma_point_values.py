"""Log-likelihoods of the unscented filter without derivatives, by code that compiles in half a second.

The same averages and updates as ``unscented``, as loops over sigma points in C (``compilation.kalman.loop_source``);
the two agree to rounding. For models whose formulas do not jump with a state.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from grisaille.compilation.kalman.builds import FilterLibrary
from grisaille.compilation.kalman.compiled_pass import PreparedPass, run_forward
from grisaille.compilation.kalman.loop_source import FilterLoops
from grisaille.compilation.kalman.passing import PassResult
from grisaille.disturbance.duals import Floats
from grisaille.filtering.filter import Derivatives
from grisaille.filtering.formulation import formulate
from grisaille.filtering.nonlinear.extended import ExtendedFilter

MAX_STATES = 64
"""With more of them twice as many points take too long for a check."""


class SigmaPointValues(ExtendedFilter):
    """The unscented filter of one record, for values alone."""

    derivatives: ClassVar[Derivatives] = None

    def carry(self, given: PreparedPass, q: Floats, s: Floats, dq: Floats, keep: bool) -> PassResult:
        """Return a pass from s; directions are refused, because there are no derivatives."""
        assert not len(dq), "this filter has no derivatives"
        return run_forward(self.library, given, q, s[0], s[1:], dq, keep)

    @property
    def library(self) -> FilterLibrary:
        """Return the compiled pass."""
        if self.newton not in self._by_newton:
            formulation = formulate(self.model, replace(self.kind, constant=self._is_constant()))
            assert formulation.looped is not None, "a filter of averages that are cut has no loops"
            self._by_newton[self.newton] = formulation.looped
        return self._by_newton[self.newton].values

    @cached_property
    def _by_newton(self) -> dict[int, FilterLoops]:
        return {}
