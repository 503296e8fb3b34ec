"""Unknown curves: vectors by name, the prior of smoothness, bands, files and reports."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimation.curves import bending_rows, surface_rows
from grisaille.estimators import build_problem
from grisaille.model import find_curves
from grisaille.structure import structure_of

KNOTS = [0.0, 1.0, 2.5, 4.0]
TRUTH = np.array([1.0, 2.0, 1.5, 3.0])
BY_HAND = gr.OutputError()


class Line(gr.Model):
    """A static curve: least squares in closed form."""

    F = gr.Parameter(0.0, size=4, unit="N")
    u = gr.Input("m")
    y = gr.Output(gr.table(u, KNOTS, F), noise=0.1, unit="N")


def samples(span=(0.0, 4.0)):
    u = np.linspace(*span, 60)
    return u, np.interp(u, KNOTS, TRUTH) + 0.1 * np.random.default_rng(1).standard_normal(60)


def record(span=(0.0, 4.0)):
    u, y = samples(span)
    return gr.Experiment(None, {"u": u}, {"y": y})


def hats(u):
    return np.array([np.interp(u, KNOTS, e) for e in np.eye(4)]).T


@pytest.fixture(scope="module")
def data():
    return record()


@pytest.fixture(scope="module")
def fitted(data):
    return gr.fit(Line(), data, ["F"], method=gr.OutputError())


def test_a_curve_is_the_least_squares_one_with_its_band(fitted):
    u, y = samples()
    X = hats(u) / 0.1
    C = np.linalg.inv(X.T @ X)
    curve = fitted.curve("F")
    assert curve.table["value"].to_numpy() == pytest.approx(C @ X.T @ (y / 0.1), abs=1e-8)
    assert curve.table["std_error"].to_numpy() == pytest.approx(np.sqrt(np.diag(C)), rel=1e-6)
    at = np.array([-1.0, 0.3, 2.5, 3.9, 6.0])
    errors = np.sqrt(np.einsum("ki,ij,kj->k", hats(at), C, hats(at)))
    rows = curve.at(at)
    assert rows["std_error"].to_numpy() == pytest.approx(errors, rel=1e-6)
    assert (rows["upper"] - rows["value"]).to_numpy() == pytest.approx(1.959964 * errors, rel=1e-5)
    assert curve.at(at, level=0.5)["upper"][0] < rows["upper"][0]
    assert curve.arguments == ("u",) and curve.units == ("m",) and curve.unit == "N" and not curve.notes
    assert list(curve.table.columns) == ["knot", "value", "std_error", "lower", "upper", "data"]
    assert "F(u), linear, hold outside, band 95 %" in str(curve)
    assert curve.plot().axes[0].get_xlabel() == "u [m]"


def test_a_curve_survives_a_file_and_stands_in_the_report(fitted, tmp_path):
    fitted.save(tmp_path / "fit.nc")
    assert gr.load(tmp_path / "fit.nc").curve("F").table.equals(fitted.curve("F").table)
    page = fitted.report(tmp_path / "fit.html").read_text()
    assert "Curves" in page and "F(u)" in page and "95 % band" in page


def test_knots_that_no_data_reach(tmp_path):
    (u, y), short = samples((0.0, 2.4)), record((0.0, 2.4))
    blind = gr.fit(Line(), short, ["F"], method=gr.OutputError()).curve("F")
    assert np.isinf(blind.table["std_error"].iloc[3]) and blind.table["data"].iloc[3] == 0
    assert np.isinf(blind.at([3.0])["upper"][0]) and np.isfinite(blind.at([1.0])["upper"][0])
    assert "no data reach the knots 4: nothing is known there" in blind.notes[0]
    smooth = gr.fit(Line(), short, ["F"], priors={"F": gr.Smoothness(0.5)}, method=gr.OutputError())
    curve = smooth.curve("F")
    assert np.isfinite(curve.table["std_error"]).all()
    assert "no data reach the knots 4: the values there follow from the others by the prior" in curve.notes[0]
    # the posterior in closed form
    X = np.vstack([hats(u) / 0.1, bending_rows(KNOTS, "hold") / 0.5])
    expected = np.linalg.lstsq(X, np.append(y / 0.1, np.zeros(2)), rcond=None)[0]
    assert curve.table["value"].to_numpy() == pytest.approx(expected, abs=1e-7)
    assert curve.table["std_error"].to_numpy() == pytest.approx(np.sqrt(np.diag(np.linalg.inv(X.T @ X))), rel=1e-6)
    smooth.save(tmp_path / "smooth.nc")
    again = gr.load(tmp_path / "smooth.nc")
    assert str(again.estimate.unknowns[0].prior) == "Smoothness(scale=0.5)"
    assert again.curve("F").notes == curve.notes


@pytest.mark.parametrize("long", [1.0, 1e9, 1e-9])
@pytest.mark.parametrize("outside", ["hold", "repeat"])
def test_the_penalty_is_the_integral_of_the_squared_second_derivative(outside, long):
    knots = np.array([0.0, 0.1, 0.5, 0.55, 2.0, 3.0])
    values = np.array([0.3, -1.0, 2.0, 1.5, 0.2, 0.3])
    ends = "periodic" if outside == "repeat" else "natural"
    x = np.linspace(0, 3, 300_001)
    integral = np.trapezoid(CubicSpline(knots, values, bc_type=ends)(x, 2) ** 2, x)
    rows = bending_rows(long * knots, outside)
    y = values[:-1] if outside == "repeat" else values
    assert ((rows @ y) ** 2).sum() == pytest.approx(integral * 3.0**3 / 48, rel=1e-6)


def test_more_knots_do_not_change_what_is_believed():
    """The middle of a curve lies off the chord of its ends by ``scale``, however many knots lie between."""
    for knots in ([0, 1, 2], [0, 0.2, 1, 1.7, 2], np.linspace(0, 2, 21)):
        A = bending_rows(knots, "hold")
        inner = np.delete(A, [0, len(knots) - 1], axis=1)  # ends held at zero
        middle = int(np.flatnonzero(np.asarray(knots) == 1.0)[0]) - 1
        assert np.linalg.inv(inner.T @ inner)[middle, middle] == pytest.approx(1.0, rel=1e-9)


def test_a_surface_that_varies_along_one_argument_is_as_smooth_as_a_curve():
    class Plane(gr.Model):
        M = gr.Parameter(0.0, size=(4, 3))
        a, b = gr.Input(), gr.Input()
        y = gr.Output(gr.table2(a, b, KNOTS, [0.0, 1.0, 5.0], M))

    (curve,) = find_curves(structure_of(Plane()).model)
    rows = surface_rows(curve)
    along = np.repeat(TRUTH[:, None], 3, axis=1).ravel()
    assert ((rows @ along) ** 2).sum() == pytest.approx(((bending_rows(KNOTS, "hold") @ TRUTH) ** 2).sum())
    assert np.linalg.matrix_rank(rows) == 12 - 4  # a twisted plane does not bend


@pytest.mark.parametrize(
    ("given", "guesses", "bounds"),
    [
        ({"guess": {"F": 0.5}}, [0.5] * 4, (-np.inf, np.inf)),
        ({"guess": {"F": [1, 2, 3, 4]}, "bounds": {"F": (0, 9)}}, [1, 2, 3, 4], (0, 9)),
        ({"guess": {"F": np.arange(4.0), "F[1]": 7.0}}, [0, 7, 2, 3], (-np.inf, np.inf)),
        ({"guess": {"F[*]": 0.5}, "bounds": {"F": [(0, 9)] * 4}}, [0.5] * 4, (0, 9)),
    ],
)
def test_vectors_by_name(data, given, guesses, bounds):
    problem = build_problem(Line(), data, ["F"], BY_HAND, **given)
    assert problem.guess.tolist() == guesses
    assert {(u.lower, u.upper) for u in problem.unknowns} == {bounds}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"guess": {"F": [1, 2]}}, "guess= gives 2 values for 'F', which has 4 elements"),
        ({"guess": {"G": 1.0}}, "guess= names 'G', which is not estimated"),
        ({"guess": {"F": "a"}}, r"The guess of 'F\[0\]' is 'a'; give a number"),
        ({"bounds": {"F": (0, 1, 2)}}, "bounds= gives 3 values"),
        ({"guess": {"F": [1, 2, 3, 9]}, "bounds": {"F": (0, 5)}}, r"The guess of 'F\[3\]' is 9, outside"),
    ],
)
def test_wrong_vectors(data, given, words):
    with pytest.raises(EstimationError, match=words):
        build_problem(Line(), data, ["F"], BY_HAND, **given)


def test_known_values_and_formulas_belong_to_the_curve(data):
    """Ends held at known values, and an odd curve of two unknowns."""

    class Odd(gr.Model):
        F = gr.Parameter(1.0, size=2, prior=gr.Smoothness(1.0))
        u = gr.Input()
        y = gr.Output(gr.table(u, [-2, -1, 0, 1, 2], [-F[1], -F[0], 0.0, F[0], F[1]]), noise=0.1)

    (first, second) = build_problem(Odd(), data, None, BY_HAND).unknowns
    assert first.prior is second.prior
    values = np.array([[0, -1], [-1, 0], [0, 0], [1, 0], [0, 1]])
    assert np.array(first.prior.rows) == pytest.approx(bending_rows([-2, -1, 0, 1, 2], "hold") @ values)
    part = build_problem(Line(F=[0, 1, 2, 5]), data, ["F[1]", "F[2]"], BY_HAND, priors={"F[1]": gr.Smoothness(2.0)})
    prior = part.unknowns[0].prior
    assert prior.names == ("F[1]", "F[2]") and part.unknowns[1].prior is None
    assert prior.offset == pytest.approx(bending_rows(KNOTS, "hold")[:, [0, 3]] @ [0, 5] / 2)


class Twice(gr.Model):
    F = gr.Parameter(1.0, size=3)
    k = gr.Parameter(1.0)
    u = gr.Input()
    y = gr.Output(gr.table(u, [0, 1, 2], F) + gr.table(u, [0, 1, 3], F) + k, noise=0.1)


class Exponential(gr.Model):
    F = gr.Parameter(1.0, size=3)
    u = gr.Input()
    y = gr.Output(gr.table(u, [0, 1, 2], np.exp(F)), noise=0.1)


@pytest.mark.parametrize(
    ("model", "priors", "words"),
    [
        (Twice(), {"F": gr.Smoothness(1)}, "stands in 2 different tables"),
        (Twice(), {"k": gr.Smoothness(1)}, "'k' is not one of them"),
        (Exponential(), {"F": gr.Smoothness(1)}, "the unknowns themselves or linear in them"),
        (Line(), {"F[0]": gr.Smoothness(1), "F[1]": gr.Smoothness(2)}, "priors of different scales"),
    ],
)
def test_smoothness_that_cannot_be_meant(data, model, priors, words):
    with pytest.raises(EstimationError, match=words):
        build_problem(model, data, [*priors], BY_HAND, priors=priors)


def test_curves_that_are_not_there(fitted):
    with pytest.raises(EstimationError, match="No table has values called 'G'"):
        fitted.curve("G")
    with pytest.raises(EstimationError, match="function of u; got 2 arguments"):
        fitted.curve("F").at(1.0, 2.0)


class Pushed(gr.Model):
    """A mass with an unknown force against its speed."""

    F = gr.Parameter(0.4, size=3, prior=gr.Smoothness(0.5))
    v = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.02)
    y = gr.Output(v, noise=0.05)
    equations = [der(v) == 0.5 - gr.table(v, [0.0, 0.5, 1.5], F, kind="monotone") + w]


@pytest.mark.parametrize(
    "method", [gr.OutputError(), gr.KalmanML(), gr.SimulatedPEM(), gr.Collocation(), gr.Collocation(criterion="amle")]
)
def test_every_estimator_believes_in_the_curve(method):
    """The prior's own share of each criterion: the criterion with it, less the one without."""
    t = np.linspace(0, 4, 21)
    data = gr.Experiment(t, {}, {"y": 0.8 + 0.3 * np.exp(-t)})
    values = {"F[0]": 0.1, "F[1]": 0.6, "F[2]": 0.7}
    plain = Pushed(F=gr.Parameter(0.4))
    with_it, without = (gr.evaluate(m, data, method, parameters=values) for m in (Pushed(), plain))
    share = 0.5 * ((bending_rows([0, 0.5, 1.5], "hold") @ list(values.values()) / 0.5) ** 2).sum()
    assert with_it.objective - without.objective == pytest.approx(share, rel=1e-6)


def test_each_experiment_may_have_its_own_curve(tmp_path):
    runs = [record().replace(name="A"), record((0.0, 2.4)).replace(name="B")]
    fit = gr.fit(Line(), runs, ["F"], BY_HAND, local=["F"], priors={"F": gr.Smoothness(0.5)})
    alone = gr.fit(Line(), runs[1], ["F"], BY_HAND, priors={"F": gr.Smoothness(0.5)}).curve("F")
    own = fit.curve("F", experiment="B")
    assert own.table["value"].to_numpy() == pytest.approx(alone.table["value"].to_numpy(), abs=1e-7)
    assert own.notes == alone.notes
    with pytest.raises(EstimationError, match="with one of A, B"):
        fit.curve("F")
    assert "F(u), B" in fit.report(tmp_path / "fit.html").read_text()


def test_a_surface_has_a_band(tmp_path):
    class Plane(gr.Model):
        M = gr.Parameter(0.0, size=(2, 2))
        a, b = gr.Input(), gr.Input()
        y = gr.Output(gr.table2(a, b, [0.0, 2.0], [0.0, 1.0], M), noise=0.1)

    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 2, 40), rng.uniform(0, 1, 40)
    fit = gr.fit(Plane(), gr.Experiment(None, {"a": a, "b": b}, {"y": a * b}), ["M"], BY_HAND)
    curve = fit.curve("M")
    assert curve.at([0.5, 1.0], [0.5, 1.0])["value"].to_numpy() == pytest.approx([0.25, 1.0], abs=1e-8)
    assert list(curve.table["value"]) == pytest.approx([0, 0, 0, 2], abs=1e-8)
    assert curve.plot().axes and fit.report(tmp_path / "fit.html").exists()
