"""What an estimator can do, as its contract declares it: one table for all pages, messages and tests.

An answer is a word or two, and the sentence by which the same estimator refuses where the answer is no. Nothing is
stated here about an estimator by name: each answer is read from what the class declares with the options given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grisaille.estimation.abilities.missing import why_missing
from grisaille.estimation.density.criterion_kinds import (
    why_no_density,
    why_no_inversion,
    why_no_posterior,
    why_no_profiles,
    why_no_ratio,
)
from grisaille.estimation.estimator import Estimator


@dataclass(frozen=True)
class AbilityAnswer:
    """``word``: yes, no or under which condition; ``why``: the sentence of a refusal, where the contract has one."""

    word: str
    why: str = ""


@dataclass(frozen=True)
class AbilityQuestion:
    """Something that is asked of every estimator: in words, as a call, and how the contract answers."""

    what: str
    call: str
    asked: Callable[[Estimator], AbilityAnswer]


def _unless(refusal: str) -> AbilityAnswer:
    return AbilityAnswer("no", refusal) if refusal else AbilityAnswer("yes")


def _refusal_text(declared: bool) -> AbilityAnswer:
    return AbilityAnswer("yes" if declared else "no")


def _redrawn(method: Estimator, kind: str) -> AbilityAnswer:
    return _unless(method.redraw.refused.get(kind, "") if method.redraw else why_missing(method, "redraw"))


def _predicted(method: Estimator) -> AbilityAnswer:
    if method.ahead is not None:
        return AbilityAnswer("yes")
    follows_data = method.states is not None and method.states.follow_data
    return _unless(why_missing(method, "ahead")) if follows_data else AbilityAnswer("by simulation")


TESTS = {"all": "whiteness, inputs, normality, size", "size": "their size only", "none": "none, they follow the data"}
REDRAWN = {"noise": "measurement noise", "model": "disturbances and noise"}
ABILITIES: tuple[AbilityQuestion, ...] = (
    AbilityQuestion(
        "strength of a disturbance", 'estimate=["scale(w)"]', lambda m: AbilityAnswer(m.density.levels.scale)
    ),
    AbilityQuestion(
        "level of measurement noise", 'estimate=["noise(y)"]', lambda m: AbilityAnswer(m.density.levels.noise)
    ),
    AbilityQuestion(
        "other laws than normal noise",
        "gr.Output(…, distribution=…)",
        lambda m: _refusal_text(m.takes_laws and not m.made_for_squares),
    ),
    AbilityQuestion(
        "covariance of noise", 'noise_covariance → "full"', lambda m: _refusal_text(m.takes_unknown_covariances)
    ),
    AbilityQuestion("information criteria", "fit.aic, fit.bic", lambda m: _refusal_text(m.is_likelihood)),
    AbilityQuestion("log-density", "gr.log_density(…)", lambda m: _unless(why_no_density(m))),
    AbilityQuestion(
        "posterior",
        "fit.posterior()",
        lambda m: _unless(why_no_posterior(m)),
    ),
    AbilityQuestion("likelihood-ratio tests", "fit.test(…)", lambda m: _unless(why_no_ratio(m))),
    AbilityQuestion("profiles, regions", "fit.profile(…), fit.surface(…)", lambda m: _unless(why_no_profiles(m))),
    AbilityQuestion("profile intervals", 'fit.intervals(method="profile")', lambda m: _unless(why_no_profiles(m))),
    AbilityQuestion(
        "bootstrap intervals",
        'fit.intervals(method="bootstrap")',
        lambda m: _unless(why_missing(m, "redraw") or why_no_profiles(m) or why_no_inversion(m)),
    ),
    AbilityQuestion("parametric bootstrap", "gr.bootstrap(fit)", lambda m: _redrawn(m, "parametric")),
    AbilityQuestion("… draws again", "", lambda m: AbilityAnswer(REDRAWN[m.redraw.what] if m.redraw else "–")),
    AbilityQuestion("residual bootstrap", 'gr.bootstrap(fit, kind="residual")', lambda m: _redrawn(m, "residual")),
    AbilityQuestion("states with bands", "fit.states()", lambda m: _unless(why_missing(m, "states"))),
    AbilityQuestion("prediction k samples ahead", "fit.predict(horizon=k)", _predicted),
    AbilityQuestion("residuals are tested for", "fit.diagnose()", lambda m: AbilityAnswer(TESTS[m.residual_tests])),
)


def abilities(method: Estimator) -> dict[str, AbilityAnswer]:
    """Return every answer by its question."""
    return {a.what: a.asked(method) for a in ABILITIES}


def markdown(methods: Sequence[Estimator], variants: Sequence[tuple[str, Estimator]]) -> str:
    """Return a column per estimator with its own options; what other options change; the sentences of refusals,
    numbered.
    """
    sentences: list[str] = []
    lines = [
        "| ability | " + " | ".join(f"`gr.{type(m).__name__}()`" for m in methods) + " |",
        "| --- |" + " --- |" * len(methods),
    ]
    for ability in ABILITIES:
        cells = [_cell(ability.asked(method), sentences) for method in methods]
        asked = f"{ability.what}<br>`{ability.call}`" if ability.call else ability.what
        lines.append(f"| {asked} | {' | '.join(cells)} |")
    own = {type(m): abilities(m) for m in methods}
    lines += ["", "| with | what changes |", "| --- | --- |"]
    for label, method in variants:
        usual = own[type(method)]
        changed = [
            f"{what}: {_cell(a, sentences)}" for what, a in abilities(method).items() if a.word != usual[what].word
        ]
        lines.append(f"| `{label}` | {'; '.join(changed) or 'nothing'} |")
    return "\n".join([*lines, "", *(f"{k}. {sentence}" for k, sentence in enumerate(sentences, 1))])


def _cell(answer: AbilityAnswer, sentences: list[str]) -> str:
    if not answer.why:
        return answer.word
    if answer.why not in sentences:
        sentences.append(answer.why)
    return f"{answer.word} ({sentences.index(answer.why) + 1})"
