"""The names that `grisaille.reporting` exports."""

from grisaille.reporting.calendar import calendar_of as calendar_of
from grisaille.reporting.chart_encoding import encode as encode, thin as thin
from grisaille.reporting.charts import Album as Album, Chart as Chart, ChartSeries as ChartSeries
from grisaille.reporting.drawn_paths import break_at_gaps as break_at_gaps, drawn_path as drawn_path
from grisaille.reporting.labels import as_exact as as_exact, short_number as short_number
from grisaille.reporting.plots import trajectories as trajectories
from grisaille.reporting.report import fit_page as fit_page
from grisaille.reporting.report_comparison import comparison_page as comparison_page
from grisaille.reporting.report_computation import repeat_code as repeat_code, stages as stages
from grisaille.reporting.report_outputs import outputs as outputs
from grisaille.reporting.report_residuals import MEANINGS as MEANINGS, verdict as verdict
from grisaille.reporting.report_states import states as states
from grisaille.reporting.report_study import study_page as study_page
from grisaille.reporting.spectrum_plots import plot_spectrum as plot_spectrum
