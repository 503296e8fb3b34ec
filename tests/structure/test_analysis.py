"""``analyze`` in words and pictures."""

from __future__ import annotations

import pytest
from zoo.mechanics import DisguisedIndex, Pendulum

import grisaille as gr
from grisaille import der
from grisaille.errors import ModelError, StructureError


def test_print_says_what_a_user_wants_to_know() -> None:
    text = str(gr.analyze(Pendulum()))
    for words in (
        "differential index 3",
        "5 equations, 5 variables, 4 parameters, 1 input, 1 disturbance, 1 output",
        "states      x, y, vx, vy",
        "2 start values may be chosen",
        "2x  x**2 + y**2 == L**2",
        "0 = d/dt [x**2 + y**2 == L**2]",
        "torn at {tension}",
        "all declared starts are met",
    ):
        assert words in text


def test_replaced_equations_are_mentioned() -> None:
    assert "replaced    1 equation" in str(gr.analyze(DisguisedIndex()))


def test_start_values_are_listed_by_name() -> None:
    assert gr.analyze(Pendulum()).start["y"] == -6.25


def test_plot_has_both_matrices(tmp_path) -> None:
    path = tmp_path / "incidence.png"
    figure = gr.analyze(Pendulum()).plot(str(path))
    assert path.stat().st_size > 1000
    assert [axes.get_title() for axes in figure.axes] == ["as written", "after index reduction, in order of solution"]


@pytest.mark.parametrize(
    ("equations", "words"),
    [
        (lambda s: [der(s.x) == s.y], "Underdetermined: the unknowns {"),
        (lambda s: [der(s.x) == 1, s.x + gr.time == 2, der(s.y) == s.y], "Overdetermined: 2 equations"),
        (lambda s: [der(s.x) == s.y, der(s.x) == 2 * s.y + 1, s.y * s.x == 3], "3 equations for 2 unknowns"),
        (lambda s: [], "no equations"),
    ],
)
def test_wrong_counts_name_equations_and_unknowns(equations, words: str) -> None:
    Wrong = type("Wrong", (gr.Model,), {"x": gr.Variable(), "y": gr.Variable(), "equations": lambda s: equations(s)})
    with pytest.raises((StructureError, ModelError)) as caught:
        gr.analyze(Wrong())
    assert words in str(caught.value)


def test_dependent_equations_leave_unknowns_open() -> None:
    class Floating(gr.Model):
        a, b, i = gr.Variable(), gr.Variable(), gr.Variable(0.0)
        equations = [der(i) == -i, a - b == i, 2 * a - 2 * b == 2 * i]

    with pytest.raises(StructureError, match="underdetermined") as caught:
        gr.analyze(Floating())
    assert "{a, b}" in str(caught.value)


def test_class_instead_of_instance() -> None:
    with pytest.raises(gr.GrisailleError, match=r"Pendulum\("):
        gr.analyze(Pendulum)


def test_start_sees_switches_as_they_stand_at_time_zero() -> None:
    class Ramp(gr.Model):
        v, slope = gr.Variable(), gr.Variable()
        equations = [v == gr.where(gr.time < 5, 1 + gr.time, 6.0), slope == der(v)]

    analysis = gr.analyze(Ramp())
    assert analysis.start == {"v": 1.0, "slope": 1.0}
    assert "signals that are differentiated" not in str(analysis)


def test_an_empty_model_is_refused_in_words() -> None:
    class Empty(gr.Model):
        pass

    with pytest.raises(StructureError, match="Empty is empty: it declares no variables and no outputs"):
        gr.analyze(Empty())


class Fed(gr.Model):
    """What is declared for the density holds at 300 K, not at an input of zero."""

    T_in, flow = gr.Input("K"), gr.Input("kg/s", default=2.0)
    T, rho = gr.Variable(start=300.0), gr.Variable(start=1.2)
    equations = [rho == 400 - T_in, der(T) == (T_in - T) * flow * rho]


class Warmed(Fed):
    T_in = gr.Input("K", default=398.8)


def test_inputs_without_a_default_are_named_where_the_start_depends_on_them() -> None:
    note = gr.analyze(Fed()).start_note
    assert note.startswith("with T_in at zero for want of a default") and "rho declared 1.2, is 400" in note
    assert "flow" not in note and "all declared starts are met" not in note
    assert gr.analyze(Warmed()).start_note == "all declared starts are met"


def test_starts_that_need_no_input_need_no_default() -> None:
    class Plain(gr.Model):
        u, x = gr.Input(), gr.Variable(start=1.0)
        equations = [der(x) == -x + u]

    assert gr.analyze(Plain()).start_note == "all declared starts are met"


def test_a_start_without_a_value_at_zero_names_the_input() -> None:
    class Divided(gr.Model):
        u, x, z = gr.Input(), gr.Variable(start=1.0), gr.Variable()
        equations = [der(x) == -x * z, z == 1 / u]

    note = gr.analyze(Divided()).start_note
    assert note.startswith("with u at zero for want of a default") and note.endswith("z has no finite value there")
