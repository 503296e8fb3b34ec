"""The names that `grisaille.compilation` exports."""

from grisaille.compilation.coloured_noise_source import (
    HALF as HALF,
    MIXED as MIXED,
    QUARTER as QUARTER,
    ColouredNoise as ColouredNoise,
    ColouredNoiseLayout as ColouredNoiseLayout,
    NoiseFilterGroup as NoiseFilterGroup,
    white_noise_pairs as white_noise_pairs,
)
from grisaille.compilation.compiler import (
    LIBRARY_SUFFIX as LIBRARY_SUFFIX,
    Compiler as Compiler,
    find_compiler as find_compiler,
    flags as flags,
)
from grisaille.compilation.derivatives import (
    PARAMETER_DERIVATIVES as PARAMETER_DERIVATIVES,
    PLAIN_FUNCTIONS as PLAIN_FUNCTIONS,
    differentiate as differentiate,
    jacobian as jacobian,
)
from grisaille.compilation.dialect import (
    PLAIN_DIALECT as PLAIN_DIALECT,
    WIDE_DIALECT as WIDE_DIALECT,
    literal as literal,
)
from grisaille.compilation.fused_step import build_step as build_step
from grisaille.compilation.hoisting import hoist as hoist
from grisaille.compilation.implicit_as_states import (
    ALGEBRAIC_EFFORTS as ALGEBRAIC_EFFORTS,
    LINEAR_EFFORT as LINEAR_EFFORT,
)
from grisaille.compilation.implicit_step import formulate_implicit_step as formulate_implicit_step
from grisaille.compilation.kernel import Kernel as Kernel, build_kernel as build_kernel
from grisaille.compilation.kernel_source import (
    c_source as c_source,
    can_be_linked as can_be_linked,
    linked_kind as linked_kind,
    linked_sources as linked_sources,
)
from grisaille.compilation.loop_printer import print_with_loops as print_with_loops
from grisaille.compilation.plan import Plan as Plan
from grisaille.compilation.printer import PRELUDE as PRELUDE, print_function as print_function
from grisaille.compilation.requirement import require_compiled as require_compiled
from grisaille.compilation.sample_moments import SampleMoments as SampleMoments
from grisaille.compilation.schemes.tableau_source import tableau_source as tableau_source
from grisaille.compilation.shared_library import (
    CSource as CSource,
    build_library as build_library,
    build_linked as build_linked,
    build_shared_object as build_shared_object,
    headers_of as headers_of,
)
from grisaille.compilation.sparse.fronts import fronts as fronts
from grisaille.compilation.step import (
    StepFormula as StepFormula,
    correction_plan as correction_plan,
    formulate_step as formulate_step,
    project as project,
    solve_gram as solve_gram,
    step_sensitivity as step_sensitivity,
)
from grisaille.compilation.step_tangent import ValueWithTangent as ValueWithTangent, project_moved as project_moved
from grisaille.compilation.stochastic_step import (
    WhiteNoiseInfo as WhiteNoiseInfo,
    choose_scheme as choose_scheme,
    formulate_stochastic_step as formulate_stochastic_step,
    white_step as white_step,
)
from grisaille.compilation.task import TASK_FIELDS as TASK_FIELDS, Status as Status, Task as Task
from grisaille.compilation.warm_up import PROGRAMS as PROGRAMS
from grisaille.numerics.flat_functions import FlatEvaluation as FlatEvaluation, flat_function as flat_function
from grisaille.structure.stochastic.lamperti import ChartPoint as ChartPoint
