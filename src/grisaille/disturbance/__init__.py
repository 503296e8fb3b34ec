"""Spectra in, numbers out: discretised processes, and random paths that are functions of their indices.

Receives the spectra, scales and correlations of a model's disturbances; hands on transition matrices, stationary
starts, streams of innovations and values between grid points: what simulation, filtering and collocation share.
"""

from grisaille.disturbance.bridge import Bridge, build_bridge, choose_depth
from grisaille.disturbance.bridged_path import BridgedPath, sample_bridged_path
from grisaille.disturbance.discretization import (
    discretize,
    discretize_symbolic,
    distinct_steps,
    doublings,
    frozen_doublings,
)
from grisaille.disturbance.disturbance_interpolation import interpolate, piece_coefficients
from grisaille.disturbance.factorization import factorize, factorize_symbolic, nonzero_pivots
from grisaille.disturbance.paths import (
    Transitions,
    make_transitions,
    sample_increments,
    sample_path,
)
from grisaille.disturbance.process import Process
from grisaille.disturbance.process_assembly import (
    build_process,
    build_symbolic_process,
    correlation_matrix,
    group_correlated,
)
from grisaille.disturbance.process_formulas import start_covariance_symbolic, start_root_symbolic, transition_symbolic
from grisaille.disturbance.standard_normals import Stream, normals
from grisaille.disturbance.stationarity import cross_covariance_symbolic, refuse_unstable, stationary_covariance
from grisaille.numerics.philox import Purpose, philox, stream_key

__all__ = [
    "Bridge",
    "BridgedPath",
    "Process",
    "Purpose",
    "Stream",
    "Transitions",
    "build_bridge",
    "build_process",
    "build_symbolic_process",
    "choose_depth",
    "correlation_matrix",
    "cross_covariance_symbolic",
    "discretize",
    "discretize_symbolic",
    "distinct_steps",
    "doublings",
    "factorize",
    "factorize_symbolic",
    "frozen_doublings",
    "group_correlated",
    "interpolate",
    "make_transitions",
    "nonzero_pivots",
    "normals",
    "philox",
    "piece_coefficients",
    "refuse_unstable",
    "sample_bridged_path",
    "sample_increments",
    "sample_path",
    "start_covariance_symbolic",
    "start_root_symbolic",
    "stationary_covariance",
    "stream_key",
    "transition_symbolic",
]
