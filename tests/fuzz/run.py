"""Many random problems and a table of what became of them.

    python tests/fuzz/run.py --count 1000 --seed 0 --jobs 1 --log verdicts.jsonl

A run that was broken off goes on where its log ends;
``--count 0`` prints the table of a log.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.hidden import Features
from fuzz.judge import Verdict, judge


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--log", type=Path, help="a file that keeps every verdict, and from which they are taken again")
    chosen = parser.parse_args()
    verdicts = read_log(chosen.log) if chosen.log and chosen.log.exists() else []
    known = {v.seed for v in verdicts}
    seeds = [seed for seed in range(chosen.seed, chosen.seed + chosen.count) if seed not in known]
    for verdict in _all(seeds, chosen.jobs):
        verdicts.append(verdict)
        if chosen.log:
            with chosen.log.open("a") as log:
                log.write(json.dumps(asdict(verdict)) + "\n")
        if not chosen.quiet and verdict.outcome not in ("skipped", "solved"):
            print(line(verdict), flush=True)
    print(table(verdicts))
    return int(any(is_fault(v) for v in verdicts))


def read_log(path: Path) -> list[Verdict]:
    """The verdicts of a log."""
    found = [json.loads(text) for text in path.read_text().splitlines()]
    return [Verdict(**{**v, "features": Features(**v["features"]), "kinds": tuple(v["kinds"])}) for v in found]


def _all(seeds: Iterable[int], jobs: int) -> Iterator[Verdict]:
    if jobs == 1:
        for seed in seeds:
            yield judge(seed)
        return
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(judge, seeds)


def is_fault(verdict: Verdict) -> bool:
    """Neither right nor refused."""
    return verdict.outcome in ("wrong", "crash", "slow")


def line(v: Verdict) -> str:
    F = v.features
    tags = (
        f"n{F.states} m{F.chain} r{F.relations}{'f' if F.relation_in_force else ''} {F.signal} mix-{F.mixing} "
        f"rows-{F.rows} {F.scales}{'' if F.nominal else ' undeclared'} {F.method} {F.outputs} t{F.tables}"
        f"{' twins' if F.twins else ''}{' echo' if F.echo else ''} [{', '.join(v.kinds)}]"
    )
    return f"{v.seed:6d} {v.outcome:8s} {v.error:8.1e} {v.seconds:5.1f}s {tags}: {without_quotes(v.detail)[:200]}"


def table(verdicts: list[Verdict]) -> str:
    """How many of each outcome, refusals by their reason."""
    groups = {
        "well posed": [v for v in verdicts if v.expected == "solved"],
        "well posed, with a jump mixed into a constraint": [v for v in verdicts if v.expected == "either"],
        "without a solution": [v for v in verdicts if v.expected == "refused"],
    }
    lines = [f"{len(verdicts)} problems"]
    for title, group in groups.items():
        lines.append(f"{title}: {len(group)}")
        counts = Counter(v.outcome for v in group)
        for outcome in ("solved", "refused", "wrong", "crash", "slow"):
            if counts[outcome]:
                lines.append(f"  {outcome:8s} {counts[outcome]:5d}  {100 * counts[outcome] / len(group):5.1f} %")
        for reason, count in Counter(reason_of(v.detail) for v in group if v.outcome == "refused").most_common():
            lines.append(f"      {count:4d}  {reason}")
    lines.append(f"not posed: {dict(Counter(v.detail for v in verdicts if v.outcome == 'skipped'))}")
    return "\n".join(lines)


def reason_of(detail: str) -> str:
    """The first words of a refusal, without numbers and without the equations it quotes."""
    words = without_quotes(detail).removeprefix("The simulation of Fuzz stopped: ").split()
    return " ".join(w for w in words[:14] if not any(c.isdigit() for c in w))


def without_quotes(detail: str) -> str:
    return re.sub(r"'[^']{12,}'", "'…'", detail)


if __name__ == "__main__":
    sys.exit(main())
