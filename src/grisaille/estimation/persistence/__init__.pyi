"""The names that `grisaille.estimation.persistence` exports."""

from grisaille.estimation.persistence.findings import (
    findings_as_data as findings_as_data,
    restored_findings as restored_findings,
)
from grisaille.estimation.persistence.netcdf import groups_as_bytes as groups_as_bytes, read_groups as read_groups
from grisaille.estimation.persistence.saving import file_groups as file_groups
