"""Grey-box tables: what is transcribed agrees with itself, small studies run, four starts end in one point."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from grisaille.study import experiment_seed
from grisaille_reproductions import (
    kristensen_reactor as reactor,
    kristensen_spread as spread,
    kristensen_wall as wall,
    registry,
)
from grisaille_reproductions.kristensen import REACTOR, WALL
from grisaille_reproductions.kristensen_tables import ESTIMATES, FROM_STARTS


@pytest.fixture(autouse=True)
def _quick(monkeypatch) -> None:
    """Thousands of passes of a filter are worth a build that takes longer."""
    monkeypatch.setenv("GRISAILLE_OPTIMIZATION", "-O1")


def _run(number: int, **numbers: int):
    (entry,) = registry.find(f"kristensen/table{number}")
    return entry.run("small", **numbers)


def test_every_table_is_an_entry() -> None:
    assert [e.name for e in registry.find("kristensen")] == [f"kristensen/table{k}" for k in range(1, 10)]


def test_tables_of_starts_repeat_the_tables_of_estimates() -> None:
    """The source took its third start, σ = 0.01, for Tables 1 and 4."""
    for of_estimates, of_starts, column in ((1, 6, 1), (1, 7, 2), (4, 8, 1), (4, 9, 2)):
        for symbol, published in ESTIMATES[of_estimates].items():
            assert FROM_STARTS[of_starts][symbol][2] == published[column], (of_estimates, symbol)


@pytest.mark.parametrize(("example", "numbers"), [(REACTOR, (1, 2, 3)), (WALL, (4, 5))])
def test_true_values_are_those_of_the_models(example, numbers) -> None:
    for number in numbers:
        model = example.model(spread.DIFFUSION[number])
        for symbol, name in example.names.items():
            if name in model.parameters:
                assert model.parameters[name].value == pytest.approx(ESTIMATES[number][symbol][0], rel=1e-4), symbol


def test_feed_keeps_the_substrate_where_growth_is_fastest() -> None:
    (record,) = reactor.plan()
    substrate = record.outputs["y_S"].values
    assert np.abs(substrate - np.sqrt(0.06)).max() < 0.15
    assert 0.5 * reactor.POLE**2 + reactor.POLE + 0.03 == pytest.approx(0.0, abs=1e-15)


def test_paths_beyond_the_pole_are_counted_with_their_seeds(monkeypatch) -> None:
    """With steps under error control they are too rare to be waited for."""
    lost = experiment_seed(3, 1)
    monkeypatch.setattr(reactor, "_crosses", lambda model, seed: seed == lost)
    runs = SimpleNamespace(table=pd.DataFrame({"seed": np.arange(6)}))
    assert not reactor.crossings(runs, reactor.reactor(0.1)).seeds
    both = reactor.crossings(runs, reactor.reactor(0.1), records=2)
    assert both.seeds == (3,) and both.runs.tolist() == [False, False, False, True, False, False]


def test_steady_state_of_the_wall_is_near_its_start() -> None:
    (record,) = wall.plan()
    assert record.outputs["q"].values[0] == pytest.approx((28.0 - 25.3) / 0.5)
    assert 3.0 < record.outputs["q"].values.min() < record.outputs["q"].values.max() < 9.0


def test_reactor_singly_and_jointly(monkeypatch) -> None:
    monkeypatch.setattr(spread, "JOINT", 2)
    found = _run(2, data_sets=3, joint=2)
    assert found["X₀"].published == "0.98615 | 0.99193"
    for prefix in ("", "2 records jointly, "):
        assert 0 <= found.ours(f"{prefix}μ_max: p of the exact test") <= 1
    median = float(str(found["μ_max"].ours).partition(" (")[0])
    assert median == pytest.approx(1.0, abs=0.15)
    assert any("no path crossed the pole" in note for note in found.notes)


def test_wall_with_diffusion_and_with_low_pass_noise(tmp_path) -> None:
    (entry,) = registry.find("kristensen/table5")
    found = entry.run("small", tmp_path, low_pass=3)
    white = float(str(found["σ₂₂"].ours).partition(" (")[0])
    assert white == pytest.approx(0.1, abs=0.04)
    assert found.ours("low-pass noise: σ₂₂, median") > white
    assert (tmp_path / "kristensen-table5.png").exists()
    assert (tmp_path / "kristensen-table5.db").exists()


@pytest.mark.parametrize("numbers", [(6, 7), (8, 9)], ids=["reactor", "wall"])
def test_starts_end_in_one_point_with_zeros(numbers: tuple[int, int]) -> None:
    for found in map(_run, numbers):
        assert found.ours("converged") == 2
        assert found.ours("log-likelihood, largest difference") < 1e-6
        assert found.ours("parameters but σ, largest relative difference") < 1e-6
        zeros, _, count = str(found["σ reported as zero"].ours).partition(" of ")
        assert zeros == count
