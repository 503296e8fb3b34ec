"""The names that `grisaille.estimation.findings` exports."""

from grisaille.estimation.findings.ensemble import (
    EnsembleResult as EnsembleResult,
    ErrorSize as ErrorSize,
    UnexplainedErrors as UnexplainedErrors,
)
from grisaille.estimation.findings.mesh import MeshResult as MeshResult
