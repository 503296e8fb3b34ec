"""Priors as tables: ``{ kind = "normal", mean = 1.0, std = 0.1 }``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError
from grisaille.laws import Law, MultivariateNormal, Smoothness
from grisaille.laws.law import is_ours
from grisaille.laws.law_content import is_for_measurements

if TYPE_CHECKING:
    pass

PRIOR_KINDS: dict[str, type] = {
    **{n.lower(): kind for n, kind in Law.known.items() if is_ours(kind) and not is_for_measurements(kind)},
    "smoothness": Smoothness,
}


def make_prior(table: Mapping[str, Any]) -> Any:
    """Return the distribution that a table describes."""
    kind = PRIOR_KINDS[table["kind"]]
    fields = [f.name for f in dataclasses.fields(kind)]
    given = {k: v for k, v in table.items() if k != "kind"}
    may_lack = {"below", "above"} if "of" in given and set(given) > {"of"} else set()
    if not set(fields) - may_lack <= set(given) <= set(fields):
        example = ", ".join(f"{name} = …" for name in fields)
        raise DataError(
            f"a {table['kind']} prior has {' and '.join(fields)}, got {', '.join(given) or 'neither'}: "
            f'{{ kind = "{table["kind"]}", {example} }}.'
        )
    if "of" in given:
        given["of"] = make_prior(given["of"])
    return kind(**given)


def make_joint(table: Mapping[str, Any]) -> MultivariateNormal:
    """Return a joint normal prior."""
    return MultivariateNormal(table["names"], table["mean"], table["cov"])
