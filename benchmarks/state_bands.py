"""How often bands of smoothed states hold the truth: ``fit.states(bands="noise")`` and ``fit.states(bands="all")``.

    python benchmarks/state_bands.py [leak] [outlet] [--sets 400] [--store FILE]

A tank with a slow unknown leak, its outflow linear in the level (``leak``, an exact filter) or as its root (``outlet``,
an extended one); outflow coefficient and scale of the leak are estimated. Each set is drawn by Euler's method with ten
steps between samples, fitted, and the true leak compared with its 95 % bands. Counted are sets that hold it at four
instants; allowed are counts that an exact binomial test at 0.1 % does not refuse, 364 … 393 of 400. The share over the
whole record, whose instants are correlated, is printed beside them. Counts are kept after every ten sets, and the same
command continues from there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.stats import binom

import grisaille as gr
from grisaille import der, sqrt

SAMPLES, STEP, FINE = 150, 0.2, 10
AT = (SAMPLES // 4, SAMPLES // 2, 3 * SAMPLES // 4, SAMPLES - 1)
KINDS = ("noise", "all")
REFUSED, TOGETHER = 1e-3, 10


class Leak(gr.Model):
    """A tank whose outflow is proportional to its level."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    h = gr.Variable(1.0)
    q = gr.Input()
    leak = gr.Disturbance(gr.spectra.integrated(), scale=0.02)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h - leak]


class Outlet(gr.Model):
    """A tank whose outflow is that of Torricelli."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    h = gr.Variable(1.0)
    q = gr.Input()
    leak = gr.Disturbance(gr.spectra.integrated(), scale=0.02)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * sqrt(h) - leak]


PLANTS = {
    "leak": (Leak, lambda h: 0.5 * h, 0.6),
    "outlet": (Outlet, lambda h: 0.5 * np.sqrt(max(h, 0.0)), 1.2),
}
"""Model, outflow and mean inflow."""


def drawn(plant: str, seed: int) -> tuple[gr.Experiment, np.ndarray]:
    """A record and the true leak."""
    rng, step = np.random.default_rng(seed), STEP / FINE
    _, outflow, inflow = PLANTS[plant]
    q = inflow + 0.2 * np.repeat(rng.choice([-1, 1], SAMPLES // 25), 25)
    h, leak, seen = 1.0, 0.0, []
    for k in range(SAMPLES):
        seen.append((h, leak))
        for _ in range(FINE):
            h, leak = h + step * (q[k] - outflow(h) - leak), leak + 0.02 * np.sqrt(step) * rng.normal()
    level, truth = np.array(seen).T
    y = level + 0.02 * rng.normal(size=SAMPLES)
    return gr.Experiment(STEP * np.arange(SAMPLES), {"q": q}, {"y": y}), truth


def held(plant: str, seed: int) -> dict[str, list[bool]]:
    """Which instants of one set lie inside the bands, by kind."""
    data, truth = drawn(plant, seed)
    fit = gr.fit(PLANTS[plant][0](), data, ["k", "scale(leak)"], gr.KalmanML(), progress=False)
    found = {}
    for kind in KINDS:
        band = fit.states(names=["leak"], bands=kind)["leak"].sel(given="smoothed")
        inside = (band.sel(statistic="lower") <= truth) & (truth <= band.sel(statistic="upper"))
        found[kind] = inside.values.tolist()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plants", nargs="*", choices=[*PLANTS, []], default=[], metavar="|".join(PLANTS))
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--store", type=Path, default=None)
    options = parser.parse_args()
    kept = json.loads(options.store.read_text()) if options.store and options.store.exists() else {}
    allowed = binom.ppf([REFUSED / 2, 1 - REFUSED / 2], options.sets, 0.95).astype(int)
    for plant in options.plants or PLANTS:
        sets = kept.setdefault(plant, [])
        while len(sets) < options.sets:
            sets.append(held(plant, len(sets)))
            if options.store and len(sets) % TOGETHER == 0:
                options.store.write_text(json.dumps(kept))
        if options.store:
            options.store.write_text(json.dumps(kept))
        for kind in KINDS:
            inside = np.array([s[kind] for s in sets[: options.sets]])
            counts, share = inside[:, AT].sum(axis=0), inside.mean(axis=1)
            right = bool(((allowed[0] <= counts) & (counts <= allowed[1])).all())
            print(
                f"{plant}, bands={kind!r}: {', '.join(map(str, counts))} of {len(inside)} sets hold the leak at t = "
                f"{', '.join(f'{STEP * k:g}' for k in AT)} ({'as claimed' if right else 'refused'}: {allowed[0]} … "
                f"{allowed[1]} are allowed); over records {100 * share.mean():.1f} % on average, "
                f"{100 * np.quantile(share, 0.05):.0f} % or less in a twentieth of them"
            )


if __name__ == "__main__":
    main()
