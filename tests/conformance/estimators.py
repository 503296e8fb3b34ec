"""Every estimator, small, and in which cases it must refuse: a fragment of the sentence it then says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import grisaille as gr
from conformance.entry import Entry

DISTURBED = {"white", "coloured", "squared"}
Rule = Callable[[Entry], str]


@dataclass(frozen=True)
class Estimator:
    """A method with what it declares.

    refuses : the first rule that gives a fragment decides
    cannot : checks that it refuses for every fit, with a fragment of the sentence
    holds : whether it holds disturbances at zero, and has to say so
    averages : whether it averages over paths, so that only differences over wide steps see a jump
    rough : whether random numbers leave its criterion rough, so that only differences over wide steps show its slope
    chooses : whether it is but a choice among the others, which are checked by themselves
    is_another : whether, for an entry, it does exactly what another one does
    """

    name: str
    method: Any
    refuses: tuple[Rule, ...] = ()
    cannot: Mapping[str, str] = field(default_factory=dict)
    holds: bool = False
    averages: bool = False
    rough: bool = False
    chooses: bool = False
    is_another: Callable[[Entry], bool] = lambda entry: False

    def criterion(self, entry: Entry) -> Any:
        """With weights of several outputs, and steps between samples, that do not follow from each point."""
        if self.name in ("extended", "unscented") and "jump" not in entry.traits:
            return replace(self.method, substeps=8)
        if isinstance(self.method, gr.ParticleML):  # as many as a slope needs that is to be known
            return replace(self.method, particles=2048)
        if isinstance(self.method, gr.SimulatedPEM) and self.method.match == "mean":
            return replace(self.method, weighting=np.eye(len(entry.made[1][0].outputs)))
        return self.method

    def inability(self, check: str, entry: Entry) -> str:
        """Why a check is refused for the fit of an entry, or nothing."""
        is_nonlinear = isinstance(self.method, gr.ParticleML) or (
            isinstance(self.method, gr.KalmanML) and self.method.filter in ("extended", "unscented")
        )
        if check == "bootstrap" and is_nonlinear and "local" in entry.traits:
            return "has no one model where"
        return self.cannot.get(check, "")

    def refusal(self, entry: Entry) -> str:
        """Why it refuses an entry, or nothing."""
        found = [entry.refused, entry.apart.get(self.name, ""), *(rule(entry) for rule in self.refuses)]
        return next((text for text in found if text), "")


def is_disturbed(entry: Entry) -> bool:
    return bool(entry.traits & DISTURBED)


def _when(trait: str, fragment: str) -> Rule:
    return lambda entry: fragment if trait in entry.traits else ""


def _unless(trait: str, fragment: str) -> Rule:
    return lambda entry: "" if trait in entry.traits else fragment


def _undisturbed(entry: Entry) -> str:
    return "" if is_disturbed(entry) else "has no disturbances, so every simulation is the mean"


def _not_on_every_state(entry: Entry) -> str:
    """Two criteria exist for splines only, which need white noise in every equation of a state."""
    return "" if "everywhere" in entry.traits else "direct collocation has no criterion="


def _is_direct_anyway(entry: Entry) -> bool:
    """Without white noise in every equation of a state there are no splines; a jump is none of their business."""
    return "everywhere" not in entry.traits or "jump" in entry.traits


LEVELS = _when("levels", "does not estimate 'scale(")
UNSEEN = _when("squared", "has no linear effect where it is zero")
STILL = _when("static", "is static, and a filter follows models in time")
STILL_PARTICLES = _when("static", "is static, and a particle filter follows models in time")
COLLOCATED = (_when("static", "is static, and collocation follows models in time"), UNSEEN)
WEIGHED = (*COLLOCATED, _when("open", "collocation weighs data against the model by it"))
ON_SPLINES = (*COLLOCATED, _when("levels", "as given and does not estimate it"), _not_on_every_state, *WEIGHED)
NOT_REDRAWN = {"bootstrap": "bootstrap draws again come with gr.KalmanML(), gr.OutputError() or gr.ParticleML()"}
OFF_THE_MINIMUM = {**NOT_REDRAWN, "profile": "debias=True moved the estimates off the minimum"}
MISFIT_ALONE = {**NOT_REDRAWN, "profile": "criterion='smoothing' has no profiles"}
MEANS = {**NOT_REDRAWN, "profile": "Profiles and confidence regions need a likelihood"}

_ALL = [
    Estimator("auto", "auto", chooses=True),
    Estimator("output-error", gr.OutputError(), (LEVELS,), holds=True),
    Estimator(
        "multiple-shooting", gr.OutputError(shooting="multiple", pieces=3),
        (_when("static", "is nothing to shoot at"), _when("index", "needs independent first-order states"), LEVELS),
        holds=True,
    ),
    Estimator("pem", gr.SimulatedPEM(realizations=16), (_undisturbed,), MEANS, averages=True),
    Estimator(
        "pem-variance", gr.SimulatedPEM(realizations=32, match="mean-variance"), (_undisturbed,), MEANS, averages=True
    ),
    Estimator(
        "linear", gr.KalmanML(filter="linear"), (STILL, _unless("linear", "needs a model that is linear in its states"))
    ),
    Estimator("extended", gr.KalmanML(filter="extended"), (STILL, UNSEEN)),
    Estimator("unscented", gr.KalmanML(filter="unscented"), (STILL, UNSEEN)),
    Estimator("particles", gr.ParticleML(particles=64, repetitions=4), (STILL_PARTICLES,), rough=True),
    Estimator("amle", gr.Collocation(criterion="amle"), WEIGHED, NOT_REDRAWN),
    Estimator("debiased", gr.Collocation(debias=True), WEIGHED, OFF_THE_MINIMUM),
    Estimator("laplace", gr.Collocation(), COLLOCATED, NOT_REDRAWN),
    Estimator("ipda", gr.Collocation(criterion="ipda"), ON_SPLINES, NOT_REDRAWN),
    Estimator("smoothing", gr.Collocation(criterion="smoothing"), ON_SPLINES, MISFIT_ALONE),
    Estimator(
        "direct", gr.Collocation(criterion="amle", transcription="direct"), WEIGHED, NOT_REDRAWN,
        is_another=_is_direct_anyway,
    ),
    Estimator(
        "direct-laplace", gr.Collocation(transcription="direct"), COLLOCATED, NOT_REDRAWN,
        is_another=_is_direct_anyway,
    ),
]  # fmt: skip
ESTIMATORS: dict[str, Estimator] = {e.name: e for e in _ALL}
