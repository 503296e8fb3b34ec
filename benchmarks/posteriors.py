"""Two posteriors of differential equations against reference draws, and what a gradient is worth.

    GRISAILLE_REFERENCE_DATA=… python benchmarks/posteriors.py lynx
    GRISAILLE_REFERENCE_DATA=… python benchmarks/posteriors.py compartment

Data and reference moments are those of posteriordb (``posteriordb/`` in the folder of reference data), whose draws are
Stan's. *lynx* compares the means of all unknowns and of their squares, in Monte Carlo standard errors of both together.
In *compartment* K_m and V_m have two half-Cauchy tails, so that their second moments are infinite and means of finitely
many draws say little: k_a and sigma are compared by means, all four by their quantiles with a quadrature over a grid
that is computed here, with a Runge–Kutta method of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import grisaille as gr
from grisaille import der
from grisaille.posteriors.chain import SamplingOptions, advance, begin_chain
from grisaille.posteriors.convergence import effective_size, mcse_of_mean
from grisaille.posteriors.metric import Metric
from grisaille.results.sampled import Posterior

PROBABILITIES = (0.025, 0.25, 0.5, 0.75, 0.975)


class LynxHare(gr.Model):
    """Hares u and lynx v, measured with log-normal errors."""

    theta1 = gr.Parameter(0.5, prior=gr.Normal(1.0, 0.5), bounds=(0.0, np.inf))
    theta2 = gr.Parameter(0.03, prior=gr.Normal(0.05, 0.05), bounds=(0.0, np.inf))
    theta3 = gr.Parameter(0.8, prior=gr.Normal(1.0, 0.5), bounds=(0.0, np.inf))
    theta4 = gr.Parameter(0.03, prior=gr.Normal(0.05, 0.05), bounds=(0.0, np.inf))
    sigma1 = gr.Parameter(0.25, prior=gr.LogNormal(np.exp(-1.0), 1.0))
    sigma2 = gr.Parameter(0.25, prior=gr.LogNormal(np.exp(-1.0), 1.0))
    u, v = gr.Variable(30.0), gr.Variable(4.0)
    hares = gr.Output(u, distribution=gr.LogNormal(log_std=sigma1))
    lynx = gr.Output(v, distribution=gr.LogNormal(log_std=sigma2))
    equations = [der(u) == (theta1 - theta2 * v) * u, der(v) == (-theta3 + theta4 * u) * v]


class Compartment(gr.Model):
    """A drug that is absorbed, and eliminated by a saturable process."""

    D, V = gr.Parameter(30.0), gr.Parameter(2.0)
    k_a = gr.Parameter(0.75, prior=gr.HalfCauchy(1.0))
    K_m = gr.Parameter(0.5, prior=gr.HalfCauchy(1.0))
    V_m = gr.Parameter(1.0, prior=gr.HalfCauchy(1.0))
    sigma = gr.Parameter(0.1, prior=gr.HalfCauchy(1.0))
    C = gr.Variable(0.0)
    y = gr.Output(C, distribution=gr.LogNormal(log_std=sigma))
    equations = [der(C) == gr.exp(-k_a * gr.time) * D * k_a / V - V_m / V * C / (K_m + C)]


def reference(name: str) -> Any:
    """Return a file of posteriordb."""
    folder = Path(os.environ["GRISAILLE_REFERENCE_DATA"]) / "posteriordb"
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def compare_moments(found: Posterior, name: str, ours: dict[str, str], squares: bool = True) -> float:
    """Print differences in Monte Carlo standard errors, and return the largest."""
    worst = 0.0
    for what, power in [("means", 1), *([("squares", 2)] if squares else [])]:
        table = reference(f"{name}.{what}")
        values, errors = (next(v for k, v in table.items() if k.startswith(w)) for w in ("mean", "mcse"))
        for unknown, value, error in zip(table["names"], values, errors, strict=True):
            if unknown not in ours:
                continue
            x = found.draws[ours[unknown]].values ** power
            z = float((x.mean() - value) / np.hypot(mcse_of_mean(x), error))
            worst = max(worst, abs(z))
            print(f"   {what:<8} {ours[unknown]:<10} {x.mean():12.6g} {value:12.6g}  {z:+.2f} standard errors")
    return worst


def report_work(found: Posterior, seconds: float) -> None:
    """Print what draws cost."""
    gradients = int(found.statistics["n_steps"].sum())
    worst = float(found.table["ess_bulk"].min())
    print(
        f"   {worst:.0f} effective draws of {len(found)} for {gradients} gradients after the warm-up: "
        f"{worst / gradients:.3f} a gradient; {found._drawn.evaluations} gradients and {seconds:.0f} s of processor "
        f"time altogether, {worst / seconds:.0f} effective draws a second; {found.status}"
    )
    print(f"   the sampler takes {1e6 * overhead(len(found.names)):.0f} µs a gradient beside the density")


def sampled(fit: gr.Fit, draws: int, seed: int, acceptance: float) -> Posterior:
    """Draw in this process, and print what draws cost."""
    begin = time.process_time()
    found = fit.posterior(draws, seed=seed, acceptance=acceptance, executor="serial", progress=False)
    seconds = time.process_time() - begin
    print(found)
    report_work(found, seconds)
    return found


class StandardNormal:
    """A target that costs next to nothing."""

    def __init__(self, size: int) -> None:
        self.names = tuple(f"x{k}" for k in range(size))

    def value_and_gradient(self, xi: np.ndarray) -> tuple[float, np.ndarray]:
        """Return −½ |ξ|² and −ξ."""
        return -0.5 * float(xi @ xi), -xi


def overhead(size: int) -> float:
    """Return the processor time that the sampler takes for each gradient beside it: the least of six repetitions."""
    target, options = StandardNormal(size), SamplingOptions(3000, 300)
    chain = begin_chain(target, Metric(np.zeros(size), np.eye(size)), 0, 1)
    assert chain is not None
    chain, _ = advance(target, chain, options.tune, options)
    found = []
    for _ in range(6):
        begin = time.process_time()
        chain, block = advance(target, chain, 500, options)
        whole = (time.process_time() - begin) / int(block.evaluations.sum())
        begin = time.process_time()
        for _ in range(3000):
            target.value_and_gradient(chain.z)
        found.append(whole - (time.process_time() - begin) / 3000)
    return min(found)


def lynx(draws: int, seed: int) -> None:
    """Compare all moments of the predator–prey posterior."""
    data = reference("hudson_lynx_hare")
    y = np.vstack([data["y_init"], data["y"]])
    record = gr.Experiment(np.arange(21.0), {}, {"hares": y[:, 0], "lynx": y[:, 1]})
    names = ["theta1", "theta2", "theta3", "theta4", "sigma1", "sigma2", "start(u)", "start(v)"]
    priors = {"start(u)": gr.LogNormal(10.0, 1.0), "start(v)": gr.LogNormal(10.0, 1.0)}
    fit = gr.fit(LynxHare(), record, names, gr.OutputError(), priors=priors)
    found = sampled(fit, draws, seed, 0.8)
    ours = {f"theta[{k}]": f"theta{k}" for k in range(1, 5)} | {f"sigma[{k}]": f"sigma{k}" for k in (1, 2)}
    ours |= {"z_init[1]": "start(u)", "z_init[2]": "start(v)"}
    print(f"largest difference: {compare_moments(found, 'hudson_lynx_hare', ours):.2f} standard errors")


def compartment(draws: int, seed: int) -> None:
    """Compare means of k_a and sigma, and quantiles of all unknowns with a quadrature."""
    data = reference("one_comp_mm_elim_abs")
    record = gr.Experiment(np.array(data["times"]), {}, {"y": np.array(data["C_hat"])}, t0=0.0)
    fit = gr.fit(Compartment(), record, ["k_a", "K_m", "V_m", "sigma"], gr.OutputError())
    found = sampled(fit, draws, seed, 0.9)
    compare_moments(found, "one_comp_mm_elim_abs", {"k_a": "k_a", "sigma": "sigma"}, squares=False)
    worst = 0.0
    for name, (values, weights) in quadrature(data).items():
        x = found.draws[name].values
        below = np.cumsum(weights) - 0.5 * weights
        for p in PROBABILITIES:
            q = float(np.exp(np.interp(p, below, np.log(values))))
            indicator = (x <= q).astype(float)
            error = np.sqrt(p * (1 - p) / effective_size(indicator))
            z = float((indicator.mean() - p) / error)
            worst = max(worst, abs(z))
            mine = np.quantile(x, p)
            print(f"   quantile {p:5.3f} of {name:<6} {mine:10.5g} {q:10.5g}  {z:+.2f} standard errors")
    print(f"largest difference of a quantile: {worst:.2f} standard errors")


def quadrature(data: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return grids of each unknown with their marginal probabilities, sigma summed beside the others."""
    k_a = np.exp(np.linspace(np.log(0.42), np.log(1.5), 26))
    K_m = np.exp(np.linspace(np.log(0.002), np.log(1000.0), 90))
    ratio = np.exp(np.linspace(np.log(0.35), np.log(2.2), 64))  # V_m in units of what balances at C = 10
    sigma = np.exp(np.linspace(np.log(0.055), np.log(0.5), 90))
    A, K, Q = (g.ravel() for g in np.meshgrid(k_a, K_m, ratio, indexing="ij"))
    M = Q * (0.6 + 0.09 * K)
    squares = np.concatenate([
        residual_squares(data, a, k, m) for a, k, m in zip(*(np.array_split(v, 40) for v in (A, K, M)), strict=True)
    ])  # fmt: skip
    # densities per unit of log of the grid's coordinates: V_m/ratio does not depend on ratio
    prior = sum(np.log(v) - np.log1p(v**2) for v in (A, K, M))
    log_p = -20 * np.log(sigma) - 0.5 * squares[:, None] / sigma**2 + np.log(sigma) - np.log1p(sigma**2)
    log_p = log_p + prior[:, None]
    p = np.exp(log_p - np.nanmax(log_p))
    p = np.where(np.isfinite(p), p, 0.0) / np.nansum(p)
    joint = p.sum(axis=1)
    order = np.argsort(M)
    return {
        "k_a": (k_a, np.array([joint[v == A].sum() for v in k_a])),
        "K_m": (K_m, np.array([joint[v == K].sum() for v in K_m])),
        "V_m": (M[order], joint[order]),
        "sigma": (sigma, p.sum(axis=0)),
    }


def residual_squares(data: Any, a: np.ndarray, k: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return Σ (log y − log C)² by classical Runge–Kutta steps, one solution per row; steps suit the smallest k."""
    dose, volume = data["D"], data["V"]
    rate = float((m / (volume * k)).max())
    count = max(40, int(np.ceil(0.5 * rate / 2.0)))
    h, C, total, t = 0.5 / count, np.zeros(len(a)), np.zeros(len(a)), 0.0

    def slope(at: float, c: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-a * at) * dose * a / volume - m / volume * c / (k + np.abs(c)))

    for measured in np.log(data["C_hat"]):
        for _ in range(count):
            one = slope(t, C)
            two = slope(t + h / 2, C + h / 2 * one)
            three = slope(t + h / 2, C + h / 2 * two)
            four = slope(t + h, C + h * three)
            C, t = C + h / 6 * (one + 2 * two + 2 * three + four), t + h
        total += (measured - np.log(np.maximum(C, 1e-9))) ** 2
    return total


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description="Posteriors against reference draws.")
    parser.add_argument("which", choices=["lynx", "compartment"])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    (lynx if given.which == "lynx" else compartment)(given.draws, given.seed)


if __name__ == "__main__":
    main()
