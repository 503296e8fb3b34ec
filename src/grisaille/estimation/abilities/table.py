"""What an estimator can do, as its contract declares it: one table for all pages, messages and tests.

An answer is a word or two, and the sentence by which the same estimator refuses where the answer is no. Nothing is
stated here about an estimator by name: each answer is read from what the class declares with the options given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grisaille.estimation.abilities.missing import why_missing
from grisaille.estimation.density.kinds import why_no_density, why_no_profiles, why_no_ratio
from grisaille.estimation.estimator import Estimator


@dataclass(frozen=True)
class Answer:
    """``word``: yes, no or under which condition; ``why``: the sentence of a refusal, where the contract has one."""

    word: str
    why: str = ""


@dataclass(frozen=True)
class Asked:
    """Something that is asked of every estimator: in words, as a call, and how the contract answers."""

    what: str
    call: str
    asked: Callable[[Estimator], Answer]


def _unless(refusal: str) -> Answer:
    return Answer("no", refusal) if refusal else Answer("yes")


def _said(declared: bool) -> Answer:
    return Answer("yes" if declared else "no")


def _redrawn(method: Estimator, kind: str) -> Answer:
    return _unless(method.redraw.refused.get(kind, "") if method.redraw else why_missing(method, "redraw"))


def _predicted(method: Estimator) -> Answer:
    if method.ahead is not None:
        return Answer("yes")
    follows_data = method.states is not None and method.states.follow_data
    return _unless(why_missing(method, "ahead")) if follows_data else Answer("by simulation")


TESTS = {"all": "whiteness, inputs, normality, size", "size": "their size only", "none": "none, they follow the data"}
REDRAWN = {"noise": "measurement noise", "model": "disturbances and noise"}
ABILITIES: tuple[Asked, ...] = (
    Asked("strength of a disturbance", 'estimate=["scale(w)"]', lambda m: Answer(m.density.levels.scale)),
    Asked("level of measurement noise", 'estimate=["noise(y)"]', lambda m: Answer(m.density.levels.noise)),
    Asked(
        "other laws than normal noise",
        "gr.Output(…, distribution=…)",
        lambda m: _said(m.takes_laws and not m.made_for_squares),
    ),
    Asked("covariance of noise", 'noise_covariance → "full"', lambda m: _said(m.takes_unknown_covariances)),
    Asked("information criteria", "fit.aic, fit.bic", lambda m: _said(m.is_likelihood)),
    Asked("log-density", "gr.log_density(…)", lambda m: _unless(why_no_density(m))),
    Asked("likelihood-ratio tests", "fit.test(…)", lambda m: _unless(why_no_ratio(m))),
    Asked("profiles, regions", "fit.profile(…), fit.surface(…)", lambda m: _unless(why_no_profiles(m))),
    Asked("profile intervals", 'fit.intervals(method="profile")', lambda m: _unless(why_no_profiles(m))),
    Asked(
        "bootstrap intervals",
        'fit.intervals(method="bootstrap")',
        lambda m: _unless(why_missing(m, "redraw") or why_no_profiles(m)),
    ),
    Asked("parametric bootstrap", "gr.bootstrap(fit)", lambda m: _redrawn(m, "parametric")),
    Asked("… draws again", "", lambda m: Answer(REDRAWN[m.redraw.what] if m.redraw else "–")),
    Asked("residual bootstrap", 'gr.bootstrap(fit, kind="residual")', lambda m: _redrawn(m, "residual")),
    Asked("states with bands", "fit.states()", lambda m: _unless(why_missing(m, "states"))),
    Asked("prediction k samples ahead", "fit.predict(horizon=k)", _predicted),
    Asked("residuals are tested for", "fit.diagnose()", lambda m: Answer(TESTS[m.residual_tests])),
)


def abilities(method: Estimator) -> dict[str, Answer]:
    """Every answer by its question."""
    return {a.what: a.asked(method) for a in ABILITIES}


def markdown(methods: Sequence[Estimator], variants: Sequence[tuple[str, Estimator]]) -> str:
    """A column per estimator with its own options; what other options change; the sentences of refusals, numbered."""
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


def _cell(answer: Answer, sentences: list[str]) -> str:
    if not answer.why:
        return answer.word
    if answer.why not in sentences:
        sentences.append(answer.why)
    return f"{answer.word} ({sentences.index(answer.why) + 1})"
