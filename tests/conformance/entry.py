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
    local : as in ``gr.fit``; priors and bounds stand in the model
    traits : what estimators ask about: ``white``, ``coloured`` or ``squared`` disturbances, white ones in the equations
        of all states (``everywhere``); ``linear``, ``index`` above two, ``static``, a ``jump`` with a state; unknown
        ``levels`` of disturbances, ``open`` noise, ``local`` unknowns
    refused : the sentence by which every estimator must refuse it, or nothing
    apart : estimators that refuse it for a reason of its own, with a fragment of the sentence
    """

    name: str
    about: str
    make: Callable[[], tuple[gr.Model, list[gr.Experiment]]]
    truth: Mapping[str, float]
    traits: frozenset[str] = frozenset()
    sizes: Mapping[str, float] = field(default_factory=dict)
    local: tuple[str, ...] = ()
    refused: str = ""
    apart: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def made(self) -> tuple[gr.Model, list[gr.Experiment]]:
        return self.make()

    def fit(self, method: Any) -> gr.Fit:
        model, experiments = self.made
        return gr.fit(model, experiments, self.unknowns, method, local=self.local)

    @property
    def unknowns(self) -> list[str]:
        """As ``estimate=`` takes them: unknowns of a single experiment among several are asked for once."""
        return list(dict.fromkeys(n.partition("@")[0] for n in self.truth))

    def size(self, name: str) -> float:
        return self.sizes.get(name, abs(self.truth[name]))
