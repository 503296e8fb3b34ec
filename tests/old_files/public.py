"""The public names and how they are called, as plain data."""

from __future__ import annotations

import inspect
from typing import Any

import grisaille as gr

ESTIMATORS = (gr.Collocation, gr.KalmanML, gr.OutputError, gr.SimulatedPEM)
"""Their options are public; their methods are the contract of estimators, which may change."""


def public_signatures() -> dict[str, list[list[str]] | None]:
    """Return, for each public name and method, its arguments as [name, kind, default]; None for what is not called."""
    rows: dict[str, Any] = {}
    for name in gr.__all__:
        value = getattr(gr, name)
        rows[name] = _arguments(value)
        if inspect.isclass(value) and value not in ESTIMATORS and not issubclass(value, Exception):
            for member in sorted(n for n in dir(value) if not n.startswith("_")):
                rows[f"{name}.{member}"] = _arguments(getattr(value, member))
    return rows


def _arguments(value: Any) -> list[list[str]] | None:
    if not callable(value):
        return None
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    return [[p.name, p.kind.name, "" if p.default is p.empty else repr(p.default)] for p in found]
