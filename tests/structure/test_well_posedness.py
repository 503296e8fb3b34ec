"""``well_posedness`` on models: verdicts, words, remedies; counted and computed views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from zoo.descriptor_systems import SYSTEMS, Known

import grisaille as gr
from grisaille import der
from grisaille.components.sampling import IntegratingSampler, Totalizer, presampling_filter
from grisaille.model import flatten
from grisaille.structure import evaluate_parameters, lower_equations, noise_filters, structure_of, well_posedness
from grisaille.structure.descriptor import (
    CloseDecisionWarning,
    DisturbedSystem,
    Linearizer,
    count_differentiations,
    decide_variance,
)

WHITE = gr.spectra.white()


class TwoBodies(gr.Model):
    v1, v2, f = gr.Variable(), gr.Variable(), gr.Variable()
    w1, w2 = gr.Disturbance(WHITE), gr.Disturbance(WHITE, scale=2.0)
    y = gr.Output(3 * v1 - v2)
    equations = [der(v1) == f + w1, der(v2) == -f + w2, v1 == v2]


class Beside(gr.Model):
    """Section 4 of the reference: a state and white noise measured together."""

    z1, z2 = gr.Variable(), gr.Variable()
    w1, w2 = gr.Disturbance(WHITE), gr.Disturbance(WHITE)
    y = gr.Output(z1 + z2)
    equations = [der(z1) == -2 * z1 + w1, z2 == w2]


class Filtered(gr.Model):
    z1, z2 = gr.Variable(), gr.Variable()
    w1, w2 = gr.Disturbance(WHITE), gr.Disturbance(WHITE)
    filter = presampling_filter(time_constant=0.01, u=z1 + z2)
    y = gr.Output(filter.y)
    equations = [der(z1) == -2 * z1 + w1, z2 == w2]


class Pendulum(gr.Model):
    m, g, L, k = gr.Parameter(0.3), gr.Parameter(9.81), gr.Parameter(6.25), gr.Parameter(5.0)
    x, y = gr.Variable(start=0.0), gr.Variable(start=-L)
    vx, vy = gr.Variable(start=0.0), gr.Variable(start=0.0)
    tension = gr.Variable()
    u = gr.Input("N")
    w = gr.Disturbance(WHITE)
    phi = gr.Output(gr.atan2(x, -y))
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * abs(vx) * vx + u + w,
        m * der(vy) == tension * y - k * abs(vy) * vy - m * g,
        x**2 + y**2 == L**2,
    ]


class TestTwoBodies:
    def test_velocities_are_fine_under_white_forces(self) -> None:
        found = well_posedness(TwoBodies())
        assert found and found.is_exact
        assert found.required == ("y",)
        assert {n: v.is_finite for n, v in found.verdicts.items()} == {"y": True, "v1": True, "v2": True, "f": False}
        assert [a.differentiations for a in found.verdicts["v1"].arrivals] == [-1, -1]

    def test_the_force_between_them_is_not(self) -> None:
        found = well_posedness(TwoBodies(), ["f"])
        assert not found and found.violated == ("f",)
        verdict = found.verdicts["f"]
        assert [(a.disturbance, a.differentiations, a.missing) for a in verdict.arrivals] == [
            ("w1", 0, 1),
            ("w2", 0, 1),
        ]
        assert "w1 [white(), pole excess 0] enters directly" in str(verdict)
        assert "pole excess at least 1 for w1 and 1 for w2" in str(verdict)

    def test_smoother_forces_make_it_finite(self) -> None:
        coloured = gr.Disturbance(gr.spectra.lowpass(2.0))
        assert well_posedness(TwoBodies(w1=coloured, w2=coloured), ["f"])
        half = well_posedness(TwoBodies(w1=coloured), ["f"])
        assert {a.disturbance: a.is_finite for a in half.verdicts["f"].arrivals} == {"w1": True, "w2": False}

    def test_any_sum_with_the_force_is_refused(self) -> None:
        assert not well_posedness(TwoBodies(y=gr.Output(TwoBodies.v1 + 1e-6 * TwoBodies.f)))


class TestPresampling:
    def test_white_noise_cannot_be_measured(self) -> None:
        found = well_posedness(Beside())
        assert not found
        with pytest.raises(gr.EstimationError, match=r"gr\.fit of Beside is not a well-posed problem") as error:
            found.require("gr.fit")
        for words in ("Output y has infinite variance", "w2", "enters directly", "presampling_filter", "lowpass"):
            assert words in str(error.value)

    def test_behind_the_filter_it_can(self) -> None:
        found = well_posedness(Filtered())
        assert found
        found.require("gr.fit")
        assert [a.differentiations for a in found.verdicts["y"].arrivals] == [-2, -1]

    def test_integrating_sampler(self) -> None:
        class Averaged(gr.Model):
            x = gr.Variable()
            w = gr.Disturbance(WHITE)
            average = IntegratingSampler(window=0.2, u=x)
            y = gr.Output(average.y)
            equations = [x == w]

        assert well_posedness(Averaged())
        assert not well_posedness(Averaged(), ["x"])

    def test_totalizer(self) -> None:
        class Metered(gr.Model):
            w = gr.Disturbance(WHITE)
            meter = Totalizer(u=2 * w)
            y = gr.Output(meter.y)

        assert well_posedness(Metered())

    @pytest.mark.parametrize("order", [1, 2, 3])
    def test_the_advised_order_is_the_least_that_works(self, order: int) -> None:
        """A force that moves a mass on a noisy path contains w''; white w needs a filter of order 3."""

        def moved(filter_order: int) -> gr.Model:
            class Moved(gr.Model):
                x, v, f = gr.Variable(), gr.Variable(), gr.Variable()
                w = gr.Disturbance(WHITE)
                filter = presampling_filter(time_constant=0.1, order=filter_order, u=f)
                y = gr.Output(filter.y)
                equations = [der(x) == v, der(v) == f - x, x == w]

            return Moved()

        found = well_posedness(moved(order), ["f"])
        assert found.verdicts["y"].is_finite == (order == 3)
        assert found.verdicts["f"].arrivals[0].missing == 3
        assert "order=3" in " ".join(found.verdicts["f"].advice)

    def test_filter_transfer_functions(self) -> None:
        for part, expected in (
            (presampling_filter(time_constant=0.3, order=2), lambda s: (1 + 0.3 * s) ** -2),
            (IntegratingSampler(window=0.5), lambda s: 1 / (1 + s * 0.25 + s**2 * 0.25 / 12)),
            (Totalizer(), lambda s: 1 / s),
        ):
            flat = flatten(part)
            values = evaluate_parameters(flat).values
            linear = Linearizer(lower_equations(flat), ("y",)).at(values)
            for s in (0.4 + 1j, 3.0 + 0j):
                gain = linear.H @ np.linalg.solve(s * linear.E - linear.F, linear.G)
                assert gain[0, 0] == pytest.approx(expected(s), rel=1e-12)

    def test_integrating_sampler_is_the_mean_to_third_order_and_in_its_white_noise_variance(self) -> None:
        T = 0.5
        for s in (0.01j, 0.02j):
            mean = (1 - np.exp(-s * T)) / (s * T)
            padded = 1 / (1 + s * T / 2 + (s * T) ** 2 / 12)
            assert abs(mean - padded) < abs(s * T) ** 4
        w = np.linspace(-2e4, 2e4, 2_000_001)
        density = np.abs(1 / (1 + 1j * w * T / 2 - (w * T) ** 2 / 12)) ** 2
        assert np.trapezoid(density, w) / (2 * np.pi) == pytest.approx(1 / T, rel=1e-6)

    def test_filter_of_no_order_is_refused(self) -> None:
        with pytest.raises(gr.ModelError, match="order must be a whole number from 1"):
            presampling_filter(time_constant=1.0, order=0)


class TestNonlinear:
    def test_pendulum_under_a_white_force(self) -> None:
        found = well_posedness(Pendulum())
        assert found and not found.is_exact
        counts = {n: v.arrivals[0].differentiations for n, v in found.verdicts.items()}
        assert counts == {"phi": -2, "x": -2, "y": -2, "vx": -1, "vy": -1, "tension": 0}
        assert not found.verdicts["tension"].is_finite

    def test_its_tension_at_rest_hides_from_the_linear_test(self) -> None:
        """Hanging straight down, a horizontal force does not change the tension to first order: the note says so."""
        found = well_posedness(Pendulum(start={"x": 3.0, "y": -5.48}), ["tension"])
        assert not found and not found.verdicts["tension"].note
        at_rest = well_posedness(Pendulum(), ["tension"])
        assert not at_rest
        assert "the effect vanishes there" in at_rest.verdicts["tension"].note

    def test_coloured_force(self) -> None:
        assert well_posedness(Pendulum(w=gr.Disturbance(gr.spectra.lowpass(3.0))), ["tension"])

    def test_a_disturbed_constraint(self) -> None:
        """x² + y² = L² + w: position contains w, velocity w', tension w''; redundant states are counted right."""

        class Elastic(gr.Model):
            L = gr.Parameter(2.0)
            x, y = gr.Variable(start=1.0), gr.Variable(start=-1.7)
            vx, vy, tension = gr.Variable(), gr.Variable(), gr.Variable()
            w = gr.Disturbance(gr.spectra.lowpass(5.0, order=2))
            phi = gr.Output(gr.atan2(x, -y))
            equations = [
                der(x) == vx, der(y) == vy, der(vx) == tension * x, der(vy) == tension * y - 9.81,
                x**2 + y**2 == L**2 + w,
            ]  # fmt: skip

        found = well_posedness(Elastic(), ["tension"])
        counts = {n: v.arrivals[0].differentiations for n, v in found.verdicts.items()}
        assert counts == {"phi": 0, "tension": 2, "x": 0, "y": 0, "vx": 1, "vy": 1}
        assert found.violated == ("tension",)
        assert "pole excess at least 3 for w" in str(found)
        assert not found.verdicts["tension"].note, "the linearised equations agree"
        assert well_posedness(Elastic(w=gr.Disturbance(gr.spectra.lowpass(5.0, order=3))), ["tension", "vx"])
        assert not well_posedness(Elastic(w=gr.Disturbance(gr.spectra.lowpass(5.0))), ["vx"])
        rough = well_posedness(Elastic(w=gr.Disturbance(gr.spectra.lowpass(5.0))))
        assert "enters nonlinearly" in rough.verdicts["phi"].note, "squares of velocities drive it, w' is white"

    def test_the_square_of_white_noise_has_no_meaning(self) -> None:
        class Squared(gr.Model):
            x, z = gr.Variable(), gr.Variable()
            w = gr.Disturbance(WHITE)
            y = gr.Output(x)
            equations = [der(x) == -x + z**2, z == x + w]

        found = well_posedness(Squared())
        assert not found
        assert "enters nonlinearly" in found.verdicts["y"].note
        assert "enter linearly" in str(found)
        assert well_posedness(Squared(w=gr.Disturbance(gr.spectra.lowpass(3.0))))

    def test_the_sign_of_white_noise_has_no_meaning(self) -> None:
        """Its slope is zero, and the model not linear for that."""

        class Signed(gr.Model):
            x, z = gr.Variable(), gr.Variable()
            w = gr.Disturbance(WHITE)
            y = gr.Output(x)
            equations = [der(x) == -x + gr.sign(z), z == x + w]

        found = well_posedness(Signed())
        assert not found and not found.is_exact
        assert "enters nonlinearly" in found.verdicts["y"].note
        assert well_posedness(Signed(w=gr.Disturbance(gr.spectra.lowpass(3.0))))

    def test_state_dependent_diffusion_is_fine(self) -> None:
        class Growth(gr.Model):
            x = gr.Variable(start=1.0)
            w = gr.Disturbance(WHITE)
            y = gr.Output(x**2)
            equations = [der(x) == x * (1 - x) + 0.1 * x * w]

        assert well_posedness(Growth())

    def test_implicit_blocks_are_followed(self) -> None:
        class Implicit(gr.Model):
            x, z, q = gr.Variable(start=0.5), gr.Variable(start=0.4), gr.Variable()
            w = gr.Disturbance(gr.spectra.lowpass(3.0))
            y = gr.Output(z)
            equations = [der(x) == -x + z, z + z**5 == x + w, q == der(z)]

        found = well_posedness(Implicit(), ["q"])
        assert found.verdicts["z"].arrivals[0].differentiations == 0
        assert found.verdicts["x"].arrivals[0].differentiations == -1
        assert found.verdicts["q"].arrivals[0].differentiations == 1
        assert found.violated == ("q",)

    def test_along_a_trajectory(self) -> None:
        model = Pendulum(start={"x": 3.0, "y": -5.48})
        run = gr.simulate(model, np.linspace(0, 2, 21), inputs={"u": 0.0})
        found = well_posedness(model, ["tension"], trajectory=run)
        assert not found and not found.notes
        with pytest.raises(gr.ModelError, match="choose a realization"):
            well_posedness(model, trajectory=run.expand_dims("realization"))

    def test_a_start_that_cannot_be_found_is_noted(self) -> None:
        class Nowhere(gr.Model):
            x = gr.Variable(start=1.0)
            z = gr.Variable()
            w = gr.Disturbance(WHITE)
            y = gr.Output(x)
            equations = [der(x) == -x + w + z, z**2 == -1 - x**2]

        found = well_posedness(Nowhere())
        assert any(note.startswith("not tested at the start") for note in found.notes)


LINEAR_MODELS = (TwoBodies(), Beside(), Filtered())


@pytest.mark.parametrize("model", LINEAR_MODELS, ids=lambda m: type(m).__name__)
def test_equations_as_written_and_after_merging_give_the_same(model: gr.Model) -> None:
    """The pencil of every equation the user wrote against the one after equal variables were merged."""
    flat = flatten(model)
    values = evaluate_parameters(flat)
    names = tuple(flat.variables)
    decisions = []
    for equations in (lower_equations(flat), structure_of(model).equations):
        linear = Linearizer(equations, names).at(values.values)
        system = DisturbedSystem(linear.E, linear.F, linear.J, linear.H, noise_filters(flat, values))
        decisions.append(decide_variance(system))
    np.testing.assert_array_equal(decisions[0].differentiations, decisions[1].differentiations)
    np.testing.assert_array_equal(decisions[0].finite, decisions[1].finite)


@pytest.mark.parametrize("model", LINEAR_MODELS, ids=lambda m: type(m).__name__)
def test_counted_and_computed_views_agree(model: gr.Model) -> None:
    count = count_differentiations(structure_of(model), {"w1": 0, "w2": 0})
    for name, verdict in well_posedness(model).verdicts.items():
        assert count.reach[name] == {a.disturbance: a.differentiations for a in verdict.arrivals}
        assert not verdict.note


def as_model(known: Known) -> gr.Model:
    n, nw = known.J.shape

    class Descriptor(gr.Model):
        z = gr.Variable(size=n)
        w = gr.Disturbance(WHITE, size=nw)

        def equations(self) -> Iterator[Any]:
            for E, F, J in zip(known.E, known.F, known.J, strict=True):
                left = sum(e * der(z) for e, z in zip(E, self.z, strict=True) if e)
                terms = [*zip(F, self.z, strict=True), *zip(J, self.w, strict=True)]
                yield left == sum(c * s for c, s in terms if c)

    return Descriptor()


@pytest.mark.parametrize("known", SYSTEMS, ids=lambda k: k.name)
def test_systems_with_known_answers_as_models(known: Known) -> None:
    """Written as equations of a model: counted and computed views both give the answer found by hand."""
    model = as_model(known)
    count = count_differentiations(structure_of(model), {f"w[{k}]": 0 for k in range(known.J.shape[1])})
    found = well_posedness(model, [f"z[{k}]" for k in range(len(known.E))])
    assert found.is_exact and not found.notes
    for k, by_hand in enumerate(known.count):
        verdict = found.verdicts[f"z[{k}]"]
        arrivals = {a.disturbance: a.differentiations for a in verdict.arrivals}
        for column, expected in enumerate(by_hand):
            name = f"w[{column}]"
            assert max(arrivals.get(name, -1), -1) == (-1 if expected is None else expected)
            assert max(count.reach[f"z[{k}]"].get(name, -1), -1) == (-1 if expected is None else expected)
        assert verdict.is_finite == all(c is None for c in by_hand)


def test_a_static_model() -> None:
    class Static(gr.Model):
        x = gr.Variable()
        w = gr.Disturbance(gr.spectra.lowpass(1.0))
        y = gr.Output(x)
        equations = [2 * x == w]

    assert well_posedness(Static())
    assert not well_posedness(Static(w=gr.Disturbance(WHITE)))


class TestCancellation:
    """Two paths of w to y: y = a (x + w) − b w has finite variance only for a = b."""

    class Paths(gr.Model):
        a, b = gr.Parameter(1.5), gr.Parameter(1.5)
        x, z = gr.Variable(), gr.Variable()
        w = gr.Disturbance(WHITE)
        y = gr.Output(a * z - b * w)
        equations = [der(x) == -x + w, z == x + w]

    def test_at_these_parameter_values_only(self) -> None:
        found = well_posedness(self.Paths())
        assert found
        assert found.verdicts["y"].note == "derivatives of w cancel on the way, but only at these parameter values"

    def test_given_parameters_count(self) -> None:
        assert not well_posedness(self.Paths(), parameters={"b": 1.4})

    def test_always(self) -> None:
        note = well_posedness(self.Paths(b=gr.Parameter(self.Paths.a))).verdicts["y"].note
        assert note == "derivatives of w cancel on the way, at other parameter values too"

    def test_nearly_cancelling_is_a_close_decision(self) -> None:
        with pytest.warns(CloseDecisionWarning, match="Paths was decided on numbers that are nearly zero"):
            found = well_posedness(self.Paths(), parameters={"b": 1.5 + 1e-9})
        assert any("close decision" in note for note in found.notes)


def test_correlated_forces_that_push_alike() -> None:
    class Joined(gr.Model):
        v1, v2, f = gr.Variable(), gr.Variable(), gr.Variable()
        w = gr.Disturbance(WHITE, size=2, correlation=[[1, 1], [1, 1]])
        y = gr.Output(f)
        equations = [der(v1) == f + w[0], der(v2) == -f + w[1], v1 == v2]

    found = well_posedness(Joined())
    assert found
    assert "correlated disturbances cancel" in found.verdicts["y"].note


def test_white_noise_in_the_output_formula() -> None:
    class Noisy(gr.Model):
        x = gr.Variable()
        w = gr.Disturbance(WHITE)
        y = gr.Output(x + 0.1 * w)
        rate = gr.Output(der(x))
        equations = [der(x) == -x + w]

    found = well_posedness(Noisy())
    assert found.violated == ("y", "rate")


def test_no_disturbance_no_doubt() -> None:
    class Calm(gr.Model):
        x = gr.Variable()
        y = gr.Output(x)
        equations = [der(x) == -x]

    found = well_posedness(Calm())
    assert found and "no disturbance arrives" in str(found)


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(gr.ModelError, match=r"no variable or output 'V1'. Did you mean .*'v1'"):
        well_posedness(TwoBodies(), ["V1"])


def test_members_may_be_given() -> None:
    model = TwoBodies()
    assert well_posedness(model, [model.f]).violated == ("f",)
    assert well_posedness(model, "v1").required == ("y", "v1")


def test_an_equation_that_parameters_make_vanish_is_named() -> None:
    class Vanishing(gr.Model):
        a = gr.Parameter(0.0)
        x, z, q = gr.Variable(), gr.Variable(), gr.Variable()
        w = gr.Disturbance(WHITE)
        y = gr.Output(x)
        equations = [der(x) == -x + z + w, a * z + q == x, z + 2 * q == 2 * x + z * (1 + a)]

    with pytest.raises(gr.StructureError, match=r"do not determine \{.*z"):
        well_posedness(Vanishing())


def test_print_reads_well() -> None:
    text = str(well_posedness(TwoBodies(), ["f"]))
    assert text.splitlines()[0] == "TwoBodies: not well-posed: f of infinite variance (linear model, exact test)"
    assert "  output   y   finite" in text and "  variable f   INFINITE" in text
    assert repr(well_posedness(TwoBodies())) == "<WellPosedness of TwoBodies: well-posed>"


def test_an_equation_without_slope_at_zero_inputs_is_named_and_a_point_asked_for() -> None:
    class Flow(gr.Model):
        F, h = gr.Input(), gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0))
        y = gr.Output(h)
        equations = [der(h) == F**1.5 / (F + 0.5 * F**0.5) - h * gr.log(1 + h * F) / F + w]

    found = gr.well_posedness(Flow())
    assert found and "has no finite derivatives there (F = 0)" in str(found)
    assert "gr.well_posedness(model, inputs={'F': …}) gives an operating point" in str(found)
    at = gr.well_posedness(Flow(), inputs={"F": 2.0})
    assert at and not at.notes
    with pytest.raises(gr.GrisailleError, match="no input 'G'"):
        gr.well_posedness(Flow(), inputs={"G": 2.0})


def test_infinite_variance_is_found_where_the_inputs_are() -> None:
    """At F = 0 nothing can be said; at F = 2 white noise is seen to reach the output through z."""

    class Rough(gr.Model):
        F, x, z = gr.Input(), gr.Variable(1.0), gr.Variable()
        w = gr.Disturbance(gr.spectra.white())
        y = gr.Output(z)
        equations = [der(x) == -x * gr.log(F) + w, z == der(x) / F]

    assert gr.well_posedness(Rough(), inputs={"F": 2.0}).violated == ("y",)


def test_a_linear_model_without_finite_coefficients_names_its_equation() -> None:
    class Divided(gr.Model):
        tau, x = gr.Parameter(1.0), gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.white())
        y = gr.Output(x)
        equations = [der(x) == -x / tau + w]

    with pytest.raises(gr.GrisailleError, match=r"'der\(x\) == -x/tau \+ w' has no finite derivatives"):
        gr.well_posedness(Divided(), parameters={"tau": 0.0})


@pytest.mark.parametrize("formula", [lambda x: 1 / x, lambda x: gr.exp(x**2), lambda x: gr.sqrt(x)])
def test_verdicts_speak_of_roughness_and_not_of_moments(formula: Any) -> None:
    """1/x of a Gaussian x has values and no variance."""

    class Bent(gr.Model):
        x = gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=1.0)
        z = gr.Output(formula(x))
        equations = [gr.der(x) == -x + w]

    found = well_posedness(Bent())
    assert found and str(found.verdicts["z"]).startswith("output z has a value at every instant: w")
    assert "finite" not in str(found) and "note: this is about roughness" in str(found)
