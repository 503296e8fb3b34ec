"""How far models of public Modelica libraries come: flattened, read, built, simulated.

    python benchmarks/modelica_libraries.py FOLDER [--limit 120] [--only TEXT] [--output rows.jsonl]

FOLDER holds checkouts of modelica-ibpsa, ThermofluidStream, ThermoPower and ModelicaStandardLibrary. Each model has a
process of its own; one at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

STAGES = ("flattened", "read", "built", "simulated")
CHECKOUTS = ("ModelicaStandardLibrary", "modelica-ibpsa", "ThermofluidStream", "ThermoPower")
MODELS = """
IBPSA.Utilities.Math.Examples.SmoothMin
IBPSA.Utilities.Math.Examples.Polynomial
IBPSA.Utilities.Math.Examples.IntegratorWithReset
IBPSA.Utilities.Psychrometrics.Examples.DewPointTemperature
IBPSA.Utilities.Psychrometrics.Examples.TWetBul_TDryBulPhi
IBPSA.Controls.Continuous.Examples.LimPID
IBPSA.Controls.Continuous.Examples.LimPIDWithReset
IBPSA.Controls.Discrete.Examples.BooleanDelay
IBPSA.Controls.SetPoints.Examples.SupplyReturnTemperatureReset
IBPSA.Controls.OBC.CDL.Reals.Validation.PID
IBPSA.Controls.OBC.CDL.Discrete.Validation.TriggeredSampler
IBPSA.BoundaryConditions.SkyTemperature.Examples.BlackBody
IBPSA.BoundaryConditions.SolarGeometry.Examples.ZenithAngle
IBPSA.Electrical.DC.Lines.Examples.RCModel
IBPSA.Electrical.DC.Loads.Examples.Resistor
IBPSA.ThermalZones.ISO13790.Examples.FreeFloating
IBPSA.ThermalZones.ReducedOrder.Examples.SimpleRoomOneElement
IBPSA.Fluid.MixingVolumes.Examples.MixingVolumeHeatConduction
IBPSA.Fluid.Sensors.Examples.Density
IBPSA.Fluid.FixedResistances.Examples.PressureDrop
IBPSA.Fluid.HeatExchangers.Radiators.Examples.RadiatorEN442_2
IBPSA.Fluid.Movers.Examples.MoverParameter
IBPSA.Airflow.Multizone.Examples.Orifice
IBPSA.Examples.Tutorial.SimpleHouse.SimpleHouse0
ThermofluidStream.FlowControl.Tests.TanValve
ThermofluidStream.Processes.Tests.Flow_Resistance
ThermofluidStream.Processes.Tests.ConductionElement
ThermofluidStream.Boundaries.Tests.SourceSink
ThermofluidStream.Boundaries.Tests.Volumes
ThermofluidStream.Topology.Tests.TestJunction
ThermofluidStream.HeatExchangers.Tests.FlowRes
ThermofluidStream.Sensors.Tests.TestSensors
ThermofluidStream.Examples.SimpleStream
ThermoPower.Test.ElectricalComponents.TestElectrical1
ThermoPower.Test.ElectricalComponents.TestElectrical4
ThermoPower.Test.GasComponents.TestGasPlenum
ThermoPower.Test.GasComponents.TestGasPressDrop
ThermoPower.Test.WaterComponents.SimpleMotor
ThermoPower.Test.WaterComponents.TestPressDrop
ThermoPower.Test.DistributedParameterComponents.TestWalls
""".split()


def file_of(name: str, folder: Path) -> Path:
    """Return the file in which a model of a library stands."""
    parts = name.split(".")
    for checkout in CHECKOUTS:
        here = folder / checkout
        for k, part in enumerate(parts):
            if k and (file := here / f"{part}.mo").is_file():
                return file
            here = here / part
    raise SystemExit(f"{folder} holds no {name}.")


def child(name: str, folder: Path) -> None:
    """Follow one model as far as it comes; a line of JSON after each stage."""
    import numpy as np

    import grisaille as gr
    from grisaille.modelica.reading import flat_text_of, read_with_settings

    file, roots = file_of(name, folder), [folder / checkout for checkout in CHECKOUTS]
    own = name.split(".")
    inner = ".".join(own[own.index(file.stem) + 1 :])
    chosen = f"{file.stem}.{inner}" if inner else None

    def tell(**what: object) -> None:
        print(json.dumps(what), flush=True)

    begin = time.perf_counter()
    try:
        flat_text_of(file, chosen, roots)
        tell(reached="flattened", flattened=time.perf_counter() - begin)
        begin = time.perf_counter()
        model, settings = read_with_settings(file, chosen, roots)
        tell(reached="read", again=time.perf_counter() - begin)
        gr.analyze(model)
        tell(reached="built")
        first, last = float(settings.get("StartTime", 0.0)), float(settings.get("StopTime", 1.0))
        result = gr.simulate(model, np.linspace(first, last, 201), rtol=1e-6)
        if result.sizes["time"] != 201:
            raise RuntimeError(f"{result.sizes['time']} of 201 times answered: {result.attrs.get('status')}")
        tell(reached="simulated")
    except Exception as error:
        tell(error=f"{type(error).__name__}: {error}"[:1500])


def run(name: str, folder: Path, limit: float) -> dict[str, object]:
    """Return how far a model comes within the limit of time."""
    environment = {"GRISAILLE_OPTIMIZATION": "-O0", **os.environ}
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__, str(folder), "--child", name], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, env=environment, start_new_session=True,
    )  # fmt: skip
    row: dict[str, object] = {"model": name, "reached": ""}
    try:
        out, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        row["error"] = f"longer than {limit:g} s"
    for line in out.splitlines():
        with contextlib.suppress(ValueError):
            row |= json.loads(line)
    return row


def table(rows: list[dict[str, object]]) -> str:
    """Return the rows as Markdown."""
    lines = ["| model | comes to | first, again | stopped by |", "| --- | --- | --- | --- |"]
    for row in rows:
        seconds = f"{row['flattened']:.1f} s, {row['again']:.2f} s" if "again" in row else ""
        words = [line.strip() for line in str(row.get("error", "")).splitlines()]
        cause = " ".join(words[:2]).replace("|", "\\|")[:200]
        lines.append(f"| `{row['model']}` | {row['reached'] or 'not flattened'} | {seconds} | {cause} |")
    counts = [sum(STAGES.index(str(r["reached"])) >= k for r in rows if r["reached"]) for k in range(len(STAGES))]
    reached = ", ".join(f"{count} {stage}" for stage, count in zip(STAGES, counts, strict=True))
    return "\n".join([*lines, "", f"Of {len(rows)}: {reached}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--child")
    asked = parser.parse_args()
    if asked.child:
        child(asked.child, asked.folder)
        return
    rows = []
    for name in (name for name in MODELS if asked.only in name):
        rows.append(run(name, asked.folder, asked.limit))
        print(f"{name}: {rows[-1]['reached'] or 'not flattened'} {str(rows[-1].get('error', ''))[:300]}", flush=True)
        if asked.output:
            with asked.output.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
