"""The names that `grisaille.experiment.times` exports."""

from grisaille.experiment.times.clock import UNSTATED_UNIT as UNSTATED_UNIT, Clock as Clock
from grisaille.experiment.times.dating import clock_in as clock_in, date_column as date_column, with_dates as with_dates
