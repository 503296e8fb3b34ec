"""The models of the book *Modelica by Example*, each beside a closed form or an integration by SciPy.

    python benchmarks/modelica_by_example.py ModelicaBook --libraries ModelicaStandardLibrary --output rows.jsonl

The cases are those of the book's ``text/specs.py``: a model, values that are changed, an end. The book uses version 3
of the Standard Library; in a copy in a temporary folder the names of version 4 are put in. A variable is right when
98 % of 101 times lie within 0.1 % of its range (1 % where its model chatters). Where the book says that a simulation
fails, a refusal is right, too.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from book_references import ALSO, REFERENCES
from modelica_case import cause, counted, kept, values

TOLERANCE, SHARE = 1e-3, 0.98
ROUGH = {"WNE": 0.01, "WNEf": 0.01, "CC1": 0.01, "WC": 0.01, "WOC": 0.01, "TCE_BB": 0.01, "SSC_ALC2": 0.01}
"""Cases without events where there are jumps, and cases that chatter or whose range is small."""

RENAMED = [
    (r"\bModelica\.SIunits\.Conversions\b", "Modelica.Units.Conversions"),
    (r"\bModelica\.SIunits\b", "Modelica.Units.SI"), (r"\bfreqHz\b", "f"),
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One case of the book."""

    name: str
    model: str
    stop: float | None
    changes: dict[str, float]
    fails: bool

    def text(self, library: bool) -> str:
        """A text that is the model with its changes; what it imports has the library loaded."""
        nested = "".join(f", {_modifier(name, value)}" for name, value in self.changes.items())
        loaded = "  import Modelica.Constants;\n" if library else ""
        return f"model Case\n{loaded}  extends {self.model}({nested[2:]});\nend Case;\n"


def _modifier(name: str, value: float) -> str:
    first, _, rest = name.partition(".")
    number = f"{value:g}" if value == int(value) and first != "phi1_init" else repr(value)
    return f"{first}({_modifier(rest, value)})" if rest else f"{first} = {number}"


def cases(folder: Path) -> Iterator[Case]:
    """The cases that the book lists."""
    root = folder / "ModelicaByExample"
    models = [".".join(p.relative_to(folder).with_suffix("").parts) for p in root.rglob("*.mo") if p.stem != "package"]
    listed = (folder / "text" / "specs.py").read_text("utf-8")
    for call in re.finditer(r"(?m)^add_case\((.*?)\)\s*;?\s*$", listed, re.S):
        patterns = re.findall(r"\"([^\"]*)\"", re.match(r"\s*\[(.*?)\](?=\s*,)", call[1], re.S)[1])
        found = [m for m in models if all(re.search(p, m) for p in patterns)]
        stop = re.search(r"stopTime\s*=\s*([\d.]+)", call[1])
        changes = re.search(r"mods\s*=\s*\{(.*?)\}", call[1], re.S)
        pairs = re.findall(r"\"([^\"]+)\"\s*:\s*([-\d.e]+)", changes[1]) if changes else []
        name = re.search(r"res\s*=\s*\"(\w+)\"", call[1])
        if len(found) == 1 and name:
            changed = {key: float(value) for key, value in pairs}
            yield Case(name[1], found[0], float(stop[1]) if stop else None, changed, "simfails=True" in call[1])


def copied(folder: Path, place: Path) -> Path:
    """Return a copy of the package with the library's names of version 4, without folders that are no packages."""
    for file in (folder / "ModelicaByExample").rglob("*.mo"):
        if any(not (up / "package.mo").is_file() for up in file.parents if folder in up.parents):
            continue
        text = file.read_text("utf-8")
        for old, new in RENAMED:
            text = re.sub(old, new, text)
        to = place / file.relative_to(folder)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text, "utf-8")
    return place


def judged(case: Case, package: Path, libraries: list[Path], limit: float) -> dict[str, Any]:
    """Return the row of one case."""
    row: dict[str, Any] = {"name": case.name, "model": case.model}
    if case.name not in REFERENCES:
        return row | {"verdict": "no reference"}
    file = package / Path(*case.model.split(".")).with_suffix(".mo")
    stated = re.search(r"StopTime\s*=\s*([\d.]+)", file.read_text("utf-8"))
    stop = case.stop or (float(stated[1]) if stated else 1.0)
    times = stop * (np.arange(101) + 0.37) / 101
    expected = REFERENCES[case.name](times)
    asked = {
        "source": case.text(library=False) if case.changes else str(file),
        "name": None if case.changes else case.model,
        "path": [str(package)] if case.changes else [],
        "times": [0.0, *times],
        "names": list(expected),
    }
    answer = values(asked, limit)
    if answer.get("stage") == "read" and libraries:
        asked |= {"source": case.text(library=True), "name": None}
        asked["path"] = [str(p) for p in (*libraries, package)]
        answer = values(asked, limit)
    if "error" in answer:
        if case.fails and answer["stage"] == "simulated":
            return row | {"verdict": "right", "error": answer["error"][:1500]}
        word = {"late": "late", "fell": "fell"}.get(answer["stage"], "refused")
        return row | {"verdict": word, "cause": cause(answer["error"]), "error": answer["error"][:1500]}
    missing = [name for name in expected if name not in answer["values"]]
    if missing:
        return row | {
            "verdict": "not given",
            "cause": "no such variable",
            "error": f"{missing} of {answer['all'][:60]}",
        }
    worst = _worst(answer, expected, case.name)
    verdict = "right" if worst[0] <= 1.0 else "wrong"
    if verdict == "wrong" and case.name in ALSO and _worst(answer, ALSO[case.name](times), case.name)[0] <= 1.0:
        return row | {"verdict": "another solution", "cause": "the equations have several", "said": answer["status"]}
    off = f"{worst[1]} is off by {worst[0] * ROUGH.get(case.name, TOLERANCE):.2g} of its range"
    return row | {"verdict": verdict, "cause": off, "said": [answer["status"], *answer["notes"]]}


def _worst(answer: dict[str, Any], expected: Mapping[str, np.ndarray], name: str) -> tuple[float, str]:
    """Return by how much the worst variable is off, and which one."""
    found = {variable: np.array(answer["values"][variable][1:], dtype=float) for variable in expected}
    return max((_far(found[variable], np.asarray(true), name), variable) for variable, true in expected.items())


def _far(found: np.ndarray, true: np.ndarray, name: str) -> float:
    """Return the error that 98 % of the times do not exceed, in units of what is allowed."""
    span = float(np.ptp(true)) or max(float(np.max(np.abs(true))), 1.0)
    errors = np.sort(np.where(np.isfinite(found), np.abs(found - true), np.inf))
    return float(errors[int(SHARE * len(errors)) - 1] / (span * ROUGH.get(name, TOLERANCE)))


def main() -> None:
    """Run the cases one after the other, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a checkout of ModelicaBook")
    parser.add_argument("--libraries", type=Path, action="append", default=[], help="a folder that holds Modelica 4")
    parser.add_argument("--only", default="", help="a pattern for names")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one case")
    parser.add_argument("--output", type=Path, help="JSON lines; rows that stand there are kept")
    asked = parser.parse_args()
    before, rows = kept(asked.output), []
    with tempfile.TemporaryDirectory() as place:
        package = copied(asked.folder, Path(place))
        for case in cases(asked.folder):
            if not re.search(asked.only, case.name):
                continue
            row = before.get(case.name)
            if row is None:
                row = judged(case, package, asked.libraries, asked.limit)
                if asked.output:
                    with asked.output.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(row) + "\n")
            rows.append(row)
            print(f"{row['name']}: {row['verdict']} {row.get('cause', '')}", flush=True)
    print("\n" + counted(rows))
    sys.exit(0 if all(row["verdict"] != "wrong" for row in rows) else 1)


if __name__ == "__main__":
    main()
