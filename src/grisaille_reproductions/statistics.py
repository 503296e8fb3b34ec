"""What the Monte Carlo tables report of a sample: mean, standard deviation, skewness, a test of normality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Moments:
    count: int
    mean: float
    std: float
    skewness: float
    p_normal: float
    """Kolmogorov–Smirnov after scaling by the sample's own mean and standard deviation, as the source does; p is then
    larger than a proper (Lilliefors) test would give."""


def moments(sample: np.ndarray) -> Moments:
    from scipy.stats import kstest, skew

    x = np.asarray(sample, dtype=float)
    mean, std = float(x.mean()), float(x.std(ddof=1))
    return Moments(len(x), mean, std, float(skew(x)), float(kstest((x - mean) / std, "norm").pvalue))


def histogram(axis: Axes, sample: np.ndarray, unit: str) -> None:
    """The sample and the normal density of its moments."""
    m = moments(sample)
    axis.hist(sample, bins=min(60, max(10, len(sample) // 15)), density=True, color="0.8")
    x = np.linspace(m.mean - 4 * m.std, m.mean + 4 * m.std, 200)
    axis.plot(x, np.exp(-0.5 * ((x - m.mean) / m.std) ** 2) / (m.std * np.sqrt(2 * np.pi)), color="tab:red")
    axis.set(xlabel=f"estimate [{unit}]", yticks=[])
