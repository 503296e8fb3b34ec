"""OpenModelica's test suite as an oracle: small texts, simulated, beside the values its scripts print.

    python benchmarks/openmodelica_testsuite.py OpenModelica-testsuite --output rows.jsonl

Scripts of ``simulation/modelica`` with one ``simulate``, one ``loadFile`` or ``loadString``, ``status: correct`` and
printed ``val(name, times)`` count. A value is right within 0.1 % of the largest one that is asked for, and one at the
instant of a jump when it is the one just before or just after; where the script asks for a coarse grid, its straight
line between two points is right, too. Runs by Euler's method or QSS are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelica_case import cause, counted, kept, values

RELATIVE, BESIDE = 1e-3, 1e-6
OTHER = {
    "built_in_functions/Delay": "the script itself expects sin(4.99) = -0.9617, and prints -0.9693",
    "daemode/testDAE10": "x and y can be exchanged",
    "daemode/testDAEp7": "the derivatives have several solutions",
    "equations/WhenEquation1": "the event just after the start counts at the start",
    "equations/TestTwoOut": "printed for another text: out is -6 t at the last sample, and 5.4 is printed",
    "events/bug2718": "z touches the threshold of its condition, and does not pass it",
    "initialization/homotopy4": "x2 has two solutions, and homotopy leads to the other one",
    "initialization/startValue2": "the two equations have several solutions",
    "nonlinear_system/bug_3527": "sin(y + 1) has each value twice in a period",
    "nonlinear_system/problem4": "x1 and x2 can be exchanged; with another solver the suite prints ours",
    "nonlinear_system/problem5": "sums of cosines have several solutions",
    "nonlinear_system/problem7": "the almost linear function has two solutions; other solvers give ours",
    "others/Reductions": "the smallest of no numbers is 1e60 in the Standard Library, 8.8e304 there",
    "others/TestSolve1[2456]": "even functions have several solutions",
    "tearing/Tearing15": "v1 * sin(v1) has each value many times",
}
"""Scripts (and those that run them with another solver) whose values are not the only right ones, or not right."""
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


@dataclass(frozen=True)
class Script:
    """What one script simulates, and what it prints."""

    name: str
    source: str
    """A path, or the text itself."""
    model: str
    span: tuple[float, float]
    step: float
    expected: list[tuple[str, float, float]]
    """A variable, a time and the value printed for it."""
    libraries: bool

    @property
    def single(self) -> bool:
        """Whether each value is asked for at one time and no library is loaded."""
        return not self.libraries and self.scalar

    scalar: bool = True


def scripts(folder: Path) -> Iterator[Script]:
    """The scripts that can be read off this way, in order of their names."""
    for file in sorted((folder / "simulation" / "modelica").glob("*/*.mos")):
        text = file.read_text("utf-8", errors="replace")
        if re.search(r"//\s*status:\s*correct", text):
            found = _script(file, *text.partition("// Result")[::2])
            if found is not None:
                yield found


def _script(file: Path, head: str, result: str) -> Script | None:
    commands = statements(head)
    loads = [c for c in commands if re.match(r"(\w+\s*:=\s*)?load(File|String)\s*\(", c)]
    runs = [c for c in commands if re.match(r"(\w+\s*:=\s*)?simulate\s*\(", c)]
    asked = [m for c in commands if (m := re.fullmatch(r"val\s*\(\s*(.+?)\s*,\s*([^,]+|\{.*\})\s*\)", c, re.S))]
    otherwise = re.search(r"override|startTime\s*=\s*[a-z]|method\s*=\s*\"(euler|qss|symSolver)", " ".join(runs))
    if len(loads) != 1 or len(runs) != 1 or not asked or otherwise or "noevents" in head:
        return None
    printed = re.findall(
        rf"(?m)^// (\{{?{NUMBER}(?:,\s*{NUMBER})*\}}?)\s*$", result.partition("end SimulationResult")[2]
    )
    if len(printed) != len(asked):
        return None
    expected = []
    for match, row in zip(asked, printed, strict=True):
        times, numbers = (_numbers(part) for part in (match[2], row))
        if times is None or numbers is None or len(times) != len(numbers):
            return None
        expected += [(match[1].replace(" ", ""), t, v) for t, v in zip(times, numbers, strict=True)]
    source = _source(file, loads[0])
    model = re.search(r"simulate\s*\(\s*([\w.]+)", runs[0])
    first, last, intervals = (_option(result, runs[0], o, d) for o, d in OPTIONS.items())
    if source is None or model is None or any(not first <= t <= last * (1 + 1e-9) for _, t, _ in expected):
        return None
    scalar = not any("{" in m[2] for m in asked)
    libraries = any(c.startswith("loadModel") for c in commands)
    return Script(
        f"{file.parent.name}/{file.stem}", source, model[1], (first, last), (last - first) / max(intervals, 1.0),
        expected, libraries, scalar,
    )  # fmt: skip


OPTIONS = {"startTime": 0.0, "stopTime": 1.0, "numberOfIntervals": 500.0}


def _option(result: str, run: str, option: str, default: float) -> float:
    """What the result says, else the script."""
    for text in (result.partition("simulationOptions")[2].partition("\n")[0], run):
        found = re.search(rf"{option}\s*=\s*({NUMBER})", text)
        if found:
            return float(found[1])
    return default


def _source(file: Path, load: str) -> str | None:
    if "loadFile" in load:
        name = re.search(r"\"([^\"]+)\"", load)
        place = file.parent / name[1] if name else None
        return str(place) if place is not None and place.is_file() else None
    text = re.search(r"\(\s*\"((?:[^\"\\]|\\.)*)\"", load, re.S)
    return re.sub(r"\\([\"\\'?])", r"\1", text[1]) + "\n" if text else None


def _numbers(text: str) -> list[float] | None:
    try:
        return [float(part) for part in text.strip("{} \n").split(",")]
    except ValueError:
        return None


def statements(code: str) -> list[str]:
    """Return the statements of a script without its comments; strings stay whole."""
    tokens = re.findall(r"\"(?:[^\"\\]|\\.)*\"|//[^\n]*|/\*.*?\*/|;|[^;\"/]+|/", code, re.S)
    found, now = [], ""
    for token in tokens:
        if token == ";":
            found.append(now.strip())
            now = ""
        elif not token.startswith(("//", "/*")):
            now += token
    return [*found, now.strip()]


def judged(script: Script, libraries: list[str], limit: float) -> dict[str, Any]:
    """Return the row of one script."""
    first, last = script.span
    beside = BESIDE * max(last - first, 1e-300)
    wanted = sorted({t for _, t, _ in script.expected})
    grid = [k for t in wanted for k in _around(t, first, script.step)]
    near = [t + d for t in wanted for d in (-beside, 0.0, beside)]
    times = sorted({min(max(t, first), max(last, *wanted)) for t in (first, *near, *grid)})
    asked = {
        "source": script.source, "name": script.model, "path": libraries if script.libraries else [],
        "times": times, "names": sorted({n for n, _, _ in script.expected}),
    }  # fmt: skip
    answer = values(asked, limit)
    row: dict[str, Any] = {"name": script.name, "single": script.single}
    if "error" in answer:
        word = {"late": "late", "fell": "fell"}.get(answer["stage"], "refused")
        return row | {"verdict": word, "cause": cause(answer["error"]), "error": answer["error"][:1500]}
    missing = [n for n in asked["names"] if n not in answer["values"]]
    if missing:
        return row | {"verdict": "not given", "cause": "no such variable", "error": ", ".join(missing)}
    off = [w for w in (_off(script, times, answer["values"], *e) for e in script.expected) if w]
    said = [answer["status"], *answer["notes"]]
    other = next((why for name, why in OTHER.items() if re.fullmatch(rf"{name}([-_]\w+)?", script.name)), "")
    if off and other:
        return row | {"verdict": "another solution", "cause": other, "off": off[:6], "said": said}
    if off:
        return row | {"verdict": "wrong", "cause": off[0], "off": off[:6], "said": said}
    return row | {"verdict": "right", "said": said}


def _around(time: float, first: float, step: float) -> tuple[float, float]:
    k = int((time - first) / step) if step > 0 else 0
    return first + k * step, first + (k + 1) * step


def _off(script: Script, times: list[float], found: dict[str, Any], name: str, time: float, value: float) -> str | None:
    """Say by how much a value is off, or nothing where it is right."""
    own = dict(zip(times, found[name], strict=True))
    size = max((abs(v) for v in own.values() if v is not None), default=0.0)
    near = [own[t] for t in times if abs(t - time) <= 1.5 * BESIDE * (script.span[1] - script.span[0])]
    low, high = (min(times, key=lambda t, k=k: abs(t - k)) for k in _around(time, script.span[0], script.step))
    if own[low] is not None and own[high] is not None and high > low:
        near.append(own[low] + (own[high] - own[low]) * (time - low) / (high - low))
    allowed = RELATIVE * max(abs(value), size) + 1e-9
    if any(v is not None and abs(v - value) <= allowed for v in near):
        return None
    return f"{name}({time:g}) = {own.get(time, near[0])!r}, printed {value:g}"


def main() -> None:
    """Run the scripts one after the other, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a checkout of OpenModelica-testsuite")
    parser.add_argument("--libraries", type=Path, action="append", default=[], help="of scripts that load a library")
    parser.add_argument("--only", default="", help="a pattern for names")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one script")
    parser.add_argument("--output", type=Path, help="JSON lines; rows that stand there are kept")
    asked = parser.parse_args()
    found = [s for s in scripts(asked.folder) if re.search(asked.only, s.name)]
    found = [s for s in found if asked.libraries or not s.libraries]
    before, rows, seen = kept(asked.output), [], {}
    for script in found:
        row = before.get(script.name)
        if row is None:
            same = json.dumps([script.source, script.model, script.span, script.step, script.expected])
            row = seen.get(same) or judged(script, [str(p) for p in asked.libraries], asked.limit)
            seen[same] = row
            row = row | {"name": script.name}
            if asked.output:
                with asked.output.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")
        rows.append(row)
        print(f"{row['name']}: {row['verdict']} {row.get('cause', '')}", flush=True)
    print("\nEvery value at one time, no library:\n" + counted([r for r in rows if r["single"]]))
    print("\nAll:\n" + counted(rows))
    sys.exit(0 if all(row["verdict"] != "wrong" for row in rows) else 1)


if __name__ == "__main__":
    main()
