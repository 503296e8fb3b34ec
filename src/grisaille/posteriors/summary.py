"""A posterior as text: a table of its unknowns that ends with what is to be known about the draws."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grisaille.posteriors.posterior import SampledPosterior

LONG_NUMBER = re.compile(r"\d+\.\d{6,}(e[+-]?\d+)?")


def summarize(posterior: SampledPosterior) -> str:
    """Return the table that ``print(posterior)`` shows."""
    table, drawn = posterior.table, posterior._drawn
    first = max(22, *(len(name) + 2 for name in posterior.names))
    width = 76 + first
    chains, count = drawn.theta.shape[:2]
    method = type(posterior.fit.method).__name__
    lines = [
        f"Posterior of {posterior.model_name} by {method}",
        "═" * width,
        f"{'chains':<18}{chains:<12}{'draws of each':<18}{count:<12}{'after a warm-up of':<20}{drawn.options.tune}",
        f"{'gradients':<18}{drawn.evaluations:<12}{'seed':<18}{posterior.seed:<12}{'divergent':<20}"
        f"{int(drawn.statistics['diverging'].sum())}",
        "─" * width,
        f"{'':<{first}}{'mean':>12}{'sd':>11}{'95 % interval':>27}{'mcse':>10}{'ess':>8}{'R̂':>8}  unit",
    ]
    for name, row in table.iterrows():
        interval = f"[{_short(row['q2.5'])}, {_short(row['q97.5'])}]"
        size = min(row["ess_bulk"], row["ess_tail"])
        lines.append(
            f"{name!s:<{first}}{_short(row['mean']):>12}{_short(row['sd'], 4):>11}{interval:>27}"
            f"{_short(row['mcse_mean'], 2):>10}{size:>8.0f}{row['r_hat']:>7.3f}  {row['unit']}"
        )
    lines += ["─" * width, *(f"{n:<{first}}{rounded(law)}" for n, law in posterior.priors.items()), "─" * width]
    lines.append(posterior.status)
    return "\n".join([*lines, *(f"• {rounded(note)}" for note in posterior.notes)])


def rounded(text: str) -> str:
    """Return a text with numbers of many digits as short ones."""
    return LONG_NUMBER.sub(lambda found: f"{float(found[0]):.5g}", text)


def _short(value: float, digits: int = 5) -> str:
    return f"{value:.{digits}g}"
