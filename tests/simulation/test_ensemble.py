"""Ensembles: paths bit by bit, independence of how they are made, statistics against theory, derivatives, failures."""

from __future__ import annotations

import signal
import time
import weakref
from dataclasses import replace

import numpy as np
import pytest
from zoo.mechanics import Pendulum

import grisaille as gr
from grisaille import der
from grisaille.disturbance import Purpose, build_process, discretize, multiply, sample_path
from grisaille.errors import DataError, ModelError, SimulationError
from grisaille.simulation import pose
from grisaille.simulation.ensembles import EnsembleOptions, make_grid, run_ensemble

TIMES = np.linspace(0, 1, 11)
PENDULUM = {"inputs": {"u": 0.5}, "step": 0.02, "seed": 3}


class Driven(gr.Model):
    """x' = −a x + c w², w low-pass noise; everything about w is a parameter."""

    a, b, c, s = gr.Parameter(0.7), gr.Parameter(2.0), gr.Parameter(1.5), gr.Parameter(0.8)
    x = gr.Variable(0.5)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=b), scale=s)
    y = gr.Output(3 * x, noise=0.1 + 0.2 * abs(x))
    equations = [der(x) == -a * x + c * w**2]


class Linear(gr.Model):
    """x' = −a x + w."""

    a, b = gr.Parameter(0.7), gr.Parameter(2.0)
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=b), scale=0.8)
    equations = [der(x) == -a * x + w]


def pendulum(**changes):
    return gr.simulate(Pendulum(), TIMES, **(PENDULUM | {"realizations": 7} | changes))


def test_the_disturbance_is_the_sampled_path_to_the_last_bit():
    run = pendulum()
    assert run.w.dims == ("realization", "time") and run.attrs["completed"] == 1
    process = build_process(["w"], [gr.spectra.resonance(frequency=4.0, damping=0.1)], [0.6])
    grid = make_grid(TIMES, np.zeros(0), 0.02)
    states = sample_path(process, grid.points, 3, 7)[:, grid.kept]
    np.testing.assert_array_equal(run.w, multiply(process.C, states)[..., 0])


def test_nothing_depends_on_threads_or_on_the_number_of_realizations():
    many, few = pendulum(realizations=70, threads=2), pendulum(realizations=3, threads=1)
    for name in many:
        np.testing.assert_array_equal(many[name][:3], few[name])
    one, two = (pendulum(realizations=70, reduce=["mean", "variance"], threads=n) for n in (1, 2))
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])


def test_innovations_are_common_to_all_parameter_values():
    given = {"realizations": 4, "step": 0.1}
    plain, louder = (gr.simulate(Driven(), TIMES, parameters={"s": s}, **given) for s in (0.8, 1.6))
    np.testing.assert_array_equal(louder.w, 2 * plain.w)
    scaled = gr.simulate(Driven(), TIMES, parameters={"scale(w)": 1.6}, **given)
    np.testing.assert_array_equal(scaled.x, louder.x)
    other = gr.simulate(Driven(), TIMES, seed=1, **given)
    assert np.abs(other.w - plain.w).min() > 1e-6


def test_antithetic_pairs_mirror_each_other():
    given = {"realizations": 6, "step": 0.1}
    run = gr.simulate(Linear(), TIMES, antithetic=True, **given)
    np.testing.assert_array_equal(run.w[1::2], -run.w[::2])
    np.testing.assert_allclose(run.x[1::2], -run.x[::2], rtol=1e-12)
    np.testing.assert_array_equal(run.w[::2], gr.simulate(Linear(), TIMES, **given).w[::2])


def test_statistics_are_those_of_the_trajectories():
    kept = pendulum(realizations=70)
    found = pendulum(realizations=70, reduce=["mean", "variance", "quantiles"])
    mean = pendulum(realizations=70, reduce="mean")
    assert set(mean.phi.dims) == {"time"} and mean.attrs["reduce"] == "mean"
    levels = found["quantile"].values
    for name in ("phi", "tension", "w"):
        size = float(np.abs(kept[name]).max())
        np.testing.assert_allclose(mean[name], kept[name].mean("realization"), atol=1e-14 * size)
        np.testing.assert_array_equal(found[f"{name}_mean"], mean[name])
        variance = kept[name].var("realization", ddof=1)
        np.testing.assert_allclose(found[f"{name}_variance"], variance, rtol=1e-9, atol=1e-14 * size**2)
        np.testing.assert_array_equal(found[f"{name}_quantile"], np.quantile(kept[name], levels, axis=0))


def test_quantiles_in_slabs_are_the_same(monkeypatch):
    given = {"realizations": 20, "reduce": ["variance", "quantiles"]}
    whole = pendulum(**given)
    monkeypatch.setattr("grisaille.simulation.ensembles.ensemble.MAX_NUMBERS_IN_MEMORY", 20 * 8 * 3)
    for between in ("linear", "spline"):
        slabs = pendulum(**given, between=between)
        expected = whole if between == "linear" else None
        if expected is None:
            monkeypatch.undo()
            expected = pendulum(**given, between=between)
        for name in expected:
            np.testing.assert_array_equal(slabs[name], expected[name])


def test_mean_and_variance_of_a_linear_model_agree_with_theory():
    """dP/dt = A P + P Aᵀ + W for the model with its filter; margins are five Monte Carlo deviations."""
    times, count = np.array([0.0, 0.3, 1.0, 3.0]), 3000
    run = gr.simulate(Linear(), times, start={"x": 1.0}, realizations=count, reduce=["mean", "variance"])
    A = np.array([[-0.7, 0.8], [0.0, -2.0]])
    W, start = np.diag([0.0, 4.0]), np.diag([0.0, 1.0])
    exact = []
    for t in times:
        F, Q = discretize(A, W, t)
        exact.append((F @ start @ F.T + Q)[0, 0])
    deviation = np.sqrt(exact)
    assert np.all(np.abs(run.x_mean - np.exp(-0.7 * times)) <= 5 * deviation / np.sqrt(count) + 1e-6)
    assert np.all(np.abs(run.x_variance - exact) <= 5 * np.sqrt(2 / count) * np.array(exact) + 1e-6)


class Rigid(gr.Model):
    """Two bodies held together, written with the force between them: index 3."""

    x1, v1 = gr.Variable(0.2), gr.Variable(0.0)
    x2, v2, f = gr.Variable(), gr.Variable(), gr.Variable()
    w = gr.Disturbance(gr.spectra.resonance(frequency=3.0, damping=0.2), scale=2.0)
    equations = [
        der(x1) == v1,
        der(x2) == v2,
        2 * der(v1) == -5 * x1 - 0.4 * v1 + f + w,
        3 * der(v2) == -f,
        x1 == x2,
    ]


class OneBody(gr.Model):
    """The same as an ordinary differential equation."""

    x1, v1 = gr.Variable(0.2), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.resonance(frequency=3.0, damping=0.2), scale=2.0)
    equations = [der(x1) == v1, 5 * der(v1) == -5 * x1 - 0.4 * v1 + w]


class Moving(gr.Model):
    """Two bodies whose distance is a disturbance, differentiated twice; their centre of mass starts at rest."""

    x1, v1, x2, v2, f = (gr.Variable() for _ in range(5))
    centre, drift = gr.Variable(0.0, fixed=True), gr.Variable(0.0, fixed=True)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=4.0, order=3), scale=0.5)
    equations = [
        der(x1) == v1,
        der(x2) == v2,
        2 * der(v1) == -5 * x1 + f,
        3 * der(v2) == -f,
        x2 == x1 + w,
        centre == (2 * x1 + 3 * x2) / 5,
        drift == (2 * v1 + 3 * v2) / 5,
    ]


class Centre(gr.Model):
    """Its centre of mass, which knows the disturbance itself only."""

    centre, drift = gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=4.0, order=3), scale=0.5)
    equations = [der(centre) == drift, 5 * der(drift) == -5 * (centre - 0.6 * w)]


def test_paths_are_the_same_before_and_after_index_reduction():
    given = {"realizations": 5, "step": 0.05, "rtol": 1e-9}
    reduced, plain = (gr.simulate(m(), TIMES, **given) for m in (Rigid, OneBody))
    assert reduced.attrs["index"] == 3 and plain.attrs["index"] == 0
    np.testing.assert_array_equal(reduced.w, plain.w)
    np.testing.assert_allclose(reduced.x1, plain.x1, atol=1e-9)
    np.testing.assert_allclose(reduced.x2, plain.x1, atol=1e-9)


def test_a_differentiated_disturbance_gives_the_same_paths_as_the_grid_is_refined():
    differences = []
    for step in (0.1, 0.05, 0.025):
        given = {"realizations": 4, "step": step}
        moving, centre = (gr.simulate(m(), np.linspace(0, 2, 5), **given) for m in (Moving, Centre))
        np.testing.assert_array_equal(moving.w, centre.w)
        np.testing.assert_allclose(moving.x2 - moving.x1, moving.w, atol=1e-12)
        differences.append(float(np.abs(moving.centre - centre.centre).max()))
    assert differences[0] < 5e-3 and differences[2] < differences[0] / 8
    with pytest.raises(DataError, match="Index reduction differentiates a disturbance"):
        gr.simulate(Moving(), TIMES, between="spline", **given)


def test_starts_that_depend_on_the_disturbance_are_differentiated_too():
    given = {"realizations": 3, "step": 0.1, "sensitivities": ["scale(w)"]}
    found = gr.simulate(Moving(), TIMES, **given)
    ends = [gr.simulate(Moving(), TIMES, parameters={"scale(w)": 0.5 + e}, **given) for e in (1e-4, -1e-4)]
    for name in ("x1", "v2", "f"):
        difference = (ends[0][name] - ends[1][name]) / 2e-4
        np.testing.assert_allclose(found[f"d({name})"][..., 0], difference, atol=1e-7)


NAMES = ["a", "b", "c", "s", "scale(w)", "start(x)"]


def test_sensitivities_of_mean_and_variance():
    given = {"realizations": 33, "step": 0.05, "rtol": 1e-4, "reduce": ["mean", "variance"]}
    found = gr.simulate(Driven(), TIMES, sensitivities=NAMES, **given)
    assert found["d(x_mean)"].dims == ("time", "parameter")
    values = {"a": 0.7, "b": 2.0, "c": 1.5, "s": 0.8, "scale(w)": 0.8, "start(x)": 0.5}
    for k, name in enumerate(NAMES):
        kind = "start" if name == "start(x)" else "parameters"
        key = "x" if name == "start(x)" else name
        ends = [gr.simulate(Driven(), TIMES, **{kind: {key: values[name] + e}}, **given) for e in (1e-5, -1e-5)]
        for variable in ("x_mean", "x_variance", "y_mean", "w_variance"):
            difference = (ends[0][variable] - ends[1][variable]) / 2e-5
            np.testing.assert_allclose(
                found[f"d({variable})"][:, k], difference, atol=1e-7, err_msg=f"{variable} {name}"
            )


def test_times_and_inputs_need_not_be_regular():
    class Fed(Linear):
        u = gr.Input()
        x2 = gr.Variable(0.0)

        def equations(self):
            yield from super().equations()
            yield der(self.x2) == self.u

    times = np.array([0.0, 0.13, 0.5, 0.51, 1.7])
    held = (np.array([0.0, 0.3, 1.0]), np.array([1.0, -2.0, 4.0]))
    run = gr.simulate(Fed(), times, inputs={"u": held}, realizations=3, step=0.1)
    exact = np.interp(times, [0, 0.3, 1.0, 1.7], [0, 0.3, 0.3 - 1.4, -1.1 + 2.8])
    np.testing.assert_allclose(run.x2, np.broadcast_to(exact, (3, 5)), atol=1e-13)
    np.testing.assert_array_equal(run.u[0], [1, 1, -2, -2, 4])
    grid = make_grid(times, held[0][1:], 0.1)
    process = build_process(["w"], [gr.spectra.lowpass(bandwidth=2.0)], [0.8])
    np.testing.assert_array_equal(run.w, sample_path(process, grid.points, 0, 3)[:, grid.kept] @ process.C[0])


def test_correlated_disturbances_and_vectors():
    class Pair(gr.Model):
        r = gr.Parameter(0.6)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=3.0), size=2, correlation=[[1, r], [r, 1]])
        e = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0))
        x = gr.Variable(0.0)
        equations = [der(x) == w[0] - w[1] + e]

    given = {"realizations": 4000, "step": 0.5, "reduce": ["mean"]}
    times = np.array([0.0, 0.5])
    kept = gr.simulate(Pair(), times, **(given | {"reduce": None, "rtol": 1e-2}))
    last = kept.isel(time=-1)
    found = np.corrcoef([last["w[0]"], last["w[1]"], last.e])
    np.testing.assert_allclose(found, [[1, 0.6, 0], [0.6, 1, 0], [0, 0, 1]], atol=5 / np.sqrt(4000))
    slope = gr.simulate(Pair(), times, sensitivities=["r"], **(given | {"realizations": 40, "reduce": "variance"}))
    ends = [
        gr.simulate(Pair(), times, parameters={"r": 0.6 + e}, **(given | {"realizations": 40, "reduce": "variance"}))
        for e in (1e-5, -1e-5)
    ]
    np.testing.assert_allclose(slope["d(x)"][:, 0], (ends[0].x - ends[1].x) / 2e-5, atol=1e-7)


class Explosive(gr.Model):
    x = gr.Variable(0.4)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=1.5)
    equations = [der(x) == x**2 + w - 0.5]


def test_realizations_that_blow_up_are_reported_and_never_averaged():
    times = np.linspace(0, 3, 31)
    given = {"realizations": 40, "step": 0.1, "rtol": 1e-2}
    with pytest.raises(SimulationError, match=r"of 40 realizations became infinite.*strict=False") as caught:
        gr.simulate(Explosive(), times, **given)
    kept = caught.value.partial
    bad = kept.attrs["failed_realizations"]
    assert 0 < bad.size < 40 and kept.attrs["completed"] == 0
    good = np.setdiff1d(np.arange(40), bad)
    assert np.isfinite(kept.x[good]).all() and np.isnan(kept.x[bad, -1]).all()
    with pytest.warns(UserWarning, match="left out of the statistics"):
        found = gr.simulate(Explosive(), times, strict=False, reduce=["mean", "quantiles"], **given)
    np.testing.assert_array_equal(found.attrs["failed_realizations"], bad)
    np.testing.assert_allclose(found.x_mean, kept.x[good].mean("realization"), rtol=1e-12)
    np.testing.assert_array_equal(found.x_quantile[2], np.quantile(kept.x[good], 0.5, axis=0))


class Loop(gr.Model):
    """An algebraic equation that must be solved in every step."""

    b = gr.Parameter(2.0)
    x, z = gr.Variable(1.0), gr.Variable(0.5)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=b), scale=0.4)
    equations = [der(x) == -z, z + 0.1 * z**3 == x + w]


def test_implicit_models_see_the_same_paths_and_give_exact_derivatives():
    given = {"realizations": 3, "step": 0.1, "rtol": 1e-7}
    times = np.linspace(0, 0.5, 3)
    run = gr.simulate(Loop(), times, sensitivities=["b", "scale(w)"], **given)
    process = build_process(["w"], [gr.spectra.lowpass(bandwidth=2.0)], [0.4])
    grid = make_grid(times, np.zeros(0), 0.1)
    np.testing.assert_allclose(run.w, sample_path(process, grid.points, 0, 3)[:, grid.kept] @ process.C[0], rtol=1e-14)
    np.testing.assert_allclose(run.z + 0.1 * run.z**3, run.x + run.w, atol=1e-9)
    for k, (name, value) in enumerate({"b": 2.0, "scale(w)": 0.4}.items()):
        ends = [gr.simulate(Loop(), times, parameters={name: value + e}, **given) for e in (1e-4, -1e-4)]
        difference = (ends[0].x - ends[1].x) / 2e-4
        np.testing.assert_allclose(run["d(x)"][..., k], difference, atol=1e-6)
    mean = gr.simulate(Loop(), times, reduce="mean", **given)
    np.testing.assert_allclose(mean.x, run.x.mean("realization"), rtol=1e-12)


def test_fused_and_implicit_engines_agree():
    given = {"realizations": 2, "step": 0.1, "rtol": 1e-8}
    fused, implicit = (gr.simulate(Driven(), TIMES[:6], method=m, **given) for m in ("auto", "frozen-implicit"))
    assert "implicit" in implicit.attrs["solver"] and "fused" in fused.attrs["solver"]
    np.testing.assert_allclose(implicit.x, fused.x, rtol=1e-6)
    np.testing.assert_allclose(implicit.w, fused.w, rtol=1e-14)


def test_models_without_derivatives():
    class Formula(gr.Model):
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=2.0)
        y = gr.Variable()
        equations = [y == 3 * w + gr.time]

    class Iterated(Formula):
        z = gr.Variable(0.5)

        def equations(self):
            yield from super().equations()
            yield self.z + self.z**3 == self.w

    run = gr.simulate(Formula(), TIMES, realizations=3, sensitivities=["scale(w)"])
    np.testing.assert_allclose(run.y, 3 * run.w + TIMES, rtol=1e-14)
    np.testing.assert_allclose(run["d(y)"][..., 0], 1.5 * run.w, rtol=1e-12)
    with pytest.raises(ModelError, match="z must be found by iteration"):
        gr.simulate(Iterated(), TIMES, realizations=3)


def test_stiff_models_go_to_the_implicit_method():
    class Stiff(gr.Model):
        x, y = gr.Variable(0.0), gr.Variable(0.0)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0))
        equations = [der(x) == -x + w, der(y) == -1e5 * (y - x)]

    run = gr.simulate(Stiff(), [0.0, 0.1, 0.2], realizations=2, step=0.1, rtol=1e-4)
    assert "implicit" in run.attrs["solver"]
    np.testing.assert_allclose(run.y, run.x, atol=1e-3)


@pytest.mark.parametrize("between", ["spline", "exact"])
def test_between_grid_points(between):
    """All meet on the grid; between its points they differ by what the grid leaves open, which shrinks with it."""
    given = {"realizations": 3}
    for model, ratio in ((Linear, 0.8 if between == "exact" else 0.9),):
        gaps = []
        for step in (0.1, 0.025):
            one, other = (gr.simulate(model(), TIMES, step=step, between=b, **given) for b in ("linear", between))
            np.testing.assert_array_equal(one.w, other.w)
            gaps.append(float(np.abs(one.x - other.x).max()))
        assert 1e-5 < gaps[0] < 0.05 and gaps[1] < ratio * gaps[0]


def test_other_output_times_see_the_same_exact_paths():
    """Refined, uneven, longer: common instants agree, w to rounding and x to what the steps in between leave."""
    fine = np.linspace(0, 1, 41)
    others = {"refined": fine, "uneven": np.sort([*TIMES, 0.03, 0.371, 0.86]), "longer": np.append(TIMES, [1.5, 2.0])}
    given = {"realizations": 3, "between": "exact", "rtol": 1e-5, "step": 0.1}
    coarse = gr.simulate(Linear(), TIMES, **given)
    for name, times in others.items():
        run = gr.simulate(Linear(), times, **given)
        common = [int(np.abs(times - t).argmin()) for t in TIMES]
        np.testing.assert_allclose(run.w[:, common], coarse.w, rtol=1e-9, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(run.x[:, common], coarse.x, atol=2e-3, err_msg=name)
    between = gr.simulate(Linear(), fine, **given).w
    again = gr.simulate(Linear(), fine[::2], **given).w
    np.testing.assert_allclose(between[:, ::2], again, rtol=1e-9, atol=1e-9)


def test_the_default_lattice_does_not_depend_on_output_times():
    given = {"realizations": 2, "between": "exact", "rtol": 1e-3}
    coarse, fine = (gr.simulate(Linear(), np.linspace(0, 1, n), **given) for n in (3, 9))
    np.testing.assert_allclose(fine.w[:, ::4], coarse.w, rtol=1e-9, atol=1e-9)


def test_vectors_at_instants_between_points_keep_their_covariance():
    """Output times inside the cells of a coarse lattice: cov w(t)w(s)ᵀ = D Dᵀ (b/2) e^{−b|t − s|}."""

    class Pair(gr.Model):
        w = gr.Disturbance(gr.spectra.lowpass(2.0), size=2, scale=[1.0, 2.0], correlation=[[1, 0.7], [0.7, 1]])
        x = gr.Variable(0.0)
        equations = [der(x) == w[0] + w[1]]

    times, count = np.array([0.0, 0.13, 0.4, 0.77]), 3000
    run = gr.simulate(Pair(), times, between="exact", step=1.0, rtol=0.1, realizations=count)
    w = np.concatenate([run["w[0]"], run["w[1]"]], axis=1)
    theory = np.kron([[1, 1.4], [1.4, 4]], np.exp(-2 * np.abs(times[:, None] - times)))
    size = np.sqrt((np.outer(np.diag(theory), np.diag(theory)) + theory**2) / count)
    assert np.all(np.abs(w.T @ w / count - theory) < 5 * size)


def test_exact_paths_between_points_have_the_variance_of_the_process():
    """One cell of 1 s, cut into short steps: the integral of w over the cell, against theory."""
    given = {"step": 1.0, "rtol": 1e-3, "realizations": 2000, "reduce": "variance", "parameters": {"a": 1e-6, "b": 4.0}}
    exact, linear = (gr.simulate(Linear(), [0.0, 1.0], between=b, **given) for b in ("exact", "linear"))
    b, variance, e = 4.0, 0.64 * 4 / 2, np.exp(-4)
    theory, trapezoidal = 2 * variance / b**2 * (b - 1 + e), variance * (1 + e) / 2
    relative = 5 * np.sqrt(2 / 2000)
    assert abs(float(exact.x[-1]) - theory) < relative * theory
    assert abs(float(linear.x[-1]) - trapezoidal) < relative * trapezoidal < trapezoidal - theory


def test_white_noise_is_stepped_with_its_own_increments():
    class Ornstein(gr.Model):
        a, s = gr.Parameter(1.0), gr.Parameter(0.5)
        x = gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.white(), scale=s)
        equations = [der(x) == -a * x + w]

    given = {"realizations": 2000, "reduce": ["mean", "variance"], "step": 0.05}
    run = gr.simulate(Ornstein(), [0.0, 1.0], sensitivities=["s", "scale(w)"], **given)
    variance = 0.125 * (1 - np.exp(-2))
    assert "Itô" in run.attrs["white_noise"] and "w_mean" not in run
    assert abs(float(run.x_mean[-1]) - np.exp(-1)) < 5 * np.sqrt(variance / 2000)
    assert abs(float(run.x_variance[-1]) - variance) < 5 * np.sqrt(2 / 2000) * variance
    np.testing.assert_allclose(run["d(x_variance)"][-1], 4 * run.x_variance[-1], rtol=1e-10)


def test_two_white_noises_with_two_normals_each():
    class Two(gr.Model):
        x, y = gr.Variable(0.0), gr.Variable(0.0)
        v = gr.Disturbance(gr.spectra.white(), scale=2.0)
        w = gr.Disturbance(gr.spectra.white(), size=2, correlation=[[1.0, 0.5], [0.5, 1.0]])
        equations = [der(x) == v, der(y) == w[0] + w[1]]

    run = gr.simulate(Two(), [0.0, 1.0], realizations=4000, step=0.5)
    found = np.cov(run.x[:, -1], run.y[:, -1])
    np.testing.assert_allclose(found, [[4, 0], [0, 3]], atol=5 * np.sqrt(2 / 4000) * 4)


def test_measurement_noise():
    given = {"realizations": 300, "step": 0.1, "rtol": 1e-3}
    clean, noisy = (gr.simulate(Driven(), TIMES, noise=n, **given) for n in (False, True))
    np.testing.assert_array_equal(clean.x, noisy.x)
    z = (noisy.y - clean.y) / (0.1 + 0.2 * np.abs(clean.x))
    assert abs(float(z.std()) - 1) < 5 / np.sqrt(2 * z.size) and abs(float(z.mean())) < 5 / np.sqrt(z.size)
    few = gr.simulate(Driven(), TIMES, noise=True, **(given | {"realizations": 2}))
    np.testing.assert_array_equal(few.y, noisy.y[:2])
    alone = gr.simulate(Driven(), TIMES, noise=True)
    quiet = gr.simulate(Driven(), TIMES)
    np.testing.assert_allclose((alone.y - quiet.y) / (0.1 + 0.2 * np.abs(quiet.x)), z[0], rtol=1e-6)


def test_correlated_measurement_noise():
    class Tied(gr.Model):
        x = gr.Variable(1.0)
        y1, y2 = gr.Output(x, noise=2.0), gr.Output(x, noise=1.0)
        equations = [der(x) == 0 * x]

        def noise_covariance(self):
            return {("y1", "y2"): 1.6}

    run = gr.simulate(Tied(), np.linspace(0, 1, 4001), noise=True)
    np.testing.assert_allclose(np.cov(run.y1, run.y2), [[4, 1.6], [1.6, 1]], atol=5 * np.sqrt(2 / 4001) * 4)


def test_an_ensemble_can_be_interrupted(monkeypatch):
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    posed = pose(Driven(), TIMES, None, None, None, hold=None, sensitivities=())
    with pytest.raises(KeyboardInterrupt):
        run_ensemble(posed, EnsembleOptions(4, reduce="mean", step=0.1), stop)


def test_only_what_is_asked_for_is_kept():
    posed = pose(Driven(), TIMES, None, None, None, hold=None, sensitivities=())
    options = EnsembleOptions(3, step=0.1, observed=("y", "x"), substeps=2)
    found = run_ensemble(posed, options)
    assert found.names == ("y", "x") and found.y.shape == (3, 11, 2)
    np.testing.assert_array_equal(found.y[..., 0], 3 * found.y[..., 1])
    with pytest.raises(DataError, match="'v' has no value"):
        run_ensemble(posed, replace(options, observed=("v",)))


def test_model_and_data_use_different_numbers():
    posed = pose(Linear(), TIMES, None, None, None, hold=None, sensitivities=())
    options = EnsembleOptions(2, step=0.1)
    data, model = (
        run_ensemble(posed, EnsembleOptions(2, step=0.1, purpose=p)).y for p in Purpose if p in ("data", "model")
    )
    np.testing.assert_array_equal(run_ensemble(posed, options).y, data)
    assert np.abs(data - model)[..., 1].min() > 1e-9


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"realizations": 0}, gr.GrisailleError, "realizations is 0"),
        ({"realizations": 2.5}, gr.GrisailleError, "whole number"),
        ({"reduce": "median"}, DataError, "'mean', 'variance', 'quantiles'"),
        ({"reduce": "mean", "realizations": None}, DataError, "give realizations="),
        ({"reduce": "variance", "realizations": 1}, DataError, "at least two realizations"),
        ({"between": "cubic"}, gr.GrisailleError, "'linear', 'spline' or 'exact'"),
        ({"method": "explicit"}, DataError, "fixed steps"),
        ({"method": "milstein"}, DataError, "white noise"),
        ({"step": -1.0}, DataError, "step is -1.0"),
        ({"seed": -3}, gr.GrisailleError, "seed"),
        ({"noise": True, "reduce": "mean"}, DataError, "measurement noise"),
        ({"parameters": {"scale(v)": 1.0}}, ModelError, "no disturbance 'v'"),
        ({"sensitivities": ["scale(v)"]}, ModelError, "scale"),
        ({"sensitivities": ["b"], "between": "exact"}, DataError, "between='linear'"),
        ({"parameters": {"b": -1.0}}, ModelError, "no stationary distribution"),
    ],
)
def test_wrong_arguments_are_refused(wrong, error, words):
    given = {"realizations": 2, "step": 0.1} | wrong
    with pytest.raises(error, match=words):
        gr.simulate(Driven(), TIMES, **given)


def test_unknown_noise_is_refused_by_name():
    class Unknown(Linear):
        y = gr.Output(Linear.x)

    with pytest.raises(DataError, match="output y has no known noise"):
        gr.simulate(Unknown(), TIMES, realizations=2, noise=True, step=0.1)


def test_progress_counts_to_the_last_realization(monkeypatch, capsys):
    from rich.progress import Progress

    seen = []
    update = Progress.update
    monkeypatch.setattr(
        Progress, "update", lambda self, *a, **k: (seen.append(k.get("completed")), update(self, *a, **k))[1]
    )
    given = {"realizations": 70, "step": 0.1, "rtol": 1e-2, "reduce": "mean"}
    shown = gr.simulate(Driven(), TIMES, progress=True, **given)
    assert seen[-1] == 70 and seen == sorted(seen)
    capsys.readouterr()
    seen.clear()
    np.testing.assert_array_equal(gr.simulate(Driven(), TIMES, **given).x, shown.x)
    assert capsys.readouterr().out == "" and not seen


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that interrupts")
@pytest.mark.parametrize("dropped", [False, True])
def test_ctrl_c_ends_a_compiled_ensemble(dropped):
    """A minute of work, interrupted after a third of a second, ends when the blocks at work are done, also where
    Python drops the interruption, in a callback of a weak reference."""

    def press(*_: object) -> None:
        raise KeyboardInterrupt

    def press_in_a_callback(*_: object) -> None:
        thing = Linear()
        reference = weakref.ref(thing, press)
        del thing
        assert reference() is None

    given = {"step": 1e-3, "rtol": 1e-1, "reduce": "mean"}
    gr.simulate(Linear(), [0.0, 0.1], realizations=2, **given)
    before = signal.signal(signal.SIGALRM, press_in_a_callback if dropped else press)
    begin = time.process_time()  # that of all threads
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            gr.simulate(Linear(), [0.0, 10.0], realizations=1_000_000, **given)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - begin < 10
