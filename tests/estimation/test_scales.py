"""The unit of a parameter is a matter of taste: estimates and relative standard errors do not depend on it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

T = np.linspace(0.0, 4.0, 21)


class Linear(gr.Model):
    """k and d in units that are a parameter."""

    unit, k, d = gr.Parameter(1.0), gr.Parameter(1.0), gr.Parameter(0.0)
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == -(k / unit) * x + d / unit + w]


class Bent(gr.Model):
    """The same, not linear, for direct collocation and extended filters."""

    unit, k, d = gr.Parameter(1.0), gr.Parameter(1.0), gr.Parameter(0.0)
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.05)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == -(k / unit) * x * gr.sqrt(0.5 + x**2) + d / unit + w]


@cache
def record(model: type[gr.Model]) -> Any:
    run = gr.simulate(model(), T, realizations=1, noise=True, seed=3, parameters={"d": 0.3})
    return gr.Experiment(T, {}, {"y": run["y"].values[0]})


METHODS = [
    (Linear, gr.OutputError(), []), (Bent, gr.OutputError(shooting="multiple", pieces=3), []),
    (Linear, gr.KalmanML(), ["scale(w)"]), (Bent, gr.KalmanML(), ["scale(w)"]),
    (Linear, gr.Collocation("ipda"), []), (Linear, gr.Collocation("laplace"), ["scale(w)"]),
    (Bent, gr.Collocation(), []), (Bent, gr.Collocation("laplace"), ["scale(w)"]),
]  # fmt: skip


@pytest.mark.parametrize(("model", "method", "levels"), METHODS)
@pytest.mark.parametrize("kind", ["bounded", "guess of zero", "guess near zero"])
def test_units_do_not_matter(model: type[gr.Model], method: Any, levels: list[str], kind: str) -> None:
    found = []
    name = "k" if kind == "bounded" else "d"
    for s in (1.0, 1e-8, 1e-15, 1e9) if kind == "bounded" else (1.0, 1e-15, 1e9):
        guess = {"bounded": 1.3 * s, "guess of zero": 0.0, "guess near zero": 1e-6 * s}[kind]
        bounds = {"k": (-5 * s, 7 * s)} if kind == "bounded" else None
        scaled = model().replace({"unit": s, "k": s})
        fit = gr.fit(scaled, record(model), [name, *levels], method, guess={name: guess}, bounds=bounds)
        assert fit.converged
        found.append((float(fit[name]) / s, fit[name].std_error / s))
    for value, error in found[1:]:
        assert value == pytest.approx(found[0][0], abs=1e-3 * found[0][1])
        assert error == pytest.approx(found[0][1], rel=1e-3)
    assert 0 < found[0][1] < 1
