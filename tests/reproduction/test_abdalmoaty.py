"""The pendulum study at reduced sizes: smoothness of the criterion, estimates within their spread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grisaille.errors import DataError
from grisaille_reproductions import registry
from grisaille_reproductions.abdalmoaty import PRINTED, PROGRAM, TRUTH, known_path
from grisaille_reproductions.abdalmoaty_estimates import Extent, by_gauss_newton, on_grid
from grisaille_reproductions.abdalmoaty_smoothness import SPACINGS, bend, criterion, turning_points


def test_names_are_registered() -> None:
    assert [e.name for e in registry.find("abdalmoaty")] == [
        "abdalmoaty/fig1", "abdalmoaty/fig1-gauss-newton", "abdalmoaty/fig2", "abdalmoaty/finite-m",
        "abdalmoaty/consistency", "abdalmoaty/coverage", "abdalmoaty/disturbance-parameters", "abdalmoaty/coarse-grid",
        "abdalmoaty/delta-robot",
    ]  # fmt: skip


def test_numbers_replace_those_of_the_size() -> None:
    (entry,) = registry.find("abdalmoaty/fig1")
    assert entry.options == ("data_sets", "lengths", "realizations", "step", "device")
    with pytest.raises(DataError, match="no number called 'runs'; it takes data_sets, lengths"):
        entry.run("small", runs=3)
    result = entry.run("small", data_sets=3, lengths=700, realizations=4, step=0.8)
    assert "3 data sets" in result.notes[0] and "program: k corrected, N = 700, mean" in [
        r.quantity for r in result.rows
    ]


def test_the_input_is_one_path_whatever_its_length() -> None:
    (t, short), (_, long) = known_path(10), known_path(20)
    assert t[-1] == 1.0 and np.array_equal(short, long[: short.size]) and short[0] == 0


@pytest.mark.parametrize("settings", [PRINTED, PROGRAM], ids=lambda s: s.name)
def test_kept_innovations_make_the_criterion_smooth(settings) -> None:
    """Second differences over δ² stay when δ is quartered; fresh innovations multiply them by sixteen or so."""
    theta = TRUTH + SPACINGS[-1] * np.arange(-12, 13)
    kept, fresh = criterion(settings, theta), criterion(settings, theta, fresh=True)
    assert 0.5 < bend(kept, SPACINGS[-1]) / bend(kept, SPACINGS[0]) < 2
    assert bend(fresh, SPACINGS[-1]) > 5 * bend(fresh, SPACINGS[0])
    assert bend(fresh, SPACINGS[-1]) > 20 * bend(kept, SPACINGS[-1])
    assert turning_points(kept) <= 1 and turning_points(fresh) >= 6
    np.testing.assert_array_equal(criterion(settings, theta[:2]), kept[:2])


def test_grid_estimates() -> None:
    """Thirty data sets of 1200 samples: within four standard errors of the truth, the correction moves them down."""
    found = on_grid(PROGRAM, Extent(30, (1200,), 30, 0.64))[1200]
    for method in ("proposed", "corrected"):
        spread = found[method].std(ddof=1)
        assert 0.3 < spread < 2.0 and abs(found[method].mean() - TRUTH) < 4 * spread / np.sqrt(30)
    assert found["corrected"].mean() < found["proposed"].mean()
    printed = on_grid(PRINTED, Extent(6, (1000,), 12, 0.64))[1000]
    for sample in printed.values():
        assert np.abs(sample - TRUTH).max() < 0.5, "with the settings of the text no method is biased"


def test_gauss_newton_and_its_figure(tmp_path: Path) -> None:
    result = by_gauss_newton("small", tmp_path, None, data_sets=2, samples=800, realizations=8)
    assert all(1.0 <= result.ours(f"program: k {m}, N = 800, mean") <= 30.0 for m in ("corrected", "output error"))
    assert result["k corrected: 95 % intervals that hold the truth"].ours in ("1 of 2", "2 of 2")
    assert [p.name for p in result.figures] == ["fig1-gauss-newton.png"]
