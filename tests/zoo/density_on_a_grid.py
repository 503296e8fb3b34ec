"""The likelihood of one state dx = f(x) dt + σ dW on a grid: its density is carried by a Markov chain.

    rate i → i ± 1 = D/h² exp(± f h / (2 D)),    f between both,    D = σ²/2

so that the chain has the moments of the process to order h². Measured values multiply the density. Reference: H. Wang,
C. S. Peskin, T. C. Elston, J. Theor. Biol. 221 (2003) 491.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import expm


def log_likelihood(
    drift: Callable[[np.ndarray], np.ndarray],
    sigma: float,
    start: tuple[float, float],
    times: np.ndarray,
    y: np.ndarray,
    density: Callable[[np.ndarray, np.ndarray], np.ndarray],
    span: tuple[float, float],
    cells: int = 300,
) -> float:
    """Return log p(y); equally spaced samples, NaN where not measured.

    start : mean and variance of a normal density before the first sample
    density : p(y | x) of one measurement at points x
    """
    x, h = np.linspace(*span, cells, retstep=True)
    D = sigma**2 / 2
    up = D / h**2 * np.exp(drift(x[:-1] + h / 2) * h / (2 * D))
    down = D / h**2 * np.exp(-drift(x[:-1] + h / 2) * h / (2 * D))
    rates = np.diag(up, -1) + np.diag(down, 1)
    rates -= np.diag(rates.sum(axis=0))
    steps = np.diff(times)
    assert np.allclose(steps, steps[0])
    move = expm(rates * steps[0])
    p = np.exp(-0.5 * (x - start[0]) ** 2 / start[1])
    p, total = p / p.sum(), 0.0
    for k, value in enumerate(y):
        p = move @ p if k else p
        if not np.isnan(value):
            p = p * density(np.full(cells, value), x)
            total += np.log(p.sum())
            p = p / p.sum()
    return float(total)
