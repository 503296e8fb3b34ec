"""The expected information in one sample of a law without a closed form, E[s sᵀ] with s = ∂ log p/∂ arguments.

The scores are averaged on the nodes of ``intervals`` over the whole support, of counts over all of them. Samples with
the same arguments have the same information, which is computed once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.laws.law_arguments import shape_of

if TYPE_CHECKING:
    from grisaille.laws.measured import Measured


MANY_SAMPLES = 64
"""Samples from which on equal ones are looked for."""


def expected_information(law: Measured, names: tuple[str, ...]) -> np.ndarray:
    """Return E[s sᵀ] (N, k, k)."""
    law.refuse_open()
    shape, k = shape_of(law), len(names)
    flat = {p: np.ravel(np.broadcast_to(v, shape)) for p, v in law.arguments.items() if np.ndim(v)}
    count = int(np.prod(shape))
    again = np.arange(count)
    if count > MANY_SAMPLES:
        distinct, again = np.unique(np.stack(list(flat.values())), axis=1, return_inverse=True)
        flat = dict(zip(flat, distinct, strict=True))
        count = distinct.shape[1]
    everything = np.full(count, np.inf)
    found = law.filled(flat).information_within(-everything, everything, names)[1]
    return np.asarray(found[again.ravel()].reshape(*shape, k, k))
