"""Structures of models, kept for the life of the process.

The structure depends on equations only; models that differ in values share it. A structure is looked up by the model's
``structure_key`` and carries the values of the model it was asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.errors import ModelError
from grisaille.model.classes import Model
from grisaille.model.flattening.flatten import flatten
from grisaille.structure.reduction import Structure, reduce_model

if TYPE_CHECKING:
    from grisaille.model.flat import FlatModel

KEPT = 128
_known: OrderedDict[tuple[str, frozenset[str]], Structure] = OrderedDict()


def structure_of(model: Model, parameters: np.ndarray | None = None) -> Structure:
    """The reduced model; with ``parameters``, one that does not divide by anything that vanishes there."""
    if isinstance(model, type) and issubclass(model, Model):
        raise ModelError(f"{model.__name__} is a model class; make an instance first: {model.__name__}(…).")
    if not isinstance(model, Model):
        raise ModelError(
            f"A model is needed here, not {type(model).__name__}: make an instance of a gr.Model subclass."
        )
    refused: frozenset[str] = frozenset()
    structure: Structure = model._cached("structure", lambda: _lookup(model.structure_key, flatten(model), refused))
    while parameters is not None and structure.system.pivot_texts:
        vanishing = vanishing_pivots(structure, parameters)
        if not vanishing:
            break
        refused |= vanishing
        structure = _lookup(model.structure_key, structure.model, refused)
    return structure


def vanishing_pivots(structure: Structure, parameters: np.ndarray) -> frozenset[str]:
    """Divisors of the tearing that are zero or not finite at these parameter values, by their texts."""
    system = structure.system
    values = np.array(ca.Function("pivots", [system.p], [system.pivots])(parameters).full()).ravel()
    return frozenset(t for t, v in zip(system.pivot_texts, values, strict=True) if v == 0 or not np.isfinite(v))


def _lookup(key: str, flat: FlatModel, refused: frozenset[str]) -> Structure:
    if (key, refused) in _known:
        _known.move_to_end((key, refused))
        return replace(_known[key, refused], model=flat)
    structure = reduce_model(flat, refused)
    _known[key, refused] = structure
    while len(_known) > KEPT:
        _known.popitem(last=False)
    return structure
