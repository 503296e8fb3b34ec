"""Laws of measurements filled for a few samples, and differences to compare derivatives with."""

from __future__ import annotations

from typing import Any

import numpy as np

from grisaille import laws

MEANS = np.array([-1.2, 0.4, 2.3])
POSITIVE = np.array([0.4, 1.5, 7.0])
CASES: dict[str, tuple[laws.Law, dict[str, Any]]] = {
    "normal": (laws.Normal(std=1.0), {"mean": MEANS, "std": np.array([0.3, 1.0, 2.0])}),
    "log-normal": (laws.LogNormal(log_std=0.4), {"median": POSITIVE}),
    "student": (laws.Student(df=3.5, scale=0.6), {"mean": MEANS}),
    "nearly normal": (laws.Student(df=1e6, scale=0.6), {"mean": MEANS}),
    "gamma": (laws.Gamma(shape=2.5), {"mean": POSITIVE}),
    "narrow gamma": (laws.Gamma(shape=1e4), {"mean": POSITIVE}),
    "beta": (laws.Beta(precision=6.0), {"mean": np.array([0.2, 0.5, 0.7])}),
    "narrow beta": (laws.Beta(precision=1e4), {"mean": np.array([0.2, 0.5, 0.7])}),
    "poisson": (laws.Poisson(), {"mean": POSITIVE}),
    "negative binomial": (laws.NegativeBinomial(size=1.7), {"mean": POSITIVE}),
    "binomial": (laws.Binomial(n=9), {"mean": POSITIVE}),
}


def filled(name: str) -> laws.Law:
    """Return the law of a case with its arguments."""
    law, values = CASES[name]
    return law.filled(values)


def free(law: laws.Law) -> tuple[str, ...]:
    """Return the arguments that unknowns may move."""
    return tuple(path for path in law.arguments if path not in law.held_arguments)


def assert_derivatives_are_differences(law: laws.Law, value: np.ndarray, rtol: float = 2e-6) -> None:
    """Compare gradient and Hessian with extrapolated differences of log-densities and gradients."""
    names = free(law)
    found = law.by_arguments(value, names)
    assert found.names == names and np.isfinite(found.value).all()
    np.testing.assert_allclose(found.value, law.log_density(value), rtol=1e-13, atol=1e-13)
    for k, name in enumerate(names):
        step = 2e-4 * np.maximum(np.abs(np.broadcast_to(law.arguments[name], value.shape)), 1e-3)

        def at(share: float, name: str = name, step: np.ndarray = step) -> tuple[np.ndarray, np.ndarray]:
            other = law.filled({name: law.arguments[name] + share * step}).by_arguments(value, names)
            return other.value, other.gradient

        def central(share: float, step: np.ndarray = step, at: Any = at) -> list[np.ndarray]:
            width = 2 * share * step
            (one, slope), (other, back) = at(share), at(-share)
            return [(one - other) / width, (slope - back) / width[:, None]]

        slope, bend = ((4 * b - a) / 3 for a, b in zip(central(1.0), central(0.5), strict=True))
        size = np.abs(found.hessian).max(axis=(1, 2))
        np.testing.assert_allclose(found.gradient[:, k], slope, rtol=rtol, atol=rtol * np.sqrt(size).max() + 1e-9)
        np.testing.assert_allclose(found.hessian[:, k], bend, rtol=rtol, atol=rtol * size.max() + 1e-9)
