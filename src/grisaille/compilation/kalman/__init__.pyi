"""The names that `grisaille.compilation.kalman` exports."""

from grisaille.compilation.kalman.builds import build_filter as build_filter
from grisaille.compilation.kalman.coloured_noise_numpy import ColouredNoiseStates as ColouredNoiseStates
from grisaille.compilation.kalman.compiled_pass import (
    PreparedPass as PreparedPass,
    run_forward as run_forward,
    run_reverse as run_reverse,
)
from grisaille.compilation.kalman.directional_functions import with_directions as with_directions
from grisaille.compilation.kalman.passing import DEGREE as DEGREE, FilterPass as FilterPass, PassResult as PassResult
from grisaille.compilation.kalman.program import FilterProgram as FilterProgram
