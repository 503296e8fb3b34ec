"""Libraries on the search path: which of their files are read, what is rewritten in copies of them, what is kept."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import grisaille as gr
from grisaille import cache_folder
from grisaille.errors import ModelError
from grisaille.modelica.full import CachedFlattening, Conversion, convert_text, libraries_in, mend_text, needed, rumoca
from grisaille.modelica.full.remedies import Remedies


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


LIBRARY = {
    "Lib/package.mo": "package Lib import Lib.Units.Speed; end Lib;",
    "Lib/Units.mo": "within Lib; package Units type Speed = Real; end Units;",
    "Lib/Bad.mo": "within Lib; model Bad Real x equation = = end Bad;",
    "Lib/Parts/package.mo": "within Lib; package Parts end Parts;",
    "Lib/Parts/Tank.mo": "within Lib.Parts; model Tank extends Base; Base.Inner i; end Tank;",
    "Lib/Parts/Base.mo": "within Lib.Parts; partial model Base // Bad\n  Other.K k; end Base;",
    "Lib/Media/package.mo": "within Lib; package Media end Media;",
    "Lib/Media/Air.mo": "within Lib.Media; package Air end Air;",
    "Other 1.0/package.mo": "package Other end Other;",
    "Other 1.10/package.mo": "package Other connector K Real p; end K; end Other;",
    "Single.mo": "package Single import P = Lib.Parts; end Single;",
}


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("model M Lib.Parts.Tank t; end M;", "Lib/Parts/Base Lib/Parts/Tank Lib/Parts/package Lib/Units Other/package"),
        ("model M import T = Lib.Parts.Base; T t; end M;", "Lib/Parts/Base Lib/Parts/package Lib/Units Other/package"),
        ("model M import Lib.Media.*; Air a; end M;", "Lib/Media/Air Lib/Media/package Lib/Units"),
        ("model M replaceable package P = Lib.Media; end M;", "Lib/Media/Air Lib/Media/package Lib/Units"),
        ('model M Real x "Lib.Parts.Tank"; equation x = a.Lib.p; end M; // Lib.Media', ""),
        ("model M Single s; end M;", "Lib/Parts/package Lib/Units Single"),
    ],
)
def test_the_files_that_a_text_needs(tmp_path: Path, text: str, files: str) -> None:
    libraries = libraries_in([write(tmp_path, LIBRARY)])
    found = {place.relative.with_suffix("").as_posix() for place in needed(text, libraries)}
    assert found - {"Lib/package"} == set(files.split())


def test_of_several_versions_the_highest_counts(tmp_path: Path) -> None:
    assert libraries_in([write(tmp_path, LIBRARY)])["Other"].path.name == "Other 1.10"
    assert set(libraries_in([tmp_path / "Other 1.0", tmp_path / "Single.mo"])) == {"Other", "Single"}


def test_copies_are_rewritten_and_lines_stay() -> None:
    text = (
        "model A\n  Real u annotation(Evaluate = true);\n  parameter Boolean b annotation(Evaluate = true);\n"
        "  Real T(start = 3, stateSelect = if b\n    then StateSelect.prefer else StateSelect.never, min = 0);\n"
        '  extends B(a.p = f(1, 2), final c.d.q = 3); // a(b.c = 1)\n  Real y = g(x == z.u, "(a.b = 1");\nend A;\n'
    )
    assert mend_text(text) == (
        "model A\n  Real u annotation(__Unread = true);\n  parameter Boolean b annotation(Evaluate = true);\n"
        "  Real T(start = 3, stateSelect = StateSelect.default\n, min = 0);\n"
        '  extends B(a(p = f(1, 2)), c(d(final q = 3))); // a(b.c = 1)\n  Real y = g(x == z.u, "(a.b = 1");\nend A;\n'
    )


def test_classes_get_the_names_that_they_have_today() -> None:
    renamed = {"M.SIunits": "M.Units.SI", "M.SIunits.Conversions": "M.Units.Conversions"}
    text = "import SI = M.SIunits; SI.Mass m = SI.Conversions.from_t(1); x.M.SIunits.y; M.SIunits.Conversions.to_t(2);"
    assert convert_text(text, Conversion(renamed)) == (
        "import SI = M.Units.SI; SI.Mass m = M.Units.Conversions.from_t(1); x.M.SIunits.y; M.Units.Conversions.to_t(2);"
    )


def test_elements_get_the_names_that_they_have_today() -> None:
    names = Conversion({"M.Old": "M.New"}, {"M.Old": {"freqHz": "f", "p": "plug"}, "M.Kept": {"y": "gamma"}})
    text = "M.Old s[2](V = g(freqHz = 1), freqHz = freqHz); M.Kept k; Real y = k.y + s[1].p.v + t.freqHz; M.Other t;"
    assert convert_text(text, names) == (
        "M.New s[2](V = g(freqHz = 1), f = freqHz); M.Kept k; Real y = k.gamma + s[1].plug.v + t.freqHz; M.Other t;"
    )


def test_modifiers_with_one_beginning_are_one_modifier() -> None:
    text = "A a(p.x = 1, q = 2, p.y(start = 3), r.s.t = 4, each p.z = f(5, {6}), r(u = 7));"
    assert mend_text(text) == "A a(p(x = 1, y(start = 3), each z = f(5, {6})), q = 2, r(s(t = 4), u = 7));"


def test_annotations_before_other_elements_are_left_out() -> None:
    text = 'package P model M annotation(Icon(x = ";")); A a annotation(y = 1);\nequation annotation(z = 2);'
    text += "\nx = 1; end M; end P;"
    assert mend_text(text) == "package P model M  A a annotation(y = 1);\nequation \nx = 1; end M; end P;"
    last = "model M Real x; annotation(experiment(StopTime = 1)); end M;"
    assert mend_text(last) == last


def test_fields_of_records_of_a_package_become_constants() -> None:
    record = "record G Real a; Real b[2]; Real c = a + 1; end G;"
    package = f"package P constant G d(a = 2,\n b = {{1, 2}}); {record} Real x = d.c; end P;"
    said = Remedies().applied("unresolved Flat reference `P.d.c`", {"": "Real z = P.d.a + d.a;", "P.mo": package})
    assert said is not None and said[""] == "Real z = P.d__a + d.a;"
    assert "constant Real d__c = d__a + 1; constant Real d__a = 2; constant Real d__b[:] = {1, 2};" in said["P.mo"]
    assert said["P.mo"].endswith("Real x = d__c; end P;")
    other = {"": "package Q = P(d(a = 5));", "P.mo": package}
    assert Remedies().applied("unresolved Flat reference `P.d.c`", other) is None  # it has two values


def test_sizes_that_are_constants_of_packages_become_numbers() -> None:
    refused = "dimension expression could not be evaluated"
    library = """within L; package D constant Integer n = size(names, 1); constant Integer m(min = 1) = n;
        constant String names[:] = {"a", "b", "c"}; end D;"""
    own = "package E extends L.D(m = 5); end E; model S import L.D.m; parameter Integer k = L.D.m; {} end S;"
    used = "Real x[L.D.n, E.m + 1]; Real y[m]; Real z[2, E.n];"
    said = Remedies().applied(refused, {"": own.format(used), "D.mo": library})
    assert said is not None and said["D.mo"] == library
    assert "parameter Integer k = 3; Real x[3, 5 + 1]; Real y[3]; Real z[2, 3];" in said[""]
    for other in ("redeclare package D = F", "L2(D(m = 7))"):  # the size depends on where it is used
        text = own.format(f"Real y[L.D.m]; T t({other});").replace("extends L.D(m = 5);", "")
        assert Remedies().applied(refused, {"": text, "D.mo": library}) is None


def test_connectors_that_extend_a_type_of_their_own_are_numbers() -> None:
    made = 'connector S "s" replaceable type T = Real annotation(x = ";"); extends T; annotation(y = "b"); end S; '
    used = "R v(redeclare type T = SI.Voltage), w(redeclare type T=A, start=2), u(start=2, redeclare type T=B);"
    assert mend_text(made + used) == "connector S = Real; R v(), w( start=2), u(start=2);"
    assert mend_text(used) == used  # another T


def test_what_is_no_modelica_and_means_one_thing_is_told() -> None:
    said = "connect argument 'a' must be a connector, but has builtin type 'Real'; connect argument 'b' must be a c"
    said += "onnector, but has builtin type 'Real'"
    with pytest.warns(UserWarning, match="connect of 'a', 'b', which are no connectors, is taken as their equality"):
        changed = Remedies().applied(said, {"": "connect(a , b); connect(a, p.n); // connect(a, b)"})
    assert changed == {"": "a = b; connect(a, p.n); // connect(a, b)"}
    with pytest.warns(UserWarning, match="it is taken as a parameter"):
        changed = Remedies().applied("cannot combine 'input' with 'parameter' prefix", {"": "parameter input Real p;"})
    assert changed == {"": "parameter Real p;"}


def test_entries_are_counted() -> None:
    text = {"": "A a(u = {sin(time), 2}, b={time > {1}[1]}, c = {{time}});"}
    changed = text
    for name in "ubc":
        asked = f"unresolved component dimension for a.{name}: :"
        changed = Remedies().applied(asked, changed) or changed
    entries = "{if true then sin(time) else 0,if true then 2 else 0}"
    assert changed == {"": f"A a(u = {entries}, b={{if true then time > {{1}}[1] else false}}, c = {{{{time}}}});"}


# --- with the compiler ---


def read(text: str, path: Path | None = None) -> gr.Model:
    pytest.importorskip("rumoca")
    return gr.read_modelica(text, path=[path] if path else ())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own."""
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "libraries"


TANK = "Real h(start = 0, fixed = true); equation der(h) ="
FILL = f"within Lib; model Fill parameter Real rate = 2; {TANK} rate; end Fill;"


def test_a_library_loads_another_and_a_bad_file_is_named(place: Path) -> None:
    files = {
        "one/Lib/package.mo": "package Lib end Lib;",
        "one/Lib/Fill.mo": "within Lib; model Fill extends Base.Tank; Damaged.K k; end Fill;".replace(
            "Damaged.K k;", ""
        ),
        "one/Lib/Other.mo": "within Lib; model Other Real x equation = = end Other;",
        "two/Base.mo": f"package Base model Tank {TANK} 2; end Tank; end Base;",
    }
    write(place, files)
    pytest.importorskip("rumoca")
    roots = [place / "one", place / "two"]
    assert list(gr.read_modelica("model M extends Lib.Fill; end M;", path=roots).start) == ["h"]
    with pytest.warns(UserWarning, match=r"Lib/Other\.mo is not read, line 1: .*'M' does not need it"):
        gr.read_modelica("model M extends Lib.Fill; Real y; equation y = Lib.Other; end M;".replace(
            "Real y; equation y = Lib.Other;", "annotation(__Tool(see = Lib.Other));"), path=roots)  # fmt: skip
    with pytest.raises(ModelError, match=r"(?s)cannot be flattened.*Not read, .*no Modelica:\n  Lib/Other\.mo, line 1"):
        gr.read_modelica("model M extends Lib.Other; end M;", path=roots)


def test_what_was_flattened_is_kept_until_a_file_changes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place, {"Lib/package.mo": "package Lib end Lib;", "Lib/Fill.mo": FILL})
    runs: list[str] = []
    ran = rumoca.run
    monkeypatch.setattr(rumoca, "run", lambda asked, label: runs.append(label) or ran(asked, label))
    text = "model M Lib.Fill f; end M;"
    first, again = read(text, place), read(text, place)
    assert first.fingerprint == again.fingerprint and len(runs) == 1
    (entry,) = cache_folder.folder().glob(f"*{cache_folder.FLAT_SUFFIX}")
    entry.write_bytes(entry.read_bytes()[:-3])
    assert read(text, place).fingerprint == first.fingerprint and len(runs) == 2
    (place / "Lib" / "Fill.mo").write_text(FILL.replace("= 2", "= 3"))
    assert read(text, place).parameters["f.rate"].value == 3.0 and len(runs) == 3
    (place / "Lib" / "New.mo").write_text("within Lib; model New end New;")
    read(text, place)
    assert len(runs) == 4


def test_an_entry_of_another_is_not_found(place: Path) -> None:
    CachedFlattening(["a"]).keep({"text": "x"}, [], {})
    assert CachedFlattening(["b"]).found() is None and (CachedFlattening(["a"]).found() or {})["text"] == "x"


KINDS = "type Kind = enumeration(None, Given, Input); "
PART = "block Part parameter Kind k = Kind.None; input Real u if k == Kind.Input; Real z; equation z = time; end Part; "


CHOOSING = "model L parameter Kind k = Kind.Given; Part p(final k = if k == Kind.None then k else Kind.None); end L; "
CLOCK = """
partial model A
  parameter Real t0(fixed = false);
  discrete Real k(start = 0, fixed = true);
initial equation
  t0 = time;
equation
  when sample(t0, 0.25) then k = pre(k) + 1; end when;
end A;
"""
SIZED = (
    "package D constant Integer n = 2; end D; package Q = D(n = 3); "
    "model S Real X[Q.n]; equation for i in 1:Q.n loop X[i] = i * time; end for; end S; "
)
GAS = "package P constant G d(a = 2); record G Real a; Real c = a + 1; end G; end P; "
OUTLET = "connector C output R r; Real p; flow Real f; end C; record R Real a; end R; "


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (KINDS + PART + CHOOSING + "partial model A L l; end A; model M extends A; end M;", "l.p.z", 1.0),
        (CLOCK + "model M extends A; end M;", "k", 5.0),
        (GAS + "partial model A Real x = P.d.c*time; end A; model M extends A; end M;", "x", 3.0),
        ("model A parameter Real p = 1; Real x = p; end A; model B A a; end B; model M extends B(a.p = 2); end M;",
         "a.x", 2.0),
        (SIZED + "model A S s; end A; model M extends A; end M;", "s.X[3]", 3.0),
        (OUTLET + "model S C c; equation c.p = 1; c.r.a = 7*time; end S; model M S s; end M;", "s.c.r.a", 7.0),
    ],
)  # fmt: skip
def test_what_the_flattener_refuses_and_is_mended(text: str, name: str, value: float, place: Path) -> None:
    result = gr.simulate(read(text), [0.0, 1.0])
    assert float(np.asarray(result[name].values).ravel()[-1]) == pytest.approx(value, abs=1e-6)


def test_a_model_that_is_not_determined_says_which_unknown(place: Path) -> None:
    model = read("partial model A Real x, y; equation x = time; end A; model M extends A; end M;")
    with pytest.raises(gr.errors.StructureError, match=r"1 equation for 2 unknowns(?s:.*)\{y\}"):
        gr.simulate(model, [0.0, 1.0])


# --- omc ---

FAKE = """#!{python}
import pathlib, sys
assert sys.argv[1:] == ["--baseModelica", "flatten.mos"], sys.argv
script = pathlib.Path("flatten.mos").read_text()
assert sorted(p.name for p in pathlib.Path(".").iterdir()) == ["flatten.mos", "text.mo"]
pathlib.Path({log!r}).write_text(script)
text = pathlib.Path("text.mo").read_text()
if "refused" in text:
    place = f"[{{pathlib.Path('text.mo').resolve()}}:1:9-1:12:writable]"
    pathlib.Path("errors.txt").write_text(f"{{place}} Error: Class refused not found.")
else:
    pathlib.Path("flat.bmo").write_text({flat!r})
"""
EXPORT = """//! base 0.1.0
package 'M'
  model 'M'
    parameter Real 'tank.rate'(min = 0.0) = 2.0 "Rate";
    Real 'tank.h'(start = 0.0, fixed = true);
  equation
    der('tank.h') = 'tank.rate';
  end 'M';
end 'M';
"""


@pytest.fixture
def omc(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that answers in the format of OpenModelica's exports; returns where it notes what it was asked."""
    import sys

    tools = place.parent / "tools"
    tools.mkdir()
    program = tools / "omc"
    program.write_text(FAKE.format(python=sys.executable, log=str(tools / "log"), flat=EXPORT))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    return tools / "log"


@pytest.mark.skipif("sys.platform == 'win32'", reason="the program is a script with a first line that names Python")
def test_by_openmodelica(omc: Path, place: Path) -> None:
    write(place, {"Lib/package.mo": "package Lib end Lib;", "Lib/Fill.mo": FILL})
    text = "model M Lib.Fill tank; Modelica.Blocks.Sources.Ramp r; end M;"
    model = gr.read_modelica(text, path=[place], flattener="omc")
    assert model.parameters["tank.rate"].value == 2.0
    asked = omc.read_text().splitlines()
    assert asked[0] == 'setCommandLineOptions("--baseModelica");' and "evaluateAll" not in omc.read_text()
    assert asked[1] == "loadModel(Modelica);"
    assert asked[2].endswith('Lib/package.mo", uses = false);') and "instantiateModel(M)" in asked[4]
    omc.unlink()
    gr.read_modelica(text, path=[place], flattener="omc")
    assert not omc.exists()  # kept


@pytest.mark.skipif("sys.platform == 'win32'", reason="the program is a script with a first line that names Python")
def test_openmodelica_comes_second(omc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rumoca, "check", lambda: None)
    monkeypatch.setattr(rumoca, "is_available", lambda: True)
    monkeypatch.setattr(rumoca, "run", lambda asked, label: {"error": "M failed in Flatten: no `thing`"})
    text = "model M extends {}; end M;"
    with pytest.warns(UserWarning, match="flattened by omc, since rumoca refused it .*no `thing`"):
        gr.read_modelica(text.format("fine"))
    with pytest.raises(ModelError, match=r"(?s)by rumoca:.*no `thing`.*by omc:\n  line 1: Class refused not found"):
        gr.read_modelica(text.format("refused"))
    with pytest.raises(ModelError, match=r"by rumoca:\n  no `thing`\nWhat rumoca does not know"):
        gr.read_modelica(text.format("fine"), flattener="rumoca")


def test_without_openmodelica_it_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelError, match='flattener="omc": there is no omc on the PATH'):
        gr.read_modelica("model M extends A; end M;", flattener="omc")
    with pytest.raises(gr.errors.ArgumentError, match="flattener is 'dymola'; give 'auto', 'rumoca' or 'omc'"):
        gr.read_modelica("model M extends A; end M;", flattener="dymola")


def test_flat_texts_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rumoca, "is_available", lambda: False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(gr.read_modelica(EXPORT, flattener="omc").start) == ["tank.h"]


def test_a_construct_that_is_not_known_is_named_with_its_line() -> None:
    from grisaille.modelica import flat_text
    from grisaille.modelica.full import UnknownNode

    equation = {"residual": {"Lambda": {"body": 1}}, "span": {"source": 7, "start": 30, "end": 31}}
    empty: dict = {key: [] for key in ("structured_equations", "initial_equations", "when_chains", "algorithms")}
    tree = {**empty, "functions": {}, "variables": {}, "initial_algorithms": [], "equations": [equation]}
    with pytest.raises(UnknownNode, match="'Lambda' is not supported") as found:
        flat_text(tree, "M")
    assert (found.value.origin.file, found.value.origin.start) == (7, 30)
