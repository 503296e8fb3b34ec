"""The stirred tank: small studies run, what they print follows from the fits, and splines do what the source says."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille_reproductions import (
    registry,
    varziri_cstr as cstr,
    varziri_intensity as intensity,
    varziri_linear as linear,
    varziri_nonlinear as nonlinear,
    varziri_unstable as unstable,
)
from grisaille_reproductions.varziri_paths import state_band
from grisaille_reproductions.varziri_spread import accuracy, endings, standard_error


def _run(name: str, folder=None, **numbers: int):
    (entry,) = registry.find(f"varziri/{name}")
    return entry.run("small", folder, **numbers)


def _pretended(estimates: dict[str, list[float]], truth: dict[str, float], errors: dict[str, float]):
    """What the tables read of a study."""
    found = pd.DataFrame(estimates)
    told = pd.DataFrame(
        {
            "bias": found.mean() - pd.Series(truth),
            "std": found.std(ddof=1),
            "mean_std_error": pd.Series(errors),
            "coverage": pd.Series(dict.fromkeys(estimates, 0.5)),
        }
    )
    table = pd.DataFrame({"converged": [True] * len(found), "seed": range(len(found))})
    return SimpleNamespace(
        summary=lambda level, left_out=(): SimpleNamespace(table=told), estimates=found, truth=pd.Series(truth),
        table=table,
        counts={"converged": len(found)},
    )  # fmt: skip


def test_accuracy_is_that_of_the_converged_fits() -> None:
    study = _pretended({"b": [0.4, 0.5, 0.6, 0.9]}, {"b": 0.5}, {"b": 0.1})
    found = accuracy(study).loc["b"]
    assert found["bias"] == pytest.approx(0.1)
    assert found["rms"] == pytest.approx(np.sqrt((0.01 + 0.0 + 0.01 + 0.16) / 4))
    assert found["iqr"] == pytest.approx(0.675 - 0.475)
    assert found["bias_in_std"] == pytest.approx(0.1 / np.std([0.4, 0.5, 0.6, 0.9], ddof=1))
    study.table.loc[3, "converged"] = False
    assert accuracy(study).loc["b", "rms"] == pytest.approx(np.sqrt(0.02 / 3))
    assert accuracy(study, left_out=[0]).loc["b", "rms"] == pytest.approx(np.sqrt(0.01 / 2))


def test_published_intervals_become_standard_errors() -> None:
    assert standard_error(8.2553, 8.6431) == pytest.approx(0.0989, abs=1e-4)  # Table 5.1 prints both
    assert standard_error(0.4498, 0.4740) == pytest.approx(0.0062, abs=1e-4)


def test_every_experiment_of_a_reactor_is_an_entry() -> None:
    names = [e.name.partition("/")[2] for e in registry.find("varziri")]
    for name in ("figures-1.1-1.2", "figures-3.6-3.7", "figures-3.9-3.10", "table-4.1", "table-4.2", "table-4.3"):
        assert name in names
    assert "intensity" in names


def test_four_parameters_from_half_of_their_values(tmp_path) -> None:
    found = _run("table-4.1", tmp_path, data_sets=2)
    assert found["converged"].ours == "2 of 2 | 2 of 2 | 2 of 2"
    assert found["E/R [1000 K]: mean standard error"].published == pytest.approx(0.1133, abs=1e-4)
    assert found.ours("one data set: T inside its 95 % band [%]") > 80
    assert {p.name for p in found.figures} == {"varziri-table-4.1.png", "varziri-table-4.1-fit.png"}
    # all methods saw the same data, and the studies are kept
    assert len(list(tmp_path.glob("table-4.1-*.db"))) == 3


def test_larger_steps_of_the_coolant_ignite_some_runs() -> None:
    """Such data sets are found whether their simulation ends or only becomes hot."""
    model, method = cstr.Reactor(), gr.OutputError()
    study = gr.monte_carlo(
        model, nonlinear.plan(coolant=6.0), ["k_ref"], method, runs=4, seed=1, executor="serial", step=0.1,
        progress=False,
    )  # fmt: skip
    hot = nonlinear.find_ignited(study)
    assert 0 < len(hot) < 4
    calm = [k for k in range(4) if k not in hot]
    assert all(study.data(k)[0].measurements("y_T").values.max() < nonlinear.IGNITED for k in calm)
    assert study.summary(left_out=hot).table.loc["k_ref", "intervals"] == len(calm)
    assert not nonlinear.find_ignited(
        gr.monte_carlo(
            model, nonlinear.plan(), ["k_ref"], method, runs=2, seed=1, executor="serial", step=0.1, progress=False
        )
    )


def test_records_with_unknown_starts_begin_at_once() -> None:
    for at_once, first in ((True, (0.0, 0.0)), (False, (1.0, 0.3))):
        times = cstr.sample_times(at_once)
        assert (times["y_C"][0], times["y_T"][0]) == first
        assert (times["y_C"].size, times["y_T"].size) == (64, 213)


def test_paths_of_the_drift_are_estimated() -> None:
    """Fig. 4.26: the estimated drift has the shape of the true one; its level trades off against k_ref."""
    one = nonlinear._OneDataSet(nonlinear.DRIFTING, seed=2)
    t, true = one._true("d")
    band = state_band(one.fit, "d")
    path = np.interp(t, band["time"].values, band.sel(statistic="mean").values)
    assert one.fit.converged
    assert np.corrcoef(path, true)[0, 1] > 0.5
    assert one._share_inside("T") > 0.85


def test_temperature_alone_determines_all_four_parameters() -> None:
    data = cstr.simulate_experiment(5, outputs=("y_T",))
    method = nonlinear.spline_method(("C_A", "T"))
    fit = gr.fit(cstr.Reactor(), data, list(cstr.TRUE), method, guess=cstr.halved_guess(), progress=False)
    assert fit.converged
    both = gr.fit(cstr.Reactor(), cstr.simulate_experiment(5), list(cstr.TRUE), method, guess=cstr.halved_guess())
    assert fit["k_ref"].std_error > 1.2 * both["k_ref"].std_error


def test_unknown_intensities_are_printed_beside_the_published(monkeypatch) -> None:
    monkeypatch.setattr(intensity, "_times", lambda *_: [])
    found = _run("intensity", data_sets=1)
    assert found["converged"].ours == "1 of 1 | 1 of 1"
    assert found["Q_p1: median of Q̂/Q"].published == "0.61 | 0.75"
    for cell in str(found["Q_p2: median of Q̂/Q"].ours).split(" | "):
        assert 0.4 < float(cell) < 2.5


def test_weights_of_data_are_weights_of_the_model() -> None:
    """λ/λ_opt of 10 by data weights gives the estimates that Q/10 gives."""
    model = linear.LinearReactor()
    study = linear.level_studies(linear.LEVELS[0], 1, "small", None, "serial")["10 λ_opt"]
    data = study.data(0)[0].replace(weights={"y": 1.0})
    stiff = linear.LinearReactor(Q=linear.INTENSITY / 10)
    guess = {n: 0.5 * v for n, v in linear.TRUE.items()}
    fit = gr.fit(stiff, data, list(linear.TRUE), gr.Collocation(criterion="amle"), guess=guess, progress=False)
    assert study.estimates["k_ref"][0] == pytest.approx(fit["k_ref"], rel=1e-5)
    assert study.estimates["E_R"][0] == pytest.approx(fit["E_R"], rel=1e-5)
    other = gr.fit(model, data, list(linear.TRUE), gr.Collocation(criterion="amle"), guess=guess, progress=False)
    assert abs(other["E_R"] - fit["E_R"]) > 1.0


def test_splines_follow_what_a_simulation_cannot() -> None:
    exact = np.sin(np.pi * unstable.TIMES)
    assert np.abs(unstable.simulate()["x1"].values.reshape(-1) - exact).max() > 100
    fit = gr.fit(
        unstable.Unstable(),
        unstable.record(0),
        unstable.UNKNOWNS,
        gr.Collocation(criterion="amle"),
        guess=unstable.GUESS,
    )
    assert fit.converged
    assert abs(fit["p"] - np.pi) < 4 * fit["p"].std_error < 0.02
    assert np.abs(unstable.trajectory(fit) - exact).max() < 3 * unstable.NOISE


def test_fits_that_do_not_converge_are_named_with_their_seeds() -> None:
    study = _pretended({"b": [0.4, 0.6]}, {"b": 0.5}, {"b": 0.1})
    study.table["converged"] = [True, False]
    told = endings({"AMLE": _Sized(study)})
    assert told == ["AMLE: 1 of 2 fits did not converge (seeds 1)."]


class _Sized:
    """A pretended study that has a length."""

    def __init__(self, study) -> None:
        self.table = study.table

    def __len__(self) -> int:
        return len(self.table)
