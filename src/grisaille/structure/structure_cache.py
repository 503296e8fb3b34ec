"""Structures of models, kept for the life of the process.

The structure depends on equations only; models that differ in values share it. A structure is looked up by the model's
``structure_key`` and carries the values of the model it was asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.cache import Cache
from grisaille.errors import ModelError
from grisaille.model.classes import Model, content_key
from grisaille.model.flattening.flatten import flatten
from grisaille.structure.elimination_growth import growing_pivots
from grisaille.structure.reduction import Structure, reduce_model

if TYPE_CHECKING:
    from grisaille.model.flat import FlatModel

_by_equations: Cache[Structure] = Cache(128)
_by_content: Cache[Structure] = Cache(32)
"""With their values: equal models share what is made of a structure."""


def structure_of(model: Model, parameters: np.ndarray | None = None) -> Structure:
    """Return the reduced model; with ``parameters``, one that does not divide by anything that vanishes there, or by
    which rounding would grow.
    """
    if isinstance(model, type) and issubclass(model, Model):
        raise ModelError(f"{model.__name__} is a model class; make an instance first: {model.__name__}(…).")
    if not isinstance(model, Model):
        raise ModelError(
            f"A model is needed here, not {type(model).__name__}: make an instance of a gr.Model subclass."
        )
    refused: frozenset[str] = frozenset()
    structure: Structure = model._cached("structure", lambda: _structure(model, refused))
    while parameters is not None and structure.depends_on_values:
        found = vanishing_pivots(structure, parameters) or growing_pivots(structure, parameters)
        if found <= refused:
            break
        refused |= found
        structure = _structure(model, refused)
    return structure


def _structure(model: Model, refused: frozenset[str]) -> Structure:
    """Return the structure that all models of this content share."""
    return _by_content.get((content_key(model), refused), lambda: _reduced(model, flatten(model), refused))


def vanishing_pivots(structure: Structure, parameters: np.ndarray) -> frozenset[str]:
    """Return divisors of the tearing that are zero or not finite at these parameter values, by their texts."""
    system = structure.system
    values = np.array(system.pivot_function(parameters).full()).ravel()
    return frozenset(t for t, v in zip(system.pivot_texts, values, strict=True) if v == 0 or not np.isfinite(v))


def _reduced(model: Model, flat: FlatModel, refused: frozenset[str]) -> Structure:
    """Return the structure with the values of this model; equations that were reduced before are not reduced again."""
    key = (model.structure_key, refused)
    return replace(_by_equations.get(key, lambda: reduce_model(flat, refused)), model=flat)
