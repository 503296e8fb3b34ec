"""Ten examples of the Modelica Standard Library from their sources: verified against references, and fitted.

Each is flattened by rumoca with its parameters kept, simulated and compared with the signals of another tool where a
reference is given; then two or three parameters and a start are recovered by output error from data that were simulated
with noise, from guesses that are 20 % off. Four, one of them a mechanism, are fitted again with a disturbance, by
KalmanML and SimulatedPEM. The program ends with status 1 if a fit does not converge or lies more than four of its
standard errors off.

    python benchmarks/modelica_fits.py LIBRARY [--references FOLDER] [--only First] [--keep FOLDER] [--output FILE]

LIBRARY     the folder that holds Modelica and ModelicaServices, version 4.1.0 of ModelicaStandardLibrary
REFERENCES  NAME.csv or NAME.csv.gz by full name: a column of times, then a column for each signal
KEEP        where flat texts are kept, so that a second run need not flatten
FILE        a line of JSON for each fit
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import grisaille as gr
from grisaille.modelica.reading import flat_text_of
from grisaille.study.reference_signals import read_reference

OFF, NOISE, REALIZATIONS, FAR = 1.2, 0.01, 100, 4.0


@dataclass(frozen=True)
class Example:
    """What is measured and what is wanted of one model."""

    name: str
    outputs: tuple[str, ...]
    estimate: tuple[str, ...]
    start: Mapping[str, float]
    """One start that is estimated too, at the value it has in the data."""
    stop: float
    samples: int = 201
    disturbance: tuple[str, Any, float] | None = None
    """(variable, spectrum, scale) for the fits with one."""
    truth: Mapping[str, float] = field(default_factory=dict)
    """Values in the data that differ from the library's."""


ROTATIONAL, TRANSLATIONAL = "Modelica.Mechanics.Rotational.Examples.", "Modelica.Mechanics.Translational.Examples."
ANALOG, MULTIBODY = "Modelica.Electrical.Analog.Examples.", "Modelica.Mechanics.MultiBody.Examples."
EXAMPLES = (
    Example(ROTATIONAL + "First", ("inertia3.phi", "damper.phi_rel"), ("Jload", "spring.c", "damping"),
            {"inertia3.w": 0.2}, 1.0),
    Example(ROTATIONAL + "EddyCurrentBrake", ("inertia.phi", "heatCapacitor.T"),
            ("eddyCurrentTorque.tau_nominal", "heatCapacitor.C"), {"heatCapacitor.T": 295.0}, 1.0),
    Example(TRANSLATIONAL + "Oscillator", ("mass1.s", "mass2.s"), ("spring1.c", "damper1.d"), {"mass2.v": 0.1},
            0.5, 401, disturbance=("spring1.f", gr.spectra.lowpass(50.0), 0.3)),
    Example(TRANSLATIONAL + "InitialConditions", ("m1.s", "sd1.s_rel"), ("s1.c", "sd1.c", "sd1.d"),
            {"m1.v": 1.0}, 2.0, 401),
    Example(ANALOG + "CauerLowPassAnalog", ("C1.v", "C5.v"), ("l1", "c3", "R2.R"), {"L1.i": 0.05}, 60.0,
            disturbance=("V.v", gr.spectra.lowpass(0.5), 0.1)),
    Example(ANALOG + "ParallelResonance", ("capacitor1.v",), ("resistor1.R", "capacitor1.C"), {"inductor1.i": 0.3},
            0.5, 401),
    Example(ANALOG + "ShowSaturatingInductor", ("Inductance1.i", "SaturatingInductance1.Psi"), ("Inductance1.L", "U"),
            {"Inductance1.i": 0.2}, 6.2832, disturbance=("SineVoltage1.v", gr.spectra.lowpass(5.0), 0.05)),
    Example(ANALOG + "HeatingRectifier", ("Capacitor1.v", "HeatCapacitor1.T"), ("Capacitor1.C", "HeatCapacitor1.C"),
            {"HeatCapacitor1.T": 295.0}, 5.0),
    Example(MULTIBODY + "Elementary.PendulumWithSpringDamper", ("revolute.phi", "prismatic.s"),
            ("spring1.spring.c", "damper1.d"),
            {"prismatic.s": 0.3}, 5.0),
    Example(MULTIBODY + "Elementary.Pendulum", ("rev.phi",), ("damper.d", "body.r_CM[1]"), {"rev.w": 0.5}, 3.0,
            disturbance=("rev.tau", gr.spectra.lowpass(2.0), 0.05)),
)  # fmt: skip


def main() -> None:
    options = _options()
    rows: list[dict[str, Any]] = []
    for example in EXAMPLES:
        if options.only in example.name:
            rows += _run(example, options)
    wrong = [row for row in rows if not row["right"]]
    print(f"\n{len(rows) - len(wrong)} of {len(rows)} right")
    if options.output is not None:
        options.output.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    sys.exit(1 if wrong else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--references", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def _run(example: Example, options: argparse.Namespace) -> list[dict[str, Any]]:
    begin = time.perf_counter()
    model = gr.read_modelica(_flat(example.name, options))
    print(
        f"\n{example.name}: {len(model.parameters)} parameters, read in {time.perf_counter() - begin:.0f} s", flush=True
    )
    rows = []
    verified = _verified(example, model, options.references)
    if verified is not None:
        rows.append({"example": example.name, "step": "reference", "right": verified})
        print(f"  reference: {'agrees' if verified else 'DOES NOT AGREE'}", flush=True)
    rows.append(_fitted(example, model, gr.OutputError(), None))
    if example.disturbance is not None:
        rows.append(_fitted(example, model, gr.KalmanML(), example.disturbance))
        method = gr.SimulatedPEM(realizations=REALIZATIONS, seed=1)
        rows.append(_fitted(example, model, method, example.disturbance))
    return rows


def _flat(name: str, options: argparse.Namespace) -> str:
    kept = options.keep / f"{name}.bmo" if options.keep is not None else None
    if kept is not None and kept.exists():
        return kept.read_text("utf-8")
    text = flat_text_of(f"model Example extends {name}; end Example;", "Example", [options.library])
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text, "utf-8")
    return text


def _verified(example: Example, model: gr.Model, folder: Path | None) -> bool | None:
    """Whether every signal of the reference agrees; None where there is none."""
    found = [p for p in (folder / f"{example.name}.csv{e}" for e in ("", ".gz")) if p.exists()] if folder else []
    if not found:
        return None
    reference = read_reference(found[0])
    result = gr.simulate(model, reference.times, rtol=1e-6)
    return all(reference.compare(n, np.asarray(result[n].values, dtype=float)).agrees for n in reference.signals)


def _fitted(example: Example, model: gr.Model, method: Any, disturbance: Any) -> dict[str, Any]:
    """Data with noise (and the disturbance) from the library's values, and the fit from guesses that are off."""
    times = np.linspace(0.0, example.stop, example.samples)
    if disturbance is not None:
        on, spectrum, scale = disturbance
        model = model.with_disturbance(on, spectrum, scale=scale, label="w")
    plain = gr.simulate(model, times, start=dict(example.start))
    spans = {label: float(np.ptp(plain[label].values)) for label in example.outputs}
    plant = model.with_outputs({n: n for n in example.outputs}, noise={n: NOISE * spans[n] for n in example.outputs})
    run = gr.simulate(
        plant, times, start=dict(example.start), noise=True, seed=7, realizations=1 if disturbance else None
    )
    data = {n: np.asarray(run[n].values, dtype=float).reshape(-1) for n in example.outputs}
    names = [*example.estimate, *(f"start({n})" for n in example.start)]
    truth = {n: float(model.parameters[n].value or 0.0) for n in example.estimate}
    truth |= {f"start({n})": value for n, value in example.start.items()}
    guess = {n: OFF * value for n, value in truth.items()}
    guess |= {f"start({n})": float(model.start.get(n, 0.0)) for n in example.start}
    begin = time.perf_counter()
    experiment = gr.Experiment(times, {}, data, name="simulated")
    fit = gr.fit(plant, experiment, names, method=method, guess=guess, progress=False)
    seconds = time.perf_counter() - begin
    off = {n: (float(fit[n]) - truth[n]) / (float(fit[n].std_error) or np.nan) for n in names}
    finite = all(0.0 < float(fit[n].std_error) < np.inf for n in names)
    right = bool(fit.converged) and finite and max(map(abs, off.values())) < FAR
    label = type(method).__name__
    print(f"  {label}: {'converged' if fit.converged else fit.status}, {seconds:.0f} s", flush=True)
    for n in names:
        print(
            f"    {n:32} {truth[n]:<12.6g} {float(fit[n]):.6g} ± {float(fit[n].std_error):.2g} ({off[n]:+.1f})",
            flush=True,
        )
    return {
        "example": example.name, "step": label, "right": right, "seconds": round(seconds, 1), "truth": truth,
        "estimate": {n: float(fit[n]) for n in names}, "std_error": {n: float(fit[n].std_error) for n in names},
    }  # fmt: skip


if __name__ == "__main__":
    main()
