"""Nylon 612: the data that ship, the equilibrium constant, estimates near the independent program's, least squares."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille_reproductions import (
    varziri_nylon as nylon,
    varziri_nylon_equilibrium as equilibrium,
    varziri_nylon_fits as fits,
)
from grisaille_reproductions.registry import find


def test_tables_ship_complete() -> None:
    runs, table = gr.examples.nylon612(), gr.examples.nylon612_table()
    assert [len(r.grid()) for r in runs] == [22, 23, 22, 15, 18, 23]
    assert [round(r.constants["T"] - 273.15) for r in runs] == [271, 281, 263, 284, 284, 284]
    assert [len(r.measurements("y_C")[1]) for r in runs] == [22, 23, 22, 12, 15, 12]
    assert int(table["steady"].sum()) == 21
    assert set(table["P_W"].dropna().unique()) == {58.0, 152.0, 181.0, 205.0, 760.0}
    assert len(gr.examples.nylon612_catalysed()) == 17


def test_water_in_equilibrium() -> None:
    """Saturation at the normal boiling point, and the model's formula against NumPy's."""
    assert nylon.saturation_pressure(373.124) == pytest.approx(101325.0, rel=2e-3)
    model = nylon.NylonReactor(T=544.15)
    run = gr.simulate(model, [0.0, 0.1], inputs={"P_W": 760.0})
    assert float(run["W_eq"][0]) == pytest.approx(nylon.equilibrium_water(760.0, 544.15), rel=1e-12)


def test_mass_balance_closes() -> None:
    run = gr.simulate(nylon.NylonReactor(), np.linspace(0.0, 1.0, 5), inputs={"P_W": 152.0})
    total = 155.23 * run["L"] + 115.15 * run["C"] + 58.10 * run["A"] + 18.02 * run["W"]
    np.testing.assert_allclose(total, 1e6, rtol=1e-12)
    np.testing.assert_allclose(run["C"] - run["A"], run["C"][0] - run["A"][0], rtol=1e-9)


def test_selection_of_the_equilibrium_constant() -> None:
    found = equilibrium.selection("small", None, None)
    squares = [float(row.ours) for row in found.rows[:8]]
    assert squares[0] == pytest.approx(squares[2], rel=1e-6)
    assert max(squares) == squares[3]
    assert squares[7] == min(squares[2], squares[4], squares[7])
    fit = equilibrium.fit_formula(8)
    for name, published in equilibrium.PUBLISHED_ESTIMATES.items():
        assert abs(float(fit[name]) - published) < fit[name].std_error


def test_residuals_of_the_equilibrium_constant_show_no_trend(tmp_path) -> None:
    found = equilibrium.figures("small", tmp_path, None)
    assert abs(found.ours("correlation of residuals with T")) < 0.2
    assert (tmp_path / "figures-6.1-6.4.png").exists()


@pytest.mark.slow
def test_estimates_at_the_published_intensities() -> None:
    by_start = {s: fits.fit_at_published_intensities(s, "spline") for s in ("document", "ones")}
    for fit in by_start.values():
        assert fit.converged and float(fit["E"]) == 0.0
        for name in ("k_p0", "K_a0", "a", "dH"):
            assert float(fit[name]) == pytest.approx(fits.REFERENCE[name], rel=0.02)
        assert fit.estimate.objective == pytest.approx(352.2, rel=0.02)
    assert fits._apart(by_start) < 1e-3


def test_cost_is_that_of_the_independent_program() -> None:
    assert fits.cost_on_document_knots(nylon.PUBLISHED) == pytest.approx(359.1, rel=1e-3)
    assert fits.cost_on_document_knots(fits.REFERENCE) == pytest.approx(352.2, rel=1e-3)


@pytest.mark.slow
def test_direct_collocation_reaches_one_optimum_from_both_starts() -> None:
    by_start = {s: fits.fit_at_published_intensities(s, "direct") for s in ("document", "ones")}
    assert all(f.converged for f in by_start.values())
    assert fits._apart(by_start) < 1e-3
    assert by_start["ones"].estimate.objective < 0.98 * 352.2
    figures = fits.figures("small", None, None)
    assert len(figures.rows) == 12
    for row in figures.rows:
        disturbed, alone = (float(v) for v in str(row.ours).split(", "))
        assert disturbed < 0.6 * alone


def test_names_are_registered() -> None:
    names = {e.name for e in find("varziri")}
    assert {f"varziri/table-6.{k}" for k in range(1, 7)} <= names
    assert {"varziri/figures-6.1-6.4", "varziri/figures-6.5-6.6", "varziri/three-methods"} <= names
