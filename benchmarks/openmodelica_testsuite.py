"""OpenModelica's test suite as an oracle: small texts, simulated, beside the values its scripts print.

    python benchmarks/openmodelica_testsuite.py OpenModelica-testsuite --output rows.jsonl

Scripts of ``simulation/modelica`` with one ``simulate``, one ``loadFile`` or ``loadString``, ``status: correct`` and
printed ``val(name, times)`` count. A value is right within 0.1 % of the largest one that is asked for, and one at the
instant of a jump when it is the one just before or just after; where the script asks for a coarse grid, its straight
line between two points is right, too. Values that a script cuts to some digits are right within one unit of the last.
Runs by Euler's method or QSS are left out. Texts for version 2 of the Standard Library get the names of version 3 by
the script that this brings (``--older``), and those for version 3 the names of version 4.
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
    "nonlinear_system/nonlinearDelayTest": "x1, x2 and y may all have the other sign",
    "nonlinear_system/problem4": "x1 and x2 can be exchanged; with another solver the suite prints ours",
    "nonlinear_system/problem5": "sums of cosines have several solutions",
    "nonlinear_system/problem7": "the almost linear function has two solutions; other solvers give ours",
    "others/SpaceProbe": "the orbit is closed, and y ends at zero; 0.004 is printed",
    "solver/problem2": "printed with the solver's error: the published solution ends at 0.00238636",
    "msl22/InitTest": "starts that are not fixed: of s = 0 and s_rel = 0.015 the other one is kept",
    "others/Reductions": "the smallest of no numbers is 1e60 in the Standard Library, 8.8e304 there",
    "others/TestSolve1[2456]": "even functions have several solutions",
    "solver/bug2231-radau1": "printed with a method of first order: exp(1) is 2.71828, and 2.72101 is printed",
    "synchronous/EventClock": "the event just after the start counts at the start",
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
    is_old: bool = False
    """Whether it asks for version 2 of the Standard Library."""
    cut: float = 0.0
    """The unit to which the values were cut."""


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
    constants = {m[1]: float(m[2]) for c in commands if (m := re.fullmatch(rf"(\w+)\s*:=\s*({NUMBER})", c))}
    asked = _rows(commands)
    otherwise = re.search(r"override|startTime\s*=\s*[a-z]|method\s*=\s*\"(euler|qss|symSolver)", " ".join(runs))
    if len(loads) != 1 or len(runs) != 1 or not asked or otherwise or "noevents" in head:
        return None
    printed = re.findall(
        rf"(?m)^// (\{{?{NUMBER}(?:,\s*{NUMBER})*\}}?)\s*$", result.partition("end SimulationResult")[2]
    )
    if len(printed) != len(asked):
        return None
    expected = []
    for row, numbers in zip(asked, map(_numbers, printed), strict=True):
        points = [(name.replace(" ", ""), _numbers(times, constants)) for name, times in row]
        wanted = [(name, t) for name, times in points for t in times or ()]
        if any(times is None for _, times in points) or numbers is None or len(wanted) != len(numbers):
            return None
        expected += [(name, t, value) for (name, t), value in zip(wanted, numbers, strict=True)]
    source = _source(file, loads[0])
    model = re.search(r"simulate\s*\(\s*([\w.]+)", runs[0])
    first, last, intervals = (_option(result, runs[0], o, d) for o, d in OPTIONS.items())
    if source is None or model is None or any(not first <= t <= last * (1 + 1e-9) for _, t, _ in expected):
        return None
    scalar = not any(re.search(r"[{:]", times) for row in asked for _, times in row)
    libraries = any(c.startswith("loadModel") for c in commands)
    is_old = any(re.search(r'loadModel\(Modelica,\{"[12]\.', c) for c in commands)
    return Script(
        f"{file.parent.name}/{file.stem}", source, model[1], (first, last), (last - first) / max(intervals, 1.0),
        expected, libraries, scalar, is_old, _cut(commands),
    )  # fmt: skip


def _cut(commands: list[str]) -> float:
    """The unit to which a script cuts its values before it prints them: ``x := floor(1000 * x); x / 1000``."""
    divisors = [float(d) for c in commands for d in re.findall(r"/\s*(10*(?:\.0)?)$", c)]
    return 1.0 / min(divisors, default=1.0) if any("floor(" in c for c in commands) else 0.0


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


def _rows(commands: list[str]) -> list[list[tuple[str, str]]]:
    """Names and times of each row that is printed, also of what was kept in a variable before."""
    rows, kept_in, is_shown = [], {}, True
    for command in commands:
        target, _, value = command.rpartition(":=")
        again = re.fullmatch(r"(\w+)(?:\s*/\s*[\d.]+)?", value.strip())
        found = _asked(value.strip())
        if echo := re.fullmatch(r"echo\((true|false)\)", command):
            is_shown = echo[1] == "true"
        elif found:
            kept_in[target.strip()] = found
        elif is_shown and again and again[1] in kept_in:
            found = kept_in[again[1]]
        if is_shown and found:
            rows.append(found)
    return rows


def _asked(value: str) -> list[tuple[str, str]]:
    """Names and times of ``val(x, 1)``, ``val(x, {0, 1})`` and ``{val(x, 0), val(x, 1)}``."""
    alone = re.fullmatch(rf"{ASKED}|\{{\s*{ASKED}(?:\s*,\s*{ASKED})*\s*\}}", value)
    return re.findall(ASKED, value) if alone else []


ASKED = r"val\s*\(\s*((?:[^,()\[\]{}]|\[[^\]]*\]|\([^()]*\))+?)\s*,\s*(\{[^{}]*\}|[^,{}()]+?)\s*\)"


def _numbers(text: str, constants: dict[str, float] | None = None) -> list[float] | None:
    """Numbers in braces or not, products of some, and ranges."""
    try:
        parts = [_number(part.strip(), constants or {}) for part in text.strip("{} \n").split(",")]
        if len(parts) == 1 and ":" in text:
            first, step, last = (float(part) for part in text.split(":"))
            return [first + k * step for k in range(round((last - first) / step) + 1)]
    except ValueError:
        return None
    return parts


def _number(text: str, constants: dict[str, float]) -> float:
    if ":" in text:
        return 0.0  # a range
    product = 1.0
    for factor in text.split("*"):
        product *= constants[factor.strip()] if factor.strip() in constants else float(factor)
    return product


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
    allowed = RELATIVE * max(abs(value), size) + 1e-9 + script.cut
    if any(v is not None and abs(v - value) <= allowed for v in near):
        return None
    return f"{name}({time:g}) = {own.get(time, near[0])!r}, printed {value:g}"


def main() -> None:
    """Run the scripts one after the other, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a checkout of OpenModelica-testsuite")
    parser.add_argument("--libraries", type=Path, action="append", default=[], help="of scripts that load a library")
    parser.add_argument("--older", type=Path, help="version 3 of the Standard Library, for scripts that load version 2")
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
            libraries = [asked.older] if script.is_old and asked.older else asked.libraries
            row = seen.get(same) or judged(script, [str(p) for p in libraries], asked.limit)
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
