"""A law that the package does not know, as a prior: everywhere where one of its own can be."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

import grisaille as gr
from grisaille import der


@dataclass(frozen=True)
class Logistic(gr.laws.Law):
    """The logistic law."""

    mean: float
    scale: float

    def formula(self, value):
        z = (value - self.mean) / self.scale
        return -z - 2 * np.log1p(np.exp(-z)) - np.log(self.scale)


T = np.linspace(0.0, 1.0, 41)
DATA = gr.Experiment(T, outputs={"y": 0.9 * T + 0.5 * np.random.default_rng(1).standard_normal(41)})
LAW = Logistic(0.5, 0.05)


class Line(gr.Model):
    """What is measured rises with a slope."""

    k = gr.Parameter(0.6, prior=LAW)
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.05)
    y = gr.Output(x, noise=0.5)
    equations = [der(x) == k + w]


LINE = Line()
WHITE = Line(w=gr.Disturbance(gr.spectra.white(), scale=0.05))
METHODS = [
    (LINE, gr.OutputError()),
    (LINE, gr.KalmanML()),
    (LINE, gr.Collocation()),
    (LINE, gr.SimulatedPEM(realizations=20, seed=1, tolerance=1e-12)),
    (WHITE, gr.Collocation(criterion="amle")),
]


@pytest.mark.parametrize(("model", "method"), METHODS, ids=lambda x: type(x).__name__)
def test_every_estimator_maximises_it(model: gr.Model, method: object) -> None:
    fit = gr.fit(model, DATA, method=method, progress=False)
    free = gr.fit(model, DATA, ["k"], method, priors={"k": None}, progress=False)
    if isinstance(method, gr.SimulatedPEM):
        assert 0.5 < float(fit["k"]) < float(free["k"]) and fit.converged
        return
    curvature, k0 = 1 / free["k"].std_error ** 2, float(free["k"])
    k = brentq(lambda k: curvature * (k - k0) + np.tanh((k - 0.5) / 0.1) / 0.05, 0.4, 1.0, xtol=1e-13)
    assert float(fit["k"]) == pytest.approx(k, abs=1e-6 * fit["k"].std_error)
    bend = 1 / (2 * 0.05**2 * np.cosh((k - 0.5) / 0.1) ** 2)
    assert fit["k"].std_error == pytest.approx((curvature + bend) ** -0.5, rel=1e-4)


def test_it_is_printed_saved_loaded_profiled_and_drawn_from(tmp_path: Path) -> None:
    fit = gr.fit(LINE, DATA, method=gr.OutputError(), progress=False)
    assert "k = 0.6" in str(LINE) and "prior Logistic(mean=0.5, scale=0.05)" in str(LINE)
    assert str(fit) and fit.profile("k") is not None
    fit.save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    assert again.estimate.unknowns[0].prior == LAW and str(again) == str(fit)
    assert again.with_errors("robust")["k"].std_error == fit.with_errors("robust")["k"].std_error
    many = gr.multistart(LINE, DATA, method=fit.method, starts=2, progress=False, executor="serial")
    assert np.allclose(many.table["k"], float(fit["k"]), rtol=1e-6)
    runs = gr.monte_carlo(LINE, DATA, method=fit.method, runs=2, seed=1, progress=False, executor="serial")
    assert len(runs.table) == 2


def test_a_file_with_an_unknown_law_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = gr.fit(LINE, DATA, method=gr.OutputError(), progress=False)
    fit.save(tmp_path / "fit.nc")
    monkeypatch.delitem(gr.laws.Law.known, "Logistic")
    with pytest.raises(gr.GrisailleError, match=r"law Logistic.*import the module that defines it"):
        gr.load(tmp_path / "fit.nc")


def test_laws_inside_laws_and_starts_are_kept(tmp_path: Path) -> None:
    law = gr.laws.Truncated(0.1, None, gr.laws.Student(0.4, 3.0, 0.2))
    data = gr.Experiment(T, outputs={"y": DATA.outputs["y"].values}, start={"x": gr.laws.Laplace(0.0, 0.1)})
    fit = gr.fit(LINE, data, ["k"], gr.OutputError(), priors={"k": law}, progress=False)
    fit.save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    assert [u.prior for u in again.estimate.unknowns] == [law, gr.laws.Laplace(0.0, 0.1)]
    assert again.experiments[0].start == {"x": gr.laws.Laplace(0.0, 0.1)}


def test_it_is_short() -> None:
    assert len(inspect.getsource(Logistic).splitlines()) <= 40


def test_what_is_no_formula_is_refused_by_all_in_one_sentence() -> None:
    @dataclass(frozen=True)
    class Stepwise(gr.laws.Law):
        def formula(self, value):
            return 0.0 if value > 0 else -1.0

    with pytest.raises(gr.ModelError, match="log-density of Stepwise cannot be differentiated"):
        gr.fit(LINE, DATA, ["k"], gr.OutputError(), priors={"k": Stepwise()}, progress=False)
    gr.laws.Law.known.pop("Stepwise")
    with pytest.raises(gr.ModelError, match="There is a law called Normal"):
        type("Normal", (gr.laws.Law,), {"__module__": "mine"})
    with pytest.raises(gr.GrisailleError, match="give priors by name"):
        gr.fit(LINE, DATA, ["k"], priors={"k": "normal"})


def test_problem_folders_name_laws(tmp_path: Path) -> None:
    from grisaille.problem import make_prior

    assert make_prior({"kind": "gamma", "mean": 2.0, "shape": 3.0}) == gr.Gamma(2.0, 3.0)
    table = {"kind": "truncated", "below": 0.0, "of": {"kind": "student", "mean": 1.0, "df": 3.0, "scale": 0.5}}
    assert make_prior(table) == gr.laws.Truncated(0.0, None, gr.laws.Student(1.0, 3.0, 0.5))
    with pytest.raises(gr.DataError, match="a beta prior has mean and precision, got mean"):
        make_prior({"kind": "beta", "mean": 0.2})
