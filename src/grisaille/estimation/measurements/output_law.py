"""The law of one output's measurements around its prediction, with everything in it that may be a formula.

Normal noise is the law ``Normal(std=noise)``; where it is open, its standard deviation is the unknown ``noise(y)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from grisaille.bound_experiment.data_matrix import OutputSamples
from grisaille.bound_experiment.sample_limits import limits_in, own_limits
from grisaille.estimation.measurements.sample_formulas import SampleFormula
from grisaille.laws import Law, Normal
from grisaille.laws.censored import censored_path
from grisaille.laws.law_derivatives import replace_fields
from grisaille.model.expression import Expression
from grisaille.model.flat import FlatModel, FlatOutput
from grisaille.model.measurement.distributions import formulas_of

LEVEL_ARGUMENT = "std"
"""The argument of a normal law that an open level of noise is."""


@dataclass(frozen=True, eq=False)
class OutputLaw:
    """The law of one output.

    law : with formulas of the model as arguments
    formulas : of these arguments by path; an open level of noise is not among them
    """

    output: str
    law: Law
    formulas: Mapping[str, SampleFormula]

    @classmethod
    def of(cls, model: FlatModel, output: str) -> OutputLaw:
        """Return the law of an output of a model."""
        law = law_of(model.outputs[output])
        return cls(output, law, {path: SampleFormula.of(model, e) for path, e in formulas_of(law).items()})

    @property
    def is_open(self) -> bool:
        """Return whether it is normal noise of an unknown level."""
        return isinstance(self.law, Normal) and LEVEL_ARGUMENT not in self.formulas

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Observed names in its formulas."""
        return tuple(dict.fromkeys(n for f in self.formulas.values() for n in f.needs))

    def moving(self, estimated: Sequence[str]) -> tuple[str, ...]:
        """Return the arguments by which the density is differentiated where parameters of these names are estimated."""
        held = self.law.held_arguments
        return tuple(p for p, f in self.formulas.items() if p not in held and f.depends_on(estimated))

    def limits(self, samples: OutputSamples, arguments: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the limits of samples, where some have one of their own: those in place of the law's."""
        return limits_in(self.law, samples, arguments)

    def with_unknown_limits(self, samples: OutputSamples) -> np.ndarray | None:
        """Return which samples have limits that are not known for the others; None where there are none."""
        path, found = censored_path(self.law), None
        for side, own in own_limits(samples):
            if f"{path}{side}" not in self.formulas:
                found = np.isfinite(own) | (False if found is None else found)
        return found

    def filled(self, location: np.ndarray, arguments: Mapping[str, np.ndarray]) -> Law:
        """Return the law with a number for each sample in place of every argument."""
        return self.law.filled({self.law.location_path: location, **arguments})


def law_of(output: FlatOutput) -> Law:
    """Return the law of an output; a normal one where it declares noise, or nothing."""
    if output.distribution is not None:
        return output.distribution
    noise: Expression | None = output.noise
    return replace_fields(Normal(std=1.0), std=noise)  # type: ignore[no-any-return, call-arg]


def output_laws(model: FlatModel, outputs: Sequence[str]) -> dict[str, OutputLaw]:
    """Return the law of each measured output."""
    return {name: model.cached_value(("law", name), partial(OutputLaw.of, model, name)) for name in outputs}


def have_laws(model: FlatModel, outputs: Sequence[str]) -> bool:
    """Return whether some output declares another law than normal noise."""
    return any(model.outputs[n].distribution is not None for n in outputs)
