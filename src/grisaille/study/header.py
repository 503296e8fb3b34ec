"""Which study this is: hashes and texts that must agree before a store is resumed."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import grisaille
from grisaille.study.study_task import StudyTask

_NUMBERED = re.compile(r"\d+(?:\.\d+)*")


def header_of(task: StudyTask) -> dict[str, str]:
    """Return entries in the order in which differences are told."""
    options = task.options
    return {
        "kind": task.kind,
        "model": task.model.fingerprint[:16],
        "parameters": json.dumps({n: p.formula or repr(p.value) for n, p in task.model.parameters.items()}),
        "data": json.dumps({e.name: e.fingerprint[:16] for e in task.experiments}),
        "method": describe_method(task.method),
        **{name: _text(options[name]) for name in ("estimate", "guess", "bounds", "priors", "local")},
        "seed": str(task.seed),
        **task.variation.header(),
        "grisaille": grisaille.__version__,
    }


def without_compiled(method: str) -> str:
    """Return a header's method without ``compiled=``, which older stores name: models were interpreted on request."""
    return re.sub(r", compiled=(True|False)\b|\bcompiled=(True|False)(, )?", "", method)


def is_earlier(version: str, than: str) -> bool:
    """Return whether one version came before another: its stores are resumed, those of later ones are not."""
    first, second = (_NUMBERED.match(text) for text in (version, than))
    if first is None or second is None:
        return False
    return [int(n) for n in first[0].split(".")] < [int(n) for n in second[0].split(".")]


def _text(value: Any) -> str:
    return json.dumps({str(k): repr(v) for k, v in sorted(value.items())}) if isinstance(value, dict) else repr(value)


def describe_method(method: Any) -> str:
    """Return a method by the options that were chosen: those at their defaults may become more without a store
    noticing.
    """
    if not is_dataclass(method) or isinstance(method, type):
        return repr(method)
    # what "auto" stands for is told: that may change
    usual = {f.name: getattr(type(method)(), f.name) if f.default is MISSING else f.default for f in fields(method)}
    given = {name: getattr(method, name) for name in usual}
    given.pop("compiled", None)  # says nothing any longer, see without_compiled
    chosen = ", ".join(f"{name}={value!r}" for name, value in given.items() if repr(value) != repr(usual[name]))
    return f"{type(method).__name__}({chosen})"
