"""How the component tests simulate: with tight tolerances, everything labelled."""

from __future__ import annotations

from typing import Any

import numpy as np

import grisaille as gr


def run(model: gr.Model, times: Any, **options: Any) -> Any:
    """The dataset of a tight simulation."""
    settings = {"rtol": 1e-10, **options}
    return gr.simulate(model, times, **settings)


def largest_error(values: Any, exact: Any) -> float:
    """The largest deviation, relative to the largest exact value."""
    return float(np.max(np.abs(np.asarray(values) - exact)) / np.max(np.abs(exact)))
