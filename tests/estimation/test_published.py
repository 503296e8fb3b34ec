"""Measured data with published estimates, and certified regression sets as differential equations.

Expected values were recomputed with independent integrators and optimizers; what was published stands beside them.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from zoo.published import (
    DYNAMIC,
    GasOil,
    InversePositioningSystem,
    LynxHare,
    Pinene,
    PositioningSystem,
    Reactor,
    dynamic_regression,
)

import grisaille as gr

PRECISE = gr.OutputError(rtol=1e-10)
RATES = ["alpha", "beta", "gamma", "delta", "start(u)", "start(v)"]


def columns(path: Path) -> dict[str, np.ndarray]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def scaled_errors(fit: gr.Fit) -> np.ndarray:
    """Standard errors for one noise level common to all outputs, estimated from the sum of squares."""
    return fit.std_errors * np.sqrt(2 * fit.objective / fit.estimate.degrees_of_freedom)


def test_gas_oil(reference_data: Path) -> None:
    """COPS: sum of squares 5.2366e-3. PSOPT: (11.847, 8.344, 1.001), correlations 0.786, −0.844, −0.870."""
    data = gr.Experiment.from_csv(reference_data / "cops_gasoil" / "data.csv", "t", outputs=["y1", "y2"])
    fit = gr.fit(GasOil(), data, ["th1", "th2", "th3"], PRECISE)
    assert fit.converged
    # an earlier recomputation stopped at 0.005236596486, two thousandths of a standard error from the minimum
    assert 2 * fit.objective == pytest.approx(0.00523659583390, rel=1e-8)
    assert np.allclose(fit.estimate.theta, [11.84673838, 8.34451950, 1.00143997], rtol=1e-6)
    assert np.allclose(fit.estimate.theta, [11.84609719, 8.34392401, 1.00220733], atol=0.003 * scaled_errors(fit).min())
    assert np.allclose(scaled_errors(fit), [0.32671, 0.30789, 0.34950], rtol=1e-3)
    r = fit.correlation.to_numpy()
    assert np.allclose([r[0, 1], r[0, 2], r[1, 2]], [0.786, -0.844, -0.870], atol=6e-4)


def test_pinene(reference_data: Path) -> None:
    """COPS: 19.8721; literature: 1e-5 (5.926, 2.963, 2.047, 27.45, 3.998) per minute."""
    data = gr.Experiment.from_csv(
        reference_data / "cops_pinene" / "data.csv", "t", outputs=[f"y{k}" for k in range(1, 6)], t0=0.0, unit="min"
    )
    fit = gr.fit(Pinene(), data, method=PRECISE)
    assert fit.converged
    assert 2 * fit.objective == pytest.approx(19.872166934, rel=1e-9)
    found = 1e5 * fit.estimate.theta
    assert np.allclose(found, [5.92584875, 2.96340208, 2.04728442, 27.4467884, 3.99794789], rtol=1e-6)


def test_reactor_in_steady_state(reference_data: Path) -> None:
    """Parmest: noise-free rows give 5/6, 5/3, 1/6000 to 4, 4 and 7 decimals."""
    folder = reference_data / "parmest_reactor_design"
    names = {"inputs": ["sv", "caf"], "outputs": ["ca", "cb", "cc", "cd"]}
    exact = gr.fit(Reactor(), gr.Experiment.from_csv(folder / "design_data_exact.csv", **names), ["k1", "k2", "k3"])
    assert np.abs(exact.estimate.theta - [5 / 6, 5 / 3, 1 / 6000]).max() < 5e-5
    assert abs(float(exact["k3"]) - 1 / 6000) < 5e-8
    fit = gr.fit(Reactor(), gr.Experiment.from_csv(folder / "reactor_data.csv", **names), ["k1", "k2", "k3"])
    assert fit.converged
    assert 2 * fit.objective == pytest.approx(1373232.852, rel=1e-9)
    assert np.allclose(fit.estimate.theta, [0.860669113, 1.62720497, 1.68058255e-4], rtol=1e-8)
    assert np.allclose(scaled_errors(fit), [0.0165282, 0.0623894, 3.72835e-6], rtol=1e-5)


def test_lynx_and_hare_by_least_squares(reference_data: Path) -> None:
    pelts = columns(reference_data / "lynx_hare" / "data.csv")
    data = gr.Experiment(pelts["year"], outputs={"hare": pelts["hare"], "lynx": pelts["lynx"]})
    fit = gr.fit(LynxHare(), data, RATES, PRECISE)
    assert fit.converged
    assert 2 * fit.objective == pytest.approx(594.744560756, rel=1e-8)
    expected = [0.481199035, 0.0248317607, 0.926018343, 0.0275329506, 34.9142874, 3.86186638]
    assert np.allclose(fit.estimate.theta, expected, rtol=1e-6)


def test_lynx_and_hare_with_logarithmic_errors(reference_data: Path) -> None:
    """Two unknown noise levels, found with the rest. Stan: posterior means 0.55, 0.028, 0.80, 0.024, both σ 0.25."""
    pelts = columns(reference_data / "lynx_hare" / "data.csv")
    logs = {f"log_{n}": np.log(pelts[n]) for n in ("hare", "lynx")}
    data = gr.Experiment(pelts["year"], outputs=logs)
    fit = gr.fit(LynxHare(), data, RATES, PRECISE)
    assert fit.converged
    expected = [0.540013949, 0.0271561153, 0.796598757, 0.0237020369, 34.5991561, 5.84373659]
    assert np.allclose(fit.estimate.theta, expected, rtol=1e-6)
    # of the pelts themselves: the logarithm's derivative is a constant of the likelihood
    assert fit.log_likelihood - sum(v.sum() for v in logs.values()) == pytest.approx(-122.925950586, abs=1e-7)
    # ours are divided by N minus the leverage of each output, six for both; those of maximum likelihood by N
    found = fit.quality["rms"].to_numpy()
    assert np.allclose(found, [0.21837965, 0.22008428], rtol=1e-6)
    noise = np.array([float(fit[f"noise({n})"]) for n in logs])
    assert np.sum(21 * (found / noise) ** 2) == pytest.approx(36, rel=1e-6)
    assert fit.parameters["guess"]["alpha"] == 0.5

    rates = {"alpha": gr.Normal(1, 0.5), "gamma": gr.Normal(1, 0.5), "beta": gr.Normal(0.05, 0.05)}
    priors = {**rates, "delta": gr.Normal(0.05, 0.05)}
    believed = data.replace(start={"u": gr.LogNormal(10, 1), "v": gr.LogNormal(10, 1)})
    mode = gr.fit(LynxHare(), believed, RATES[:4], PRECISE, priors=priors)
    assert mode.converged and mode.names == tuple(RATES)
    assert (np.abs(mode.estimate.theta[:4] - [0.55, 0.028, 0.80, 0.024]) < 0.2 * mode.std_errors[:4]).all()


LEAST_SQUARES = np.array([95.063, 202.995, 20.440, -3.181])
DEVIATIONS = np.array([0.153, 1.614, 0.143, 0.062])
"""Inverse-dynamics least squares at 40 Hz; published with another decimation: 95.1089, 203.5034, 20.3935, −3.1648."""


def test_positioning_system_by_its_inverse(reference_data: Path) -> None:
    """The position is differentiated twice by index reduction, from splines through the filtered record."""
    from scipy.signal import butter, filtfilt

    d = columns(reference_data / "sysid_emps" / "emps_train.csv")
    q, vir = (filtfilt(*butter(4, 100 / 500), d[n]) for n in ("qm", "vir"))
    kept = slice(50, -50, 25)
    data = gr.Experiment(d["t"][kept], {"position": (d["t"], q)}, {"vir": vir[kept]}, hold="spline")
    fit = gr.fit(InversePositioningSystem(), data, ["M", "Fv", "Fc", "offset"], gr.OutputError())
    assert fit.converged
    assert (np.abs(fit.estimate.theta - LEAST_SQUARES) < DEVIATIONS).all()
    assert np.allclose(fit.std_errors, DEVIATIONS, rtol=0.25)


@pytest.mark.slow
def test_positioning_system_in_closed_loop(reference_data: Path) -> None:
    """Simulated with its controllers from the reference alone; the voltage is compared."""
    d = {n: v[::10] for n, v in columns(reference_data / "sysid_emps" / "emps_train.csv").items()}
    data = gr.Experiment(d["t"], {"reference": d["qg"]}, {"vir": d["vir"]}, hold="spline")
    names = ["M", "Fv", "Fc", "offset", "tau", "kp", "kv", "start(q)", "start(v)"]
    fit = gr.fit(PositioningSystem(), data, names)
    assert fit.converged
    assert (np.abs(fit.estimate.theta[:4] - LEAST_SQUARES) < 3 * DEVIATIONS).all()


def experiments(name: str, folder: Path) -> list[gr.Experiment]:
    """Repeated predictors become repeated runs."""
    data = columns(folder / "nist_strd" / f"{name}.csv")
    order = np.argsort(data["x"], kind="stable")
    x, y = data["x"][order], data["y"][order]
    rank = np.arange(len(x)) - np.searchsorted(x, x)
    runs = [(x[rank == r], y[rank == r]) for r in range(rank.max() + 1)]
    return [gr.Experiment(t, outputs={"y": v}, t0=0.0, name=f"run {r}") for r, (t, v) in enumerate(runs)]


@pytest.mark.parametrize("start", ["start1", "start2"])
@pytest.mark.parametrize("name", DYNAMIC)
def test_certified_values_of_differential_equations(name: str, start: str, reference_data: Path) -> None:
    certified = json.loads((reference_data / "nist_strd" / "certified.json").read_text())[name]["parameters"]
    model = dynamic_regression(name, [p[start] for p in certified])
    fit = gr.fit(model, experiments(name, reference_data), list(model.parameters), gr.OutputError(rtol=1e-12))
    assert fit.converged
    if name == "MGH17" and fit.estimate.theta[3] > fit.estimate.theta[4]:  # its two exponentials may change places
        certified = [certified[k] for k in (0, 2, 1, 4, 3)]
    assert np.abs(fit.estimate.theta / [p["certified"] for p in certified] - 1).max() < 1e-7
    if name != "Lanczos1":
        assert np.abs(fit.std_errors / [p["std_dev"] for p in certified] - 1).max() < 1e-6


def test_start_of_a_dynamic_regression_is_free(reference_data: Path) -> None:
    """Rat42 without the formula of its start: y(0) is estimated instead of b2, b2 = log(b1 / y(0) − 1)."""

    class Logistic(gr.Model):
        b1, b3 = gr.Parameter(75.0), gr.Parameter(0.07)
        x = gr.Variable(5.0)
        y = gr.Output(x)
        equations = [gr.der(x) == b3 * x * (1 - x / b1)]

    certified = json.loads((reference_data / "nist_strd" / "certified.json").read_text())["Rat42"]["parameters"]
    method = gr.OutputError(rtol=1e-11)
    fit = gr.fit(Logistic(), experiments("Rat42", reference_data), ["b1", "b3", "start(x)"], method)
    b1, b3, x0 = fit.estimate.theta
    found = [b1, np.log(b1 / x0 - 1), b3]
    assert fit.converged
    assert np.abs(np.array(found) / [p["certified"] for p in certified] - 1).max() < 1e-7
