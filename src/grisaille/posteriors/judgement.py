"""What may be said of draws, in words: whether chains agree, how many draws they are worth, where trajectories failed.

Limits are those of Vehtari et al. (2021): R̂ at most 1.01, an effective size of the bulk and of the tails of at least
100 for each chain. The energies of a chain should move as far from one transition to the next as they do altogether:
Σ (E_{i+1} − E_i)² / Σ (E_i − Ē)² of at least 0.3 (M. Betancourt, arXiv:1604.00695).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grisaille.posteriors.convergence import Convergence
from grisaille.posteriors.nuts import MAX_DEPTH
from grisaille.posteriors.posterior_draws import PosteriorDraws

MAX_R_HAT = 1.01
MIN_EFFECTIVE_DRAWS = 100
"""Of each chain."""
MIN_ENERGY_SHARE = 0.3
MAX_TRUNCATED_SHARE = 0.01
FEW = 3
"""Divergences that are listed one by one."""
MAX_SIDE_SHARE = 0.3
"""Of the draws: divergences are at a side of an unknown where nine tenths of them lie among so many draws."""
LIMITED_DIVERGENCES = 0.9
MAX_NAMED = 4


def disagreements(found: Mapping[str, Convergence], chains: int) -> list[str]:
    """Return what speaks against the convergence of the chains; empty where nothing does."""
    said = []
    if chains < 2:
        said.append("one chain: whether others would agree with it is not known; draw chains=4.")
    apart = {n: c.r_hat for n, c in found.items() if not c.r_hat <= MAX_R_HAT}
    if apart:
        listed = _largest({n: (v if np.isfinite(v) else np.inf) for n, v in apart.items()}, "{:.3f}")
        said.append(
            f"chains disagree: R̂ is {listed}, and at most {MAX_R_HAT} where they agree. Draw longer ones "
            f"(draws=, tune=), or look at posterior.plot() for parts that chains do not leave."
        )
    wanted = MIN_EFFECTIVE_DRAWS * chains
    sizes = {n: float(np.nan_to_num(min(c.ess_bulk, c.ess_tail))) for n, c in found.items()}
    few = {n: size for n, size in sizes.items() if size < wanted}
    if few:
        smallest = sorted(few, key=lambda n: few[n])[:MAX_NAMED]
        listed = ", ".join(f"{few[n]:.0f} for {n}" for n in smallest) + (" and others" if len(few) > MAX_NAMED else "")
        said.append(
            f"few effective draws: {listed}, where quantiles need {wanted}. About {_more(few, wanted)} "
            f"times as many draws= would do."
        )
    return said


def _more(few: Mapping[str, float], wanted: float) -> int:
    """Return how many times as many draws are needed."""
    return int(np.ceil(wanted / max(min(few.values()), 1.0)))


def trajectory_notes(draws: PosteriorDraws, names: Sequence[str], failures: Mapping[str, int]) -> list[str]:
    """Return notes on trajectories that failed, were cut off, or explore slowly.

    failures : reasons for which the model had no value where trajectories diverged, and how often
    """
    diverging, depth, energy = (draws.statistics[n] for n in ("diverging", "tree_depth", "energy"))
    said = divergence_notes(draws, names, failures) if diverging.any() else []
    truncated = float(np.mean(depth >= MAX_DEPTH))
    if truncated > MAX_TRUNCATED_SHARE:
        said.append(
            f"long trajectories: {100 * truncated:.0f} % have the most steps that are made, {2**MAX_DEPTH}: the "
            f"posterior is much narrower in some direction than in others. A longer warm-up (tune=) learns more of it."
        )
    moved = np.mean(np.diff(energy, axis=1) ** 2, axis=1) / np.maximum(np.var(energy, axis=1), 1e-300)
    if energy.shape[1] > 1 and (moved < MIN_ENERGY_SHARE).any():
        said.append(
            f"heavy tails: energies move by {float(moved.min()):.2f} of their variance from draw to draw, where "
            f"{MIN_ENERGY_SHARE} is enough: the tails of the posterior are explored slowly. Narrower priors help."
        )
    corrected = [k for k, count in enumerate(draws.corrections) if count]
    if corrected:
        said.append(
            f"metric: that of the fit was corrected in {len(corrected)} of {len(draws.corrections)} chains; the "
            f"posterior is not as the curvature at the estimates says."
        )
    return said


def divergence_notes(draws: PosteriorDraws, names: Sequence[str], failures: Mapping[str, int]) -> list[str]:
    """Say how many trajectories diverged and where, in the user's names."""
    count = int(draws.statistics["diverging"].sum())
    share = count / draws.statistics["diverging"].size
    said = f"{count} divergent trajector{'y' if count == 1 else 'ies'} ({100 * share:.2g} % of the draws)"
    said += f", {_where(draws, names)}" if len(draws.divergences) else ""
    looked = sum(failures.values())
    if looked:
        reason = max(failures, key=lambda r: failures[r])
        said += f". {looked} of those looked at came where the model has no value ({reason})"
    return [
        f"{said}. The posterior is not explored there: try acceptance=0.95 for shorter steps, or priors and bounds "
        f"that leave out what is impossible."
    ]


def _where(draws: PosteriorDraws, names: Sequence[str]) -> str:
    """Say where divergences lie among the draws."""
    flat, failed = draws.xi.reshape(-1, len(names)), draws.divergences
    order = np.sort(flat, axis=0)
    ranks = np.array([np.searchsorted(order[:, k], failed[:, k]) / len(flat) for k in range(len(names))])
    sides = {}
    for k, u in enumerate(ranks):
        low, high = np.quantile(u, LIMITED_DIVERGENCES), 1 - np.quantile(u, 1 - LIMITED_DIVERGENCES)
        sides[k] = (float(low), "below") if low <= high else (float(high), "above")
    k = min(sides, key=lambda j: sides[j][0])
    share, side = sides[k]
    theta = np.sort(draws.theta.reshape(-1, len(names))[:, k])
    if len(failed) <= FEW:
        values = [f"{theta[min(int(u * len(theta)), len(theta) - 1)]:.3g}" for u in ranks[k]]
        return f"at {names[k]} near {', '.join(values)}"
    if share > MAX_SIDE_SHARE:
        return "spread over the posterior"
    at = theta[min(int((share if side == "below" else 1 - share) * len(theta)), len(theta) - 1)]
    return (
        f"most of them where {names[k]} is {side} {at:.3g}, as in {100 * max(share, 1 / len(theta)):.2g} % of the draws"
    )


def _largest(values: Mapping[str, float], form: str) -> str:
    largest = sorted(values, key=lambda n: -values[n])[:MAX_NAMED]
    return ", ".join(f"{form.format(values[n])} for {n}" for n in largest) + (
        " and others" if len(values) > MAX_NAMED else ""
    )
