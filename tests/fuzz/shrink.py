"""A failing problem made smaller, and printed as a program that stands alone.

python tests/fuzz/shrink.py 39
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.judge import RTOL, Verdict, judge, pose
from fuzz.run import reason_of

SIMPLER: tuple[dict[str, Any], ...] = (
    {"scales": "unit"}, {"scales": "mild"}, {"mixing": "none"}, {"mixing": "dense"}, {"rows": "none"},
    {"rows": "dense"},
    {"layers": 0}, {"layers": 1}, {"relations": 0}, {"relations": 1}, {"relation_in_force": False}, {"signal": "none"},
    {"signal": "zoh"}, {"chain": 0}, {"chain": 1}, {"chain": 2}, {"states": 0}, {"states": 1}, {"states": 2},
    {"coupled_constraint": False}, {"method": "auto"}, {"outputs": 6}, {"outputs": 41},
)  # fmt: skip


def shrink(seed: int) -> dict[str, Any]:
    """Changes of the features that keep the outcome."""
    first = judge(seed)
    kept: dict[str, Any] = {}
    changed = True
    while changed:
        changed = False
        for change in SIMPLER:
            (name, value) = next(iter(change.items()))
            current = getattr(first.features, name) if name not in kept else kept[name]
            if current == value or not _is_simpler(name, value, current):
                continue
            try:
                trial = judge(seed, **{**kept, **change})
            except Exception:
                continue
            if _same(trial, first):
                kept.update(change)
                changed = True
    return kept


def _same(trial: Verdict, first: Verdict) -> bool:
    if (trial.outcome, trial.expected) != (first.outcome, first.expected):
        return False
    return trial.outcome != "refused" or reason_of(trial.detail)[:40] == reason_of(first.detail)[:40]


def _is_simpler(name: str, value: Any, current: Any) -> bool:
    order = {"scales": ["unit", "mild", "wild"], "mixing": ["none", "dense", "full"], "rows": ["none", "dense", "full"]}
    if name in order:
        return order[name].index(value) < order[name].index(current)
    if name in ("signal", "method"):
        return value in ("none", "auto") or current == "foh"
    return value < current


def program(seed: int, **changes: Any) -> str:
    """The problem as text."""
    problem = pose(seed, **changes)
    d, F = problem.disguise, problem.hidden.features
    lines = ["import numpy as np, grisaille as gr", "from grisaille import *", "class M(gr.Model):"]
    lines.append(f"    X = gr.Variable(size={len(d.names)}, start={d.starts}, nominal={d.nominals})")
    lines += [f"    {name} = gr.Input()" for name in d.inputs]
    lines.append("    def equations(self):")
    lines.append(f"        X{''.join(', ' + n for n in d.inputs)} = self.X{''.join(', self.' + n for n in d.inputs)}")
    lines += [f"        yield {e}" for e in d.model.equations()]
    given = {k: (v[0].tolist(), v[1].tolist()) for k, v in d.inputs.items()}
    theta = problem.truth.theta
    lines.append(f"T = np.linspace(0, {float(theta[-1] * d.tau)!r}, {len(theta)})")
    lines.append(f"r = gr.simulate(M(), T, inputs={given}, hold={d.hold or None}, rtol={RTOL}, method={F.method!r})")
    exact = d.true_values(problem.truth)
    for k in sorted({0, len(theta) // 2, len(theta) - 1}):
        lines.append(f"# truth at T[{k}]: {[float(f'{v:.9g}') for v in exact[k]]}")
    lines.append("for k in (0, len(T) // 2, -1): print([float(r[f'X[{i}]'][k]) for i in range(len(r.data_vars))])")
    return "\n".join(lines)


def main() -> None:
    seed = int(sys.argv[1])
    kept = shrink(seed)
    verdict = judge(seed, **kept)
    print(f"# seed {seed}: {verdict.outcome}, expected {verdict.expected}, error {verdict.error:.2g}")
    print(f"# changed: {kept}; layers: {verdict.kinds}")
    print(f"# {verdict.detail[:1500]}")
    print(program(seed, **kept))


if __name__ == "__main__":
    main()
