"""What does not depend on the estimator is refused by all of them in the same words."""

from __future__ import annotations

import re

import pytest

import grisaille as gr
from conformance.estimators import ESTIMATORS
from conformance.zoo import ZOO


@pytest.mark.parametrize("name", [e.name for e in ZOO.values() if e.refused])
def test_the_same_words(name: str) -> None:
    said = set()
    for estimator in ESTIMATORS.values():
        with pytest.raises(gr.GrisailleError, match=re.escape(ZOO[name].refused)) as error:
            ZOO[name].fit(estimator.method)
        said.add(str(error.value))
    assert len(said) == 1
