"""What an animal of the zoo is: a model, data that were not made by the package, and what is true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import grisaille as gr


@dataclass(frozen=True)
class Entry:
    """A small model with an experiment and its truth.

    make : the model, and the experiments
    truth : the unknowns, and what they were when the data were made
    sizes : how far an unknown moves where its truth says nothing about that (a truth of zero)
    guess, priors, local : as in ``gr.fit``
    traits : what estimators are asked about: ``white``, ``coloured``, ``squared`` (kinds of disturbances), ``linear``,
        ``algebraic`` (implicit equations), ``index``, ``static``, ``jump`` (with a state), ``levels``, ``open`` (noise)
    refused : the sentence by which every estimator must refuse it, or nothing
    apart : estimators that refuse it for a reason of its own, with a fragment of the sentence
    """

    name: str
    about: str
    make: Callable[[], tuple[gr.Model, list[gr.Experiment]]]
    truth: Mapping[str, float]
    traits: frozenset[str] = frozenset()
    sizes: Mapping[str, float] = field(default_factory=dict)
    guess: Mapping[str, float] = field(default_factory=dict)
    local: tuple[str, ...] = ()
    refused: str = ""
    apart: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def made(self) -> tuple[gr.Model, list[gr.Experiment]]:
        return self.make()

    def fit(self, method: Any) -> gr.Fit:
        model, experiments = self.made
        return gr.fit(
            model, experiments, self.unknowns, method, guess=self.guess or None, local=self.local, progress=False
        )

    @property
    def unknowns(self) -> list[str]:
        """As ``estimate=`` takes them: unknowns of a single experiment among several are asked for once."""
        return list(dict.fromkeys(n.partition("@")[0] for n in self.truth))

    def size(self, name: str) -> float:
        return self.sizes.get(name, abs(self.truth[name]))
