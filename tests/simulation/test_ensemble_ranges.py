"""Ensembles that begin at a later realization: the same paths as in one large ensemble, for every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, spectra
from grisaille.simulation import pose
from grisaille.simulation.ensembles import EnsembleOptions, run_ensemble

TIMES = np.linspace(0.0, 1.0, 6)


class Plain(gr.Model):
    x = gr.Variable(1.0)
    w = gr.Disturbance(spectra.lowpass(2.0), scale=0.5)
    equations = [der(x) == -x + w**2]


class White(gr.Model):
    x = gr.Variable(1.0)
    w = gr.Disturbance(spectra.white(), scale=0.5)
    equations = [der(x) == -x + w]


class Implicit(gr.Model):
    """z stays implicit, so that every realization is integrated by itself."""

    x, z = gr.Variable(1.0), gr.Variable(0.5)
    w = gr.Disturbance(spectra.lowpass(2.0), scale=0.1)
    equations = [der(x) == -z + w, z + gr.exp(0.1 * z) == x + 1.0]


@pytest.mark.parametrize(
    ("model", "options"),
    [(Plain(), {}), (Plain(), {"between": "exact"}), (Plain(), {"antithetic": True}), (White(), {}), (Implicit(), {})],
    ids=["fused", "bridge", "antithetic", "white", "implicit"],
)
def test_a_range_is_part_of_the_whole(model: gr.Model, options: dict[str, Any]) -> None:
    posed = pose(model, TIMES, {}, {}, {}, hold=None, sensitivities=())
    whole = run_ensemble(posed, EnsembleOptions(6, step=0.1, substeps=1, **options)).y
    part = run_ensemble(posed, EnsembleOptions(4, first=2, step=0.1, substeps=1, **options)).y
    assert whole is not None and part is not None
    np.testing.assert_allclose(part, whole[2:], rtol=1e-12, atol=1e-14)
    assert np.abs(part[0] - whole[0]).max() > 1e-4
