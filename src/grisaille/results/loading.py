"""``gr.load``: a saved fit or posterior, back as it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from grisaille.calling import checked
from grisaille.errors import DataError
from grisaille.estimation.persistence.loading import damaged_files_refused, read_file, restore_fit
from grisaille.estimation.persistence.saving import KIND
from grisaille.estimators.choice import METHODS
from grisaille.model.classes import Model
from grisaille.results.fit import Fit

if TYPE_CHECKING:
    from grisaille.results.sampled import Posterior


@checked
def load(path: str | os.PathLike[str], model: Model | None = None, check: bool = True) -> Fit | Posterior:
    """Return a fit that ``fit.save`` wrote, or a posterior that ``posterior.save`` wrote, back as it was.

    Nothing in the file is executed. A fit by an estimator of your own needs the module that defines it imported first.

    Parameters
    ----------
    path : the file
    model : the model it was made with; None takes the one in the file
    check : refuse a model whose fingerprint is not the saved one, and contents that changed since they were saved

    Returns
    -------
    The fit or the posterior, with everything it could say when it was saved; simulations are prepared when first
    needed.

    Examples
    --------
    >>> fit.save("tank.nc")
    >>> gr.load("tank.nc")["k"] == fit["k"]
    True
    """
    target, known = Path(path), {kind.__name__: kind for kind in METHODS}
    groups = read_file(target)
    kind = str(groups[""].attrs.get("kind", ""))
    if kind == KIND:
        return Fit.of(restore_fit(target, groups, model, check, known))
    from grisaille.posteriors.saving import KIND as POSTERIOR, fit_groups, restored
    from grisaille.results.sampled import Posterior

    if kind != POSTERIOR:
        raise DataError(
            f"{str(target)!r} is a netCDF file, but not of a fit or a posterior: fit.save and posterior.save write "
            f"those."
        )
    fit = Fit.of(restore_fit(target, fit_groups(groups), model, check, known))
    with damaged_files_refused(target, "posterior.save"):
        return Posterior.of(restored(target, groups, fit, check))
