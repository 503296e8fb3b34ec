"""Names of the contract of version 0.1.0 that an estimator may still declare, and what takes their place."""

from __future__ import annotations

from grisaille.errors import EstimationError

STATES = "give trajectories as an object, states = …, that derives from States (grisaille.estimation.abilities.states)"
AHEAD = "give predictions ahead as an object, ahead = …, that derives from Ahead (grisaille.estimation.abilities.ahead)"
REDRAW = 'say what a bootstrap draws by redraw = Redraw("noise") (grisaille.estimation.abilities.redraw)'
ADVICE = "give sentences as an object, advice = …, that derives from Advice (grisaille.estimation.abilities.advice)"
EFFORT = "give costs as an object, effort = …, that derives from Effort (grisaille.estimation.abilities.effort)"
DENSITY = "say what is minimised by an object, density = …, such as OwnLikelihood (grisaille.estimation.density.own)"
GONE: dict[str, str] = {
    "deviance": DENSITY, "objective": DENSITY, "valued": DENSITY, "comparable": DENSITY, "has_own_likelihood": DENSITY,
    "not_a_likelihood": DENSITY, "no_profiles": DENSITY, "no_ratio": DENSITY, "estimates_levels": DENSITY,
    "levels_told": DENSITY, "is_likelihood": DENSITY,
    "has_states": STATES, "smooths": STATES, "states_at": STATES, "kept": STATES,
    "follows": AHEAD, "filters": AHEAD, "predicts_ahead": AHEAD, "predict_ahead": AHEAD, "predict_with_bands": AHEAD,
    "led": AHEAD, "continued": AHEAD,
    "redraws": REDRAW, "no_bootstrap": REDRAW, "no_parametric": REDRAW,
    "tells_how": "leave it out: Problem.transcription says it",
    "reckoned": "give other kinds of standard errors as an object, other_errors = …, that derives from OtherErrors "
    "(grisaille.estimation.abilities.other_errors)",
    "simulated": "call it simulation_options", "seeded": "leave it out: an option called seed says it",
    "robust_way": ADVICE, "about_correlation": ADVICE, "about_shared_noise": ADVICE, "remarks": ADVICE,
    "ways_out": ADVICE,
    "cost": EFFORT, "bytes_needed": EFFORT, "beforehand": EFFORT,
}  # fmt: skip
"""What to do instead, by the name."""


def refuse_old_contract(cls: type) -> None:
    """Refuse a class that declares attributes of an older contract, in one sentence that says what to change."""
    declared, annotated = vars(cls), vars(cls).get("__annotations__", {})
    for name in declared:
        is_option = "ClassVar" not in str(annotated.get(name, "ClassVar"))
        if name in GONE and not is_option:
            raise EstimationError(f"{cls.__name__} declares '{name}', which estimators no longer have: {GONE[name]}.")
    if callable(declared.get("states")):
        raise EstimationError(f"{cls.__name__} declares 'states' as a method, which it no longer is: {STATES}.")
