"""What the fixed steps of an ensemble pass without meeting it, in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.bound_experiment import ExperimentPoint
from grisaille.simulation.ensembles.disturbances import Disturbances
from grisaille.simulation.ensembles.engine_choice import PASSED_UNDER_NOISE
from grisaille.simulation.ensembles.engines import FusedEngine, SampledEngine
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.ensembles.ensemble_setup import make_setup
from grisaille.simulation.ensembles.pilot_runs import MAX_SUBSTEPS, describe_passed
from grisaille.simulation.ensembles.skipped_features import narrowest_skipped_feature


def describe_skipped(posed: ExperimentPoint, options: EnsembleOptions, disturbances: Disturbances) -> str:
    """Return what steps that are fixed pass without meeting it, in words; empty where they meet everything."""
    if options.substeps is None:
        return ""
    own = replace(options, realizations=min(2, options.realizations))
    setting, noise = make_setup(posed, own, disturbances)
    if setting.crossed or posed.structure.system.has.pasts or (noise and noise.carried is not None):
        return ""
    engine = FusedEngine if options.between == "linear" else SampledEngine
    rtol = max(options.rtol, PASSED_UNDER_NOISE) if noise and noise.names else options.rtol
    passed = narrowest_skipped_feature(engine, replace(setting, substeps=options.substeps), rtol)
    if passed is None or passed.substeps <= 2 * options.substeps:
        return ""
    longest = float(np.diff(setting.grid.points).max())
    step = 0.5 * longest * MAX_SUBSTEPS / passed.substeps
    return f"{describe_passed(passed, options.substeps, setting)}; step={step:.1g} would meet it"
