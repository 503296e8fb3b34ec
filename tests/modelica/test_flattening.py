"""Full Modelica: what the flattener gives, read; where its lines are told; what is refused.

``plant/flat.json.gz`` holds the trees that rumoca 0.10.2 makes of ``plant/Plant.mo``, so that the compiler is only
needed to make them anew.
"""

from __future__ import annotations

import copy
import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.modelica import flat_text
from grisaille.modelica.full import (
    CachedFlattening,
    experiment_of,
    is_flat,
    is_full,
    libraries_of_environment,
    main_model,
    rumoca,
    whole,
    with_named_derivatives,
)

PLANT = Path(__file__).with_name("plant") / "Plant.mo"
TREES = json.loads(gzip.decompress(PLANT.with_name("flat.json.gz").read_bytes()))
TIMES = np.linspace(0.0, 2.0, 9)


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found that was flattened before."""
    monkeypatch.setattr(CachedFlattening, "found", lambda entry: None)
    monkeypatch.setattr(CachedFlattening, "keep", lambda entry, *made: None)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler, as it answered once."""
    monkeypatch.setattr(rumoca, "check", lambda: None)
    monkeypatch.setattr(rumoca, "run", lambda asked, label: TREES[asked["name"]])


def read(name: str) -> gr.Model:
    return gr.read_modelica(PLANT, name=f"Plant.{name}")


def test_inheritance_connections_and_modifications_are_flat_and_parameters_stay(compiled: None) -> None:
    drive = read("Drive")
    assert {n: p.value for n, p in drive.parameters.items()} == {"slowness": 2.0, "load.J": 2.0, "spring.c": 8.0}
    assert (drive.parameters["load.J"].unit, drive.parameters["load.J"].bounds) == ("kg.m2", (0.0, np.inf))
    result = gr.simulate(drive.replace({"slowness": 8.0}), TIMES, rtol=1e-9)
    assert np.allclose(result["both[1]"], np.cos(TIMES), atol=1e-6)  # c/J = 1


def test_a_structural_parameter_of_the_text_is_fixed_with_a_word(compiled: None) -> None:
    with pytest.raises(ModelError, match=r"spring\.law.*linear"):
        read("Drive").replace({"spring.law": 2})


def test_arrays_of_components_and_initial_equations(compiled: None) -> None:
    chain = read("Chain")
    c1, c2, J, torque = 4.0, 6.0, 0.5, 3.0
    K = np.array([[c1 + c2, -c2], [-c2, c2]])
    rest = np.linalg.solve(K, [0.0, torque])
    omega, modes = np.linalg.eigh(K / J)
    amplitude = modes.T @ (np.array([0.1, 0.2]) - rest)
    exact = rest + np.array([modes @ (amplitude * np.cos(np.sqrt(omega) * t)) for t in TIMES])
    result = gr.simulate(chain, TIMES, rtol=1e-9)
    assert np.allclose(result["loads[2].phi"], exact[:, 1], atol=1e-6)


def test_events(compiled: None) -> None:
    result = gr.simulate(read("Ball"), [0.0, 0.5, 0.6], rtol=1e-9)
    hit = np.sqrt(2.0 / 9.81)
    assert float(result["v"][-1]) == pytest.approx(0.5 * 9.81 * hit - 9.81 * (0.6 - hit), abs=1e-6)


def test_a_cubic_spring_is_the_same_function_with_its_loop(compiled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    text = flat_text(TREES["Plant.Drive"]["flat"], "Plant.Drive").text
    cubic = text.replace("'spring.law' = 'Plant.Law'.'linear'", "'spring.law' = 'Plant.Law'.'cubic'")
    assert cubic != text
    start = gr.analyze(gr.read_modelica(cubic)).start
    assert start["spring.a.tau"] == pytest.approx(8.0 * (1.0 + 1.0**3))


def test_what_is_refused_has_the_line_of_the_users_file(compiled: None) -> None:
    line = 1 + PLANT.read_text("utf-8")[: PLANT.read_text("utf-8").index("y = foreign(x)")].count("\n")
    with pytest.raises(ModelError, match=rf"Plant\.mo cannot be read:\n  line {line}: .*foreign_code"):
        read("Silent")


def test_equations_tell_their_place_in_the_users_file(compiled: None) -> None:
    text = PLANT.read_text("utf-8")
    line = 1 + text[: text.index("J * der(w)")].count("\n")
    drive = read("Drive")
    places = [law.source for law in drive._content.equations]
    assert f"Plant.mo, line {line}" in places


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"error": "A failed in ToDae: unbalanced model: 2 equations, 1 unknowns (balance = 1); unknowns[x]"},
         "2 equations, 1 unknowns"),
        ({"error": "A could not be compiled: unresolved type reference: 'TwoFlanges'\nRelated failures (showing 1):\n"
                   "- <resolve> [Resolve]: unresolved type reference: 'TwoFlanges'"}, r"line 3\d: .*'TwoFlanges'\nL"),
        ({"error": "A failed in Typecheck: E001: bad k [Plant.mo:11:19]; bad l [Lib/A.mo:3:1]"},
         r"rumoca:\n  line 11: E001: bad k\n  Lib/A\.mo, line 3: bad l\n"),
        ({"error": "x", "diagnostics": [{"line": 7, "file": "Plant.mo", "level": "error", "message": "E\n × bad `x`"}]},
         "line 7: bad `x`"),
        ({"error": "A could not be compiled because resolve/parse failed"}, "has no model 'Plant.Drive'"),
        ({"flat": {"functions": {}}}, "tree is of a form that is not known"),
    ],
)  # fmt: skip
def test_what_the_compiler_says(answer: dict, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rumoca, "check", lambda: None)
    monkeypatch.setattr(rumoca, "run", lambda asked, label: answer)
    with pytest.raises(ModelError, match=words):
        read("Drive")


def test_without_the_compiler_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rumoca, "is_available", lambda: False)
    with pytest.raises(ModelError, match=r"pip install 'grisaille\[modelica\]'.*--baseModelica"):
        read("Drive")


def test_another_version_of_the_compiler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rumoca, "is_available", lambda: True)
    monkeypatch.setattr(rumoca, "version", lambda: "0.9.1")
    with pytest.raises(ModelError, match=r"0\.9\.1 is installed; 0\.10 is known"):
        read("Drive")


def test_a_flat_file_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rumoca, "is_available", lambda: False)
    file = tmp_path / "decay.mo"
    file.write_text("model Decay\n  Real x(start = 1, fixed = true);\nequation\n  der(x) = -x;\nend Decay;\n")
    assert list(gr.read_modelica(file).start) == ["x"]


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        ("model A Real x; equation x = 1; end A;", True),
        ("model A extends B; end A;", False),
        ("model A B b; end A;", False),
        ("connector C Real p; flow Real f; end C; model A C c; equation connect(c, c); end A;", False),
        ("model A Real x", False),
    ],
)
def test_which_texts_are_flat(text: str, flat: bool) -> None:
    assert is_flat(text) is flat


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ('model A type V = Real(unit = "V"); record R V v; end R; R r; equation r.v = 1; end A;', False),
        (
            "package P function f input Real x; output Real y; algorithm y := x; end f; model A V x; end A; end P;",
            False,
        ),
        ("model A Real x; equation x = (1; end A;", False),
        ("package P class T extends ExternalObject; end T; model A T t; StateSelect s; end A; end P;", False),
        ("model A Modelica.Units.SI.Mass m = 1; end A;", True),
        ("package B model A Real x; end A; model B A a; end B; end B;", True),
        ("model A Real x; equation x = (1; end A; model B extends A; end B;", True),
        ("model A Real 'extends'; equation 'extends' = (1; end A; // import", False),
    ],
)
def test_texts_that_have_to_be_flattened(text: str, full: bool) -> None:
    assert is_full(text, None) is full


def test_a_file_whose_package_holds_the_functions_it_calls(tmp_path: Path) -> None:
    (tmp_path / "package.mo").write_text("package P end P;")
    file = tmp_path / "M.mo"
    text = "within P; model M Real x = {}(time); end M;"
    assert is_full(text.format("f"), file) and not is_full(text.format("sin"), file)


def test_classes_of_a_flat_text_are_known_by_their_own_and_their_full_names() -> None:
    text = """package P
  constant Real c = 2;
  package Q function f input Real x; output Real y; algorithm y := c*x; end f; end Q;
  model M
    type V = Real(unit = "V");
    record R V v; end R;
    R r;
    V x(start = 1, fixed = true);
  equation
    r.v = x;
    der(x) = -Q.f(r.v)*P.c;
  end M;
end P;"""
    model = gr.read_modelica(text)
    assert float(gr.simulate(model, [0.0, 1.0], rtol=1e-9)["x"][-1]) == pytest.approx(np.exp(-4.0))


SEVERAL = """connector C Real p; flow Real f; end C;
partial model Base C c; end Base;
model Part extends Base; Real x; equation x = c.p; end Part;
model Whole Part a, b; equation connect(a.c, b.c); end Whole;
"""


def test_the_model_that_is_meant_where_none_is_named() -> None:
    assert main_model(SEVERAL, "") == ("Whole", ["Whole"])
    both = SEVERAL + "model Other end Other;"
    assert main_model(both, "") == ("", ["Whole", "Other"]) and main_model(both, "Other")[0] == "Other"
    assert main_model("package P model A = B; model B end B; end P;", "") == ("P.A", ["P.A"])
    with pytest.raises(ModelError, match="holds the models Whole, Other: say which"):
        whole(both, "Text.mo", None, None, [])


def test_derivatives_of_formulas_survive_the_flattener() -> None:
    text = "model A Real x, y;\nequation der(x) = der(a.b[2].c); 1 = der(x - y); // der(x + y)\nend A;"
    changed = with_named_derivatives(text)
    assert "1 = grisaille_der(x - y); // der(x + y)\n" in changed and "der(x) = der(a.b[2].c)" in changed


def test_models_of_a_flat_package_have_full_names_too() -> None:
    text = "package P\n  model M\n    Real x;\n  equation\n    der(x) = -x;\n  end M;\nend P;\n"
    assert gr.read_modelica(text, name="P.M").fingerprint == gr.read_modelica(text, name="M").fingerprint


def test_the_annotation_tells_the_run_that_the_flattener_leaves_out() -> None:
    text = """package P // experiment(StopTime = 7)
  model Other annotation(experiment(StopTime = 3)); end Other;
  model M "experiment(StopTime = 8)" Real x; equation der(x) = -x;
    annotation(Icon(a = 1), experiment(StopTime = 1e2, Tolerance=1e-7));
  end M;
end P;"""
    assert experiment_of(text, "P.M") == {"StopTime": 100.0, "Tolerance": 1e-7}
    assert experiment_of(text, "P.None") == {}


def test_flat_texts_keep_outputs_whens_and_orders_of_literals() -> None:
    tree = copy.deepcopy(TREES["Plant.Drive"]["flat"])
    bound = next(n for n, v in tree["variables"].items() if v["binding"] is not None and "." not in n)
    tree["variables"][bound]["causality"] = {"Output": None}
    tree["enum_literal_ordinals"] = tree.get("enum_literal_ordinals", {}) | {"L.'U'": 1, "L.low": 2, "L.'low'": 2}
    text = flat_text(tree, "Plant.Drive").text
    assert re.search(rf"output \w+ '{re.escape(bound)}'", text) and "enumeration(low" not in text


def test_a_file_of_a_tree_of_folders_brings_its_package(tmp_path: Path) -> None:
    inner = tmp_path / "Plant" / "Parts"
    inner.mkdir(parents=True)
    (tmp_path / "Plant" / "package.mo").write_text("package Plant end Plant;")
    (inner / "package.mo").write_text("within Plant; package Parts end Parts;")
    (inner / "Wheel.mo").write_text("within Plant.Parts; /* a\nwheel */ model Wheel extends Plant.Base; end Wheel;")
    text, label, name, roots = whole((inner / "Wheel.mo").read_text(), "Wheel.mo", inner / "Wheel.mo", None, [])
    assert (label, name, roots) == ("Wheel.mo", "Flattened", [(tmp_path / "Plant").resolve()])
    assert "extends Plant.Parts.Wheel;" in text


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("package Plant end Plant;", None, r"say which model, name='Plant\.…'"),
        ("within Plant; model A end A;", None, "package.mo is not beside it"),
        ("", None, "holds no class"),
        ("model A end A;", "A; system(1)", "no name of a class"),
    ],
)
def test_names_that_cannot_be_flattened(text: str, name: str | None, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        whole(text, "A.mo", None, name, [])


def test_folders_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELICAPATH", os.pathsep.join([str(tmp_path), str(tmp_path / "none"), ""]))
    assert libraries_of_environment() == [tmp_path]
    monkeypatch.delenv("MODELICAPATH")
    assert libraries_of_environment() == []


def test_folders_of_libraries_must_exist() -> None:
    with pytest.raises(ModelError, match="path: there is no 'nowhere'"):
        gr.read_modelica(PLANT, name="Plant.Drive", path="nowhere")
    with pytest.raises(ModelError, match="path takes folders"):
        gr.read_modelica(PLANT, name="Plant.Drive", path=[3])


def test_a_flat_text_needs_no_flattener_where_libraries_are_given(tmp_path: Path) -> None:
    text = """within A.B;
    model M
      function gcd input Integer a; input Integer b; output Integer g; protected Integer x = a, y = b, z;
      algorithm while y <> 0 loop z := mod(x, y); x := y; y := z; end while; g := x; end gcd;
      Real y = gcd(12, 18) * time;
    end M;"""
    (tmp_path / "Other.mo").write_text("package Other end Other;")
    result = gr.simulate(gr.read_modelica(text, path=tmp_path), TIMES)
    assert np.allclose(result["y"], 6 * TIMES)
    with pytest.raises(ModelError, match=r"As flat text, without libraries: .*\n.*'y' is not declared"):
        gr.read_modelica("model M Real x; equation x = y; end M;", path=tmp_path)


def test_conditions_of_components_are_full_modelica() -> None:
    text = "model M model P Real x = time; end P; parameter Boolean use = false; P a if use; P b; end M;"
    assert is_full(text, None) and not is_full("model M Real x = if time > 1 then 1 else 2; end M;", None)


def test_the_compiler_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rumoca")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Other.mo").write_text("package Plant model Drive Real x; equation x = 1; end Drive; end Plant;")
    drive = read("Drive")
    assert drive.parameters["spring.c"].value == 8.0 and "load.phi" in drive.start
    text = "model A Real a(start = 0, fixed = true), b(start = 1, fixed = true);\nequation der(a - b) = 1; der(b) = -b;"
    short = gr.read_modelica(f"{text} end A; model B = A;")
    result = gr.simulate(short, TIMES, rtol=1e-9)
    assert np.allclose(result["a"], TIMES - 1 + np.exp(-TIMES), atol=1e-7)
    with pytest.raises(ModelError, match=r"Plant\.mo has no model 'Plant\.Wheel'"):
        read("Wheel")


TABLE = """
class Table
  extends ExternalObject;
  function constructor
    input String name; input String file; input Real table[:, :]; input Real begin; input Integer columns[:];
    input Integer smoothness; input Integer extrapolation; output Table object;
    external "C" object = ModelicaStandardTables_CombiTimeTable_init2(
      file, name, table, size(table, 1), size(table, 2), begin, columns, size(columns, 1), smoothness, extrapolation);
  end constructor;
  function destructor input Table object; external "C" ModelicaStandardTables_CombiTimeTable_close(object);
  end destructor;
end Table;
function value
  input Table object; input Integer column; input Real at; input Real next; input Real last; output Real y;
  external "C" y = ModelicaStandardTables_CombiTimeTable_getValue(object, column, at, next, last);
end value;
partial model Source
  parameter Real begin = 1.0, scale = 2.0;
  parameter Table object = Table("NoName", "NoName", [0, 0; 1, 2; 2, 2], begin/scale, {2}, 1, 1);
  Real y = value(object, 1, time, 0, 0);
end Source;
model Whole extends Source; end Whole;
"""


def test_external_objects_keep_their_constructors() -> None:
    pytest.importorskip("rumoca")
    result = gr.simulate(gr.read_modelica(TABLE), [0.0, 0.4, 0.6, 1.5])
    assert np.allclose(result["y"], [0.0, 0.0, 1.2, 2.0])


STREAMS = """
connector F Real p; flow Real m; stream Real h; end F;
model Pipe
  parameter Boolean reverses = true; F a(m(min = if reverses then -1e9 else 0)); F b;
equation
  a.m + b.m = 0; a.p - b.p = a.m; a.h = inStream(b.h); b.h = inStream(a.h);
end Pipe;
model End parameter Real h = 1; parameter Real p = 1; F f; equation f.p = p; f.h = h; end End;
model Net
  Pipe p1, p2(reverses = false); End s1(p = 2), s2(h = 5e4), s3(h = 3e4);
equation
  connect(s1.f, p1.a); connect(p1.b, p2.a); connect(p1.b, s3.f); connect(p2.b, s2.f);
end Net;
"""


def test_nothing_streams_out_of_what_flows_only_in() -> None:
    pytest.importorskip("rumoca")
    result = gr.simulate(gr.read_modelica(STREAMS, name="Net"), [0.0, 1.0])
    assert float(result["p1.a.h"].values[0]) == pytest.approx(3e4, rel=1e-13)  # of s3 alone, nothing of s2
