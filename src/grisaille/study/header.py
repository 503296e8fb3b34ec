"""Which study this is: hashes and texts that must agree before a store is resumed."""

from __future__ import annotations

import json
from typing import Any

import grisaille
from grisaille.study.task import Task


def header_of(task: Task) -> dict[str, str]:
    """Entries in the order in which differences are told."""
    options = task.options
    return {
        "kind": task.kind,
        "model": task.model.fingerprint[:16],
        "parameters": json.dumps({n: p.formula or repr(p.value) for n, p in task.model.parameters.items()}),
        "data": json.dumps({e.name: e.fingerprint[:16] for e in task.experiments}),
        "method": repr(task.method),
        **{name: _text(options[name]) for name in ("estimate", "guess", "bounds", "priors", "local")},
        "seed": str(task.seed),
        **task.variation.header(),
        "grisaille": grisaille.__version__,
    }


def _text(value: Any) -> str:
    return json.dumps({str(k): repr(v) for k, v in sorted(value.items())}) if isinstance(value, dict) else repr(value)
