"""What a fit or a study says, as plain data that can be compared later."""

from __future__ import annotations

from typing import Any

import numpy as np


def said_by_fit(fit: Any) -> dict[str, Any]:
    """Return the text, the table, the covariance and the criterion of a fit."""
    table = fit.parameters
    return {
        "text": str(fit),
        "status": fit.status,
        "converged": bool(fit.converged),
        "names": list(table.index),
        "estimate": table["estimate"].tolist(),
        "std_error": table["std_error"].tolist(),
        "lower": table["lower"].tolist(),
        "upper": table["upper"].tolist(),
        "covariance": fit.covariance.to_numpy().tolist(),
        "log_likelihood": float(fit.log_likelihood) if np.isfinite(fit.log_likelihood) else None,
    }


def said_by_study(study: Any) -> dict[str, Any]:
    """Return the estimates of a study, a row for each run."""
    return {"estimates": {name: column.tolist() for name, column in study.estimates.items()}}
