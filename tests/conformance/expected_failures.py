"""What does not hold yet, with the reason: ``animal-estimator-check``.

Each is a strict expected failure: the suite says when one of them has been repaired.
"""

from __future__ import annotations

LEAN = (
    "collocation finds scales from what trajectories leave of the data: right for white noise, half the truth and six "
    "standard errors off for low-pass noise, converged and without a word"
)

EXPECTED: dict[str, str] = {
    "house-amle-fit": LEAN,
    "house-debiased-fit": LEAN,
}


def reason_of(name: str) -> str:
    """Why a check fails today, or nothing."""
    return EXPECTED.get(name, "")
