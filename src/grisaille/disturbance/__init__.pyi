"""The names that `grisaille.disturbance` exports."""

from grisaille.disturbance.bridge import Bridge as Bridge, build_bridge as build_bridge, choose_depth as choose_depth
from grisaille.disturbance.bridged_path import BridgedPath as BridgedPath, sample_bridged_path as sample_bridged_path
from grisaille.disturbance.discretization import (
    discretize as discretize,
    discretize_symbolic as discretize_symbolic,
    distinct_steps as distinct_steps,
    doublings as doublings,
    frozen_doublings as frozen_doublings,
)
from grisaille.disturbance.disturbance_interpolation import (
    interpolate as interpolate,
    piece_coefficients as piece_coefficients,
)
from grisaille.disturbance.duals import constant_dual as constant_dual
from grisaille.disturbance.factorization import (
    factorize as factorize,
    factorize_symbolic as factorize_symbolic,
    nonzero_pivots as nonzero_pivots,
)
from grisaille.disturbance.paths import (
    Transitions as Transitions,
    make_transitions as make_transitions,
    multiply as multiply,
    sample_increments as sample_increments,
    sample_path as sample_path,
)
from grisaille.disturbance.process import Process as Process
from grisaille.disturbance.process_assembly import (
    build_process as build_process,
    build_symbolic_process as build_symbolic_process,
    correlation_matrix as correlation_matrix,
    group_correlated as group_correlated,
)
from grisaille.disturbance.process_formulas import (
    start_covariance_symbolic as start_covariance_symbolic,
    start_root_symbolic as start_root_symbolic,
    transition_symbolic as transition_symbolic,
)
from grisaille.disturbance.standard_normals import (
    Stream as Stream,
    log_unit as log_unit,
    normals as normals,
    sine_cosine_turn as sine_cosine_turn,
)
from grisaille.disturbance.stationarity import (
    balancing_units as balancing_units,
    cross_covariance_symbolic as cross_covariance_symbolic,
    refuse_unstable as refuse_unstable,
    stationary_covariance as stationary_covariance,
)
from grisaille.disturbance.stochastic_model import build_stochastic_model as build_stochastic_model
from grisaille.numerics.philox import Purpose as Purpose, philox as philox, stream_key as stream_key
