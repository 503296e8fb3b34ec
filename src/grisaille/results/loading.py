"""``gr.load``: a saved fit, back as it was."""

from __future__ import annotations

import os

from grisaille.calling import checked
from grisaille.estimation.persistence.loading import read_fit
from grisaille.estimators.choice import METHODS
from grisaille.model.classes import Model
from grisaille.results.fit import Fit


@checked
def load(path: str | os.PathLike[str], model: Model | None = None, check: bool = True) -> Fit:
    """Return a fit that ``fit.save`` wrote, back as it was.

    Nothing in the file is executed. A fit by an estimator of your own needs the module that defines it imported first.

    Parameters
    ----------
    path : the file
    model : the model it was made with; None takes the one in the file
    check : refuse a model whose fingerprint is not the saved one, and contents that changed since they were saved

    Returns
    -------
    The fit, with everything it could say when it was saved; simulations are prepared when first needed.

    Examples
    --------
    >>> fit.save("tank.nc")
    >>> gr.load("tank.nc")["k"] == fit["k"]
    True
    """
    return Fit.of(read_fit(path, model, check, {kind.__name__: kind for kind in METHODS}))
