"""Draws as the installed ArviZ takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grisaille.errors import EstimationError

if TYPE_CHECKING:
    from grisaille.posteriors.posterior import SampledPosterior


def arviz_data(posterior: SampledPosterior) -> Any:
    """Return an ``InferenceData`` (ArviZ 0) or a ``DataTree`` (ArviZ 1) with the draws and how they came about."""
    import warnings

    groups = {"posterior": posterior.draws, "sample_stats": posterior.statistics}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # version 0 announces version 1 when it is imported
            import arviz
    except ImportError as error:
        raise EstimationError(
            f"ArviZ is not installed ({error}): pip install 'grisaille[bayes]'. posterior.table and posterior.plot() "
            f"need nothing, posterior.draws has the draws."
        ) from error
    import xarray as xr

    kind = getattr(arviz, "InferenceData", None)
    # in version 1 the name stands for a DataTree
    if kind is not None and not (hasattr(xr, "DataTree") and issubclass(kind, xr.DataTree)):
        return kind(**groups)
    return xr.DataTree.from_dict({f"/{name}": dataset for name, dataset in groups.items()})
