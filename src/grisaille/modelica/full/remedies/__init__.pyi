"""The names that `grisaille.modelica.full.remedies` exports."""

from grisaille.modelica.full.remedies.remedies import Remedies as Remedies
from grisaille.modelica.full.remedies.remedies_of_names import (
    with_derivatives_in_files as with_derivatives_in_files,
    with_full_literals as with_full_literals,
)
