"""Advice of integrators in the words of a fit: ``max_steps=`` and ``method=`` are options of ``gr.simulate`` alone."""

from __future__ import annotations

import re

ADVICE = (
    re.compile(r"Give a larger max_steps=, a looser rtol=, or method='implicit' if the model is stiff"),
    re.compile(r"Use method='auto' or method='implicit'"),
)
FOR_FITS = (
    "Keep the search away from there by bounds=, begin elsewhere by guess=, or give gr.OutputError a looser rtol="
)


def advice_for_fits(failure: str) -> str:
    """A reason why a simulation failed, with advice that whoever fits a model can follow."""
    for pattern in ADVICE:
        failure = pattern.sub(FOR_FITS, failure)
    return failure
