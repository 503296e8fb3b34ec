"""Damaged and hostile files: each loads with the content it had, or is refused in words.

    python tests/fuzz/files.py --kinds fit store folder modelica --count 2000

Saved fits, stores of studies with their plans, problem folders and Modelica texts are changed at random
(``mutations.py``) and loaded in processes of their own, which may not use more than a gigabyte beyond what the package
itself takes. A fault is an exception that is not grisaille's, a crash, more memory or time than is given, content that
is not what was saved (fits and stores, which carry digests), a file written elsewhere, or a process begun.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.mutations import change_database, change_netcdf, changed

KINDS = ("fit", "store", "folder", "modelica")
MEMORY = 10**9
"""Bytes that loading one file may take."""
SECONDS = 60
"""Of processor time that loading one file may take."""


@dataclass(frozen=True)
class Verdict:
    """What became of one file: ``same``, ``loaded`` (texts may say something else), ``refused``, or a fault."""

    case: int
    outcome: str
    words: str = ""

    @property
    def is_fault(self) -> bool:
        return self.outcome not in ("same", "loaded", "refused")


# --- what is changed ---


def prepare(kind: str, place: Path, several: bool) -> None:
    """Make the undamaged originals in a folder; of fits two, if ``several``."""
    {"fit": partial(_fits, several), "store": _stores, "folder": _folders, "modelica": _texts}[kind](place)


def _fits(several: bool, place: Path) -> None:
    import numpy as np
    import pandas as pd

    import grisaille as gr

    class Cup(gr.Model):
        k = gr.Parameter(0.3, "1/h", bounds=(0.01, 5.0))
        T = gr.Variable(80.0, "degC")
        w = gr.Disturbance(gr.spectra.white(), scale=0.2)
        y = gr.Output(T, noise=0.5)
        equations = [gr.der(T) == -k * (T - 20.0) + w]

    random_numbers = np.random.default_rng(1)
    times = pd.date_range("2025-01-31", periods=25, freq="15min", tz="Europe/Berlin")
    y = 20 + 60 * np.exp(-0.5 * np.arange(25) / 4) + 0.5 * random_numbers.normal(size=25)
    data = gr.Experiment(times, outputs={"y": y}, name="cup", unit="h", start={"T": gr.Normal(80.0, 1.0)})
    if several:
        gr.fit(Cup(), data, ["k"], method=gr.KalmanML()).save(place / "kalman.nc")
    gr.fit(Cup(), data, ["k"], method=gr.OutputError(), priors={"k": gr.LogNormal(0.5, 0.5)}).save(place / "output.nc")


def _stores(place: Path) -> None:
    from grisaille.problem import StudyPlan
    from grisaille.study import RunAnswer, Store

    header = {"kind": "multistart", "model": "0723fee4", "parameters": json.dumps({"k": "0.5"}), "seed": "1"}
    shelf = Store(place / "multistart.db", header, ["k", "std_error(k)", "objective"])
    row = {"converged": True, "failure": "", "objective": 12.25, "k": 0.5, "std_error(k)": 0.01}
    shelf.write([RunAnswer(run, 17 + run, 0.125 * run, {**row, "k": 0.5 + 1e-3 * run}) for run in range(12)])
    shelf.close()
    StudyPlan("plant", "multistart", 12, 1, {"sampling": "sobol"}).write(place / "multistart.db")


def _data(path: Path) -> None:
    """A first-order lag."""
    x, rows = 0.0, ["t,u,y"]
    for k in range(40):
        u = float(k // 8 % 2)
        rows.append(f"{0.5 * k},{u},{x + 0.01 * ((k * 7) % 5 - 2):.4f}")
        x += 0.2 * (2 * u - x)
    path.write_text("\n".join(rows) + "\n")


def _folders(place: Path) -> None:
    from grisaille.cli import main
    from grisaille.problem import create

    create("two-tank", place / "tanks")
    create("rc-building", place / "house")
    _data(place / "run.csv")
    main(["new", "--csv", str(place / "run.csv"), str(place / "plant"), "--quiet"])
    (place / "run.csv").unlink()


def _texts(place: Path) -> None:
    from modelica.texts import DRIVE, model

    lines = """function f input Real x; input Integer n; output Real y; protected Real a[3];
    algorithm a := {x, 2.0 * x, 3.0}; y := 0.0;
      for i in 1:n loop if x > 0.5 then y := y + a[i]; else y := y - sum(a .* a); end if; end for; end f;
    """
    body = """
      parameter Real k[2] = {0.5 * i for i in 1:2}; parameter String s = "abc" + "def"; parameter Integer n = 3;
      Real x[2](each start = 1.0, each fixed = true); Real z; Real y(start = 0.0); Boolean b;
    equation
      for i in 1:2 loop der(x[i]) = -k[i] * x[i] + (if b then 1.0 else noEvent(max(0.0, z))); end for;
      z = f(x[1], n); b = x[2] > 0.25 and time > 1.0;
      when time > 2.0 then y = pre(y) + 1.0; end when;
      assert(x[1] < 100.0, "far " + String(x[1]));
    """
    (place / "drive.bmo").write_text(DRIVE)
    (place / "plant.bmo").write_text(model(body, lines))


# --- one case ---


def damage(kind: str, originals: Path, case: Path, rng: random.Random) -> tuple[str, Path]:
    """Copy the originals and change one; return the name of the original and the path to load."""
    if kind == "fit":
        name = rng.choice(sorted(p.name for p in originals.glob("*.nc")))
        shutil.copy(originals / name, case / name)
        if rng.random() < 0.5:
            change_netcdf(case / name, rng)
        else:
            _rewrite(case / name, rng, is_text=False)
        return name, case / name
    if kind == "store":
        for name in ("multistart.db", "multistart.json"):
            shutil.copy(originals / name, case / name)
        way = rng.random()
        if way < 0.45:
            change_database(case / "multistart.db", rng)
        else:
            is_plan = way > 0.8
            _rewrite(case / ("multistart.json" if is_plan else "multistart.db"), rng, is_text=is_plan)
        return "multistart.db", case / "multistart.db"
    if kind == "folder":
        name = rng.choice(("tanks", "house", "plant"))
        shutil.copytree(originals / name, case / name)
        files = sorted((case / name).glob("data/*.csv")) if rng.random() < 0.3 else [case / name / "problem.toml"]
        _rewrite(rng.choice(files), rng, is_text=True)
        return name, case / name
    name = rng.choice(("drive.bmo", "plant.bmo"))
    shutil.copy(originals / name, case / name)
    _rewrite(case / name, rng, is_text=True)
    return name, case / name


def _rewrite(path: Path, rng: random.Random, *, is_text: bool) -> None:
    path.write_bytes(changed(path.read_bytes(), rng, is_text=is_text))


def content(kind: str, path: Path) -> Any:
    """Load a file, and return all that it says."""
    import grisaille as gr

    if kind == "fit":
        fit = gr.load(path)
        tables = [fit.parameters.to_csv(), fit.residuals().to_csv(), fit.quality.to_csv(), fit.correlation.to_csv()]
        said = [fit.status, str(fit.notes), str(fit.method), str(fit.model), str(fit.why), fit.model_name]
        return [*tables, *said, *(e.fingerprint for e in fit.experiments)]
    if kind == "store":
        from grisaille.problem import read_plan, read_store

        found = read_store(path)
        str(found)
        return [found.header, found.rows, found.seconds, read_plan(path)]
    if kind == "folder":
        return [str(gr.load_problem(path))]
    return [str(gr.read_modelica(path))]


def is_same(kind: str, found: Any, original: Any) -> bool:
    """Whether content is that of the original; of a store runs may be missing, which are made again."""
    if kind != "store":
        return bool(found == original)
    header, rows, seconds, plan = found
    kept = [r for r in rows if r in original[1]]
    return header == original[0] and len(kept) == len(rows) and plan == original[3] and (
        len(rows) < len(original[1]) or seconds == original[2]
    )  # fmt: skip


class Outside(BaseException):
    """Something was written outside of the folder that is loaded, or a process begun."""


def watch(allowed: Path) -> None:
    """From now on nothing is written outside of a folder, and no process begins."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "os.fork"):
            raise Outside(f"{event} {arguments}")
        if event == "open" and isinstance(arguments[0], str) and _writes(arguments):
            path = os.path.realpath(arguments[0])
            if not path.startswith((str(allowed.resolve()) + os.sep, "/dev/")):
                raise Outside(f"{event} {path}")

    sys.addaudithook(hook)


def _writes(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def judge(kind: str, originals: Path, case: int, seed: int, place: Path, expected: dict[str, Any]) -> Verdict:
    """Damage one file, load it, and say what became of it."""
    from grisaille.errors import GrisailleError

    folder = place / f"case-{case}"
    folder.mkdir()
    rng = random.Random(f"{kind}-{seed}-{case}")
    name, path = damage(kind, originals, folder, rng)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        found = content(kind, path)
    except GrisailleError as error:
        outcome, words = ("refused", str(error)) if len(str(error)) < 20_000 else ("endless words", str(error)[:200])
    except BaseException as error:
        outcome, words = "fault", f"{type(error).__name__}: {error}"[:300]
    else:
        outcome, words = "same", ""
        if not is_same(kind, found, expected[name]):
            free = kind in ("folder", "modelica")
            outcome, words = ("loaded", "") if free else ("other content", _difference(found, expected[name]))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    if grown > MEMORY:
        outcome, words = "memory", f"{grown / 1e9:.1f} GB, then: {outcome} {words}"
    if outcome in ("same", "loaded", "refused"):
        shutil.rmtree(folder)
    return Verdict(case, outcome, words)


def _difference(found: Any, expected: Any) -> str:
    pairs = [(str(a), str(b)) for a, b in zip(found, expected, strict=False) if a != b]
    at = [next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0) for a, b in pairs]
    return "; ".join(f"{a[k : k + 60]!r} for {b[k : k + 60]!r}" for (a, b), k in zip(pairs, at, strict=True))[:400]


# --- many cases, in processes that may die ---


def child(kind: str, originals: Path, first: int, count: int, seed: int, place: Path) -> None:
    """Judge some cases, a line of JSON for each."""
    import grisaille  # noqa: F401  (its own memory is not counted)

    whole = place / f"whole-{first}"
    shutil.copytree(originals, whole)
    expected = {p.name: content(kind, p) for p in _loadable(whole)}
    resource.setrlimit(resource.RLIMIT_DATA, (_data_size() + 3 * MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGVTALRM, _too_long)
    os.chdir(place)
    watch(place)
    for case in range(first, first + count):
        print(f'{{"begun": {case}}}', flush=True)
        verdict = judge(kind, originals, case, seed, place, expected)
        print(json.dumps({"case": case, "outcome": verdict.outcome, "words": verdict.words}), flush=True)


def _loadable(originals: Path) -> list[Path]:
    return [p for p in sorted(originals.iterdir()) if p.suffix != ".json"]


def _data_size() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} s of processor time")


def run(
    kind: str, count: int, seed: int, folder: Path, said: Callable[[Verdict], None] = lambda _: None
) -> list[Verdict]:
    """Judge ``count`` damaged files of one kind."""
    originals, place = folder / f"{kind}-originals", folder / f"{kind}-cases"
    originals.mkdir(parents=True)
    place.mkdir()
    prepare(kind, originals, several=count > 100)
    before = _listing(folder, place)
    found: list[Verdict] = []
    while len(found) < count:
        for verdict in _some(kind, originals, len(found), count - len(found), seed, place):
            found.append(verdict)
            said(verdict)
    if _listing(folder, place) != before:
        found.append(Verdict(-1, "written outside", str(_listing(folder, place))))
    return found


def _some(kind: str, originals: Path, first: int, count: int, seed: int, place: Path) -> Iterator[Verdict]:
    """Cases of one process, the last of which may have ended it. It writes no bytecode, wherever that would be kept."""
    case = ("--child", kind, str(originals), str(first), str(count), str(seed), str(place))
    command = [sys.executable, "-B", __file__, *case]
    begun = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            message = json.loads(line)
            begun = message.get("begun")
            if begun is None:
                yield Verdict(**message)
    if process.wait() != 0 or begun is not None:
        yield Verdict(first if begun is None else begun, "crash", f"the process ended with {process.returncode}")


def _listing(folder: Path, place: Path) -> list[str]:
    return sorted(str(p) for p in folder.rglob("*") if place not in p.parents and p != place)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a new folder for the originals and for what failed")
    chosen = parser.parse_args()
    faults = 0
    with tempfile.TemporaryDirectory() as passing:
        folder = chosen.keep or Path(passing)
        for kind in chosen.kinds:
            verdicts = run(kind, chosen.count, chosen.seed, folder, _say)
            counts = Counter(v.outcome for v in verdicts)
            print(f"{kind}: {', '.join(f'{n} {outcome}' for outcome, n in counts.most_common())}", flush=True)
            faults += sum(v.is_fault for v in verdicts)
    return int(faults > 0)


def _say(verdict: Verdict) -> None:
    if verdict.is_fault:
        print(f"  case {verdict.case}: {verdict.outcome}: {verdict.words}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        kind, originals, first, count, seed, place = sys.argv[2:]
        child(kind, Path(originals), int(first), int(count), int(seed), Path(place))
    else:
        sys.exit(main())
