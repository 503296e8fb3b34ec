"""Reproductions at their small size: theory to its printed digits, samples of few runs within their spread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import DataError
from grisaille_reproductions import registry
from grisaille_reproductions.comparison import Reproduction
from grisaille_reproductions.fladischer_free_fall import TIMES, FreeFall, exact_height
from grisaille_reproductions.valleys import count_valleys


def run(name: str, folder: Path | None = None) -> Reproduction:
    (entry,) = registry.find(f"fladischer/{name}")
    return entry.run("small", folder)


def test_names_are_found_and_mistakes_told() -> None:
    assert len(registry.find("fladischer")) == sum(e.name.startswith("fladischer/") for e in registry.ENTRIES) == 13
    with pytest.raises(DataError, match=r"Near: fladischer/table-4\.3"):
        registry.find("fladischer/tabel-4.3")
    assert "fladischer/table-4.5" in registry.listing()


def test_valleys() -> None:
    x = np.linspace(-3, 3, 61)
    assert count_valleys(np.cos(2 * x)) == 3 - 1
    assert count_valleys(x[:, None] ** 2 + x**2) == 1
    assert count_valleys((x[:, None] ** 2 - 4) ** 2 + x**2) == 2
    assert count_valleys(x**2 + 1e-4 * np.cos(40 * x)) == 1, "ripples are not valleys"


def test_free_fall_has_its_closed_form() -> None:
    assert np.allclose(gr.simulate(FreeFall(), TIMES, rtol=1e-10)["s"], exact_height(), atol=1e-8)


def test_cost_functions(tmp_path: Path) -> None:
    result = run("figures-3.1-3.6", tmp_path)
    assert [result.ours(f"3.{n}") for n in ("2: valleys of the parabola", "5: valleys of exp ψx")] == [1, 1]
    assert result.ours("3.4: lowest valleys of ψ₁ sin ψ₂x") == 2
    assert result.ours("3.3: lowest at ψ") == pytest.approx(3.0)
    assert len(result.figures) == 5 and all(path.stat().st_size > 5000 for path in result.figures)


def test_optimizers_agree() -> None:
    assert run("table-4.1").ours("their distance, in standard errors") < 1e-4


def test_joint_fit_of_repeats_is_the_fit_of_their_mean() -> None:
    assert run("table-4.2").ours("|ψ_A,B − ψ_mean|") < 1e-10


def test_spread_of_drag() -> None:
    """Theory to its printed digits; 60 runs within four standard errors of a standard deviation (9 % each)."""
    result = run("table-4.3")
    assert result["ψ_A: std [kg/m]"].theory == pytest.approx(0.02615, rel=5e-4)
    for name in ("A", "B", "A,B"):
        row = result[f"ψ_{name}: std [kg/m]"]
        assert row.ours == pytest.approx(row.theory, rel=0.36)
        assert result.ours(f"ψ_{name}: mean [kg/m]") == pytest.approx(0.5, abs=0.015)
    assert result.ours("|ψ_A,B − ψ_mean|, largest of 5") < 1e-10


def test_spread_falls_with_the_root_of_repeats() -> None:
    assert run("figure-4.10").ours("k of k/√n [kg/m]") == pytest.approx(0.02615, rel=0.3)


def test_unknown_initial_conditions() -> None:
    result = run("table-4.4")
    for name, theory in {"c": 0.0551, "start(s)": 0.506, "start(v)": 0.667}.items():
        row = result[f"{name}: std"]
        assert row.theory == pytest.approx(theory, rel=2e-3)
        assert row.ours == pytest.approx(theory, rel=0.36)


def test_cost_over_initial_conditions_has_one_valley() -> None:
    result = run("figures-4.11-4.12")
    assert result.ours("Fig. 4.11: valleys") == result.ours("Fig. 4.12: valleys") == 1


def test_spring_from_the_documents_start() -> None:
    result = run("figures-4.15-4.16")
    assert result.ours("ψ_AB: |h| [1/m]") == pytest.approx(2.0, abs=0.1)
    assert result.ours("y_A(ψ_AB): rms error [m]") < 0.1 * result.ours("y_A(ψ_B): rms error [m]")


def test_spread_of_stiffness() -> None:
    result = run("table-4.5")
    for name, theory in {"A": 0.509, "B": 1.237, "AB": 0.135}.items():
        assert result[f"k_{name}: std [N/m]"].theory == pytest.approx(theory, rel=5e-3)
    assert result.ours("k_AB: mean [N/m]") == pytest.approx(64.0, abs=4 * 0.135 / np.sqrt(8))


def test_many_starts() -> None:
    result = run("figure-4.22")
    assert result.ours("in the best basin") == result.ours("starts") == 8


def test_hysteresis() -> None:
    result = run("figures-4.25-4.30")
    assert result.ours("0.5 μ₀mg: largest |x| [m]") < 2e-5
    assert result.ours("1.5 μ₀mg: largest friction before sliding [N]") == pytest.approx(0.15 * 9.81, rel=0.02)
    assert result.ours("1.5 μ₀mg: lowest friction while sliding [N]") == pytest.approx(0.10 * 9.81, rel=0.05)


def test_sensitivities() -> None:
    result = run("figures-4.31-4.33")
    for quantity in ("0.5 μ₀mg: the two strongest", "1.5 μ₀mg: the weakest"):
        assert result[quantity].ours == result[quantity].published


def test_friction_needs_both_experiments() -> None:
    result = run("figures-4.34-4.38")
    assert result["ψ_A: mu"].ours == result["ψ_B: sigma0"].ours == "not determined"
    for name, exact, error in (("sigma0", 1e5, 4e3 * 1.7), ("mu0", 0.15, 4 * 0.004)):
        assert float(str(result[f"ψ_AB: {name}"].ours).partition(" ")[0]) == pytest.approx(exact, abs=error)
    assert result.ours("y_A(ψ_AB): error / σ") < 1 < 5 < result.ours("y_A(ψ_B): error / σ")
    assert result.ours("y_B(ψ_AB): error / σ") < 1 < 5 < result.ours("y_B(ψ_A): error / σ")
