"""The names that `grisaille.cli` exports."""

from grisaille.cli.commands import COMMANDS as COMMANDS, main as main, program as program
from grisaille.cli.fit_command import describe_residuals as describe_residuals
from grisaille.cli.parsing import times_of as times_of
from grisaille.cli.predict_command import table_of as table_of
