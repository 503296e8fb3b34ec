"""One model of index 3, three estimators."""

from __future__ import annotations

import pytest

from grisaille_reproductions import varziri_three_methods as three


@pytest.mark.slow
def test_three_estimates_agree(tmp_path) -> None:
    found = three.three_methods("small", tmp_path, None)
    assert found["index of the model"].ours == 3
    assert found.ours("largest distance between two, in their standard errors") < 1.5
    assert (tmp_path / "three-methods.png").exists()
