"""The names that `grisaille.study` exports."""

from grisaille.study.basins import find_basins as find_basins
from grisaille.study.bootstrap_intervals import Inversion as Inversion, quantile_error as quantile_error
from grisaille.study.bootstrap_task import block_positions as block_positions
from grisaille.study.engine import MAX_CHUNK as MAX_CHUNK, ChunkPace as ChunkPace
from grisaille.study.header import options_text as options_text
from grisaille.study.modelica_check import (
    ModelicaCheck as ModelicaCheck,
    find_files as find_files,
    library_files as library_files,
    outcome_text as outcome_text,
    summary as summary,
)
from grisaille.study.modelica_file import run as run
from grisaille.study.processes import Pool as Pool
from grisaille.study.redrawn_records import draw_records as draw_records
from grisaille.study.reference_signals import ReferenceSignals as ReferenceSignals, read_reference as read_reference
from grisaille.study.seeds import experiment_seed as experiment_seed, run_seed as run_seed, uniforms as uniforms
from grisaille.study.starting_points import make_starts as make_starts
from grisaille.study.store import Store as Store
from grisaille.study.study_summary import binomial_p_value as binomial_p_value, coverage_verdict as coverage_verdict
from grisaille.study.study_task import PreparedTask as PreparedTask, RunAnswer as RunAnswer
