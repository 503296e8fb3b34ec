"""Redeclarations, expandable connectors and algorithms that the flattener takes only, or rightly, when rewritten."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.modelica.full import CachedFlattening, keep_redeclarations

LOOP = """
package P
  package Int
    connector In = input Real;
    connector Out = output Real;
    partial model I In u; Out y; end I;
    model WithEquation Real u; Real y; equation y = 7 * u; end WithEquation;
  end Int;
  package Imp
    model A extends Int.I; parameter Real k = 2; equation y = k*u; end A;
    model B "ten times" Int.In u "a"; parameter Real k = 3; Int.Out y; equation y = 10*k*u; end B;
    model D extends Int.I; parameter Real k = 3; equation y = 100*k*u; end D;
    model Less Int.In u; equation u = 0; end Less;
  end Imp;
  package Ex
    partial model S replaceable Int.I c; Real x(start=1, fixed=true); equation der(x) = -c.y; c.u = x; end S;
    model Base extends S(redeclare replaceable Imp.A c); end Base;
    model V extends Base(redeclare replaceable Imp.B c(k = 0.4)); end V;
    model W extends V(c(k = 0.5)); end W;
    model X extends V(redeclare Imp.D c(k = 0.06)); end X;
    model Y = Base(redeclare Imp.D c(k = 0.07));
    model Z V v; Real x = v.x; end Z;
    model Wrong extends S(redeclare Imp.Less c); end Wrong;
    model Inner replaceable model M = Imp.A constrainedby Int.I; M c; Real x(start=1, fixed=true);
    equation der(x) = -c.y; c.u = x; end Inner;
    model Given extends Inner(redeclare model M = Imp.D(k = 0.04)); end Given;
    model Part Inner i(redeclare model M = Imp.A(k = 1)); Real x = i.x; end Part;
  end Ex;
end P;
"""
GIVEN = """
package P
  partial function PF input Real u; output Real y; end PF;
  function F extends PF; input Real a = 1; algorithm y := a*u; end F;
  record R Real k = 1; end R;
  package K constant Real k = 1; end K;
  model Z parameter Real k = 1; Real x(start=1, fixed=true); equation der(x) = -k*x; end Z;
  model OfF replaceable function f = F constrainedby PF; Real x(start=1, fixed=true); equation der(x) = -f(x); end OfF;
  model OfR replaceable record RR = R; RR r; Real x(start=1, fixed=true); equation der(x) = -r.k*x; end OfR;
  model OfK replaceable package M = K; Real x(start=1, fixed=true); equation der(x) = -M.k*x; end OfK;
  model OfZ replaceable model ZZ = Z; ZZ z; end OfZ;
  model Function parameter Real q = 4; extends OfF(redeclare function f = F(a = q)); end Function;
  model Record extends OfR(redeclare record RR = R(k = 4)); end Record;
  model Package extends OfK(redeclare package M = K(k = 4)); end Package;
  model Outer parameter Real q = 4; OfZ l(redeclare model ZZ = Z(k = q)); Real x = l.z.x; end Outer;
end P;
"""
BUS = """
package P
  connector RI = input Real; connector RO = output Real;
  connector BI = input Boolean; connector BO = output Boolean;
  expandable connector Bus end Bus;
  partial model OnBus Bus bus; end OnBus;
  block Ramp RO y; equation y = time; end Ramp;
  block Late BI on; RI u; Real x(start = 0, fixed = true); equation der(x) = if on then u else 0; end Late;
  block Half BO y; equation y = time > 0.5; end Half;
  model A extends OnBus; Ramp s; Half h; equation connect(s.y, bus.level); connect(h.y, bus.late); end A;
  model B extends OnBus; Late d; equation connect(bus.level, d.u); connect(d.on, bus.late); end B;
  model System A a; B b; equation connect(a.bus, b.bus); end System;
end P;
"""
COUNTER = """
model Base Real phi(start = 0, fixed = true); equation der(phi) = 10; end Base;
model Counter extends Base;
  Real next(start = 1, fixed = true); Integer n(start = 0, fixed = true); Real rate(start = 0, fixed = true);
algorithm
  when phi >= pre(next) then next := phi + 1; n := pre(n) + 1; end when;
  when sample(0.25, 0.25) then rate := pre(n) / 0.25; n := 0; end when;
end Counter;
"""
SEARCH = """
function at input Real x; input Real points[:, 2]; output Real y; protected Integer i;
algorithm
  i := 1;
  while x >= points[i + 1, 1] loop i := i + 1; end while;
  y := points[i, 2];
end at;
model M Real y; Real z(start = 0, fixed = true); equation y = at(time, {{0, 0}, {1, 2}, {3, 0}}); der(z) = y; end M;
"""


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found that was flattened before."""
    monkeypatch.setattr(CachedFlattening, "found", lambda entry: None)
    monkeypatch.setattr(CachedFlattening, "keep", lambda entry, *made: None)


@pytest.mark.parametrize(
    ("name", "gain"),
    [("Base", 2), ("V", 4), ("W", 5), ("X", 6), ("Y", 7), ("Z", 4), ("Given", 4), ("Part", 1)],
)
def test_the_outermost_redeclaration_counts_with_its_modifiers(name: str, gain: float) -> None:
    pytest.importorskip("rumoca")
    model = gr.read_modelica(LOOP, name=f"P.Ex.{name}", flattener="rumoca")
    assert float(gr.simulate(model, [0.0, 1.0]).x[-1]) == pytest.approx(np.exp(-gain), rel=1e-5)


@pytest.mark.parametrize("name", ["Function", "Record", "Package", "Outer"])
def test_modifiers_of_classes_that_are_given_are_kept(name: str) -> None:
    pytest.importorskip("rumoca")
    model = gr.read_modelica(GIVEN, name=f"P.{name}", flattener="rumoca")
    assert float(gr.simulate(model, [0.0, 1.0]).x[-1]) == pytest.approx(np.exp(-4), rel=1e-5)


def test_what_is_no_subtype_by_structure_stays_refused() -> None:
    pytest.importorskip("rumoca")
    with pytest.raises(ModelError, match="not a subtype"):
        gr.read_modelica(LOOP, name="P.Ex.Wrong", flattener="rumoca")


def test_a_lost_redeclaration_is_refused_where_it_counts_only() -> None:
    texts = {
        "": "model S = Elsewhere.S; model Base extends S(redeclare A c); end Base;\n"
        "model V extends Base(redeclare B c); end V; model Free Real x = 1; end Free;\n"
        "model A end A; model B end B;"
    }
    assert keep_redeclarations(texts, "Free") == texts
    with pytest.raises(ModelError, match="'V' redeclares 'c', which 'Base' redeclares"):
        keep_redeclarations(texts, "V")


def test_members_of_expandable_connectors_are_what_is_connected() -> None:
    pytest.importorskip("rumoca")
    model = gr.read_modelica(BUS, name="P.System", flattener="rumoca")
    assert float(gr.simulate(model, [0.0, 1.0])["b.d.x"][-1]) == pytest.approx(0.375, rel=1e-6)


def test_of_two_when_of_an_algorithm_the_later_one_counts() -> None:
    pytest.importorskip("rumoca")
    model = gr.read_modelica(COUNTER, name="Counter", flattener="rumoca")
    # teeth at 0.1, 0.2 | 0.3, 0.4 and, at once with the sample, 0.5 | 0.6, 0.7
    run = gr.simulate(model, [0.0, 0.24, 0.26, 0.49, 0.51, 0.74, 0.76])
    assert run.rate.values == pytest.approx([0, 0, 8, 8, 8, 8, 8])
    assert run.n.values == pytest.approx([0, 2, 0, 2, 0, 2, 0])


def test_a_loop_ends_with_the_array_in_its_condition_or_the_run_does() -> None:
    model = gr.read_modelica(SEARCH, name="M")
    run = gr.simulate(model, [0.0, 0.5, 1.5, 2.9])
    assert run.y.values == pytest.approx([0, 0, 2, 2])
    assert float(run.z[-1]) == pytest.approx(3.8)
    with pytest.raises(gr.SimulationError, match="beyond its array"):
        gr.simulate(model, [0.0, 3.5])


PART = """package P
  partial model B Real u, y; end B;
  model B1 extends B; parameter Real k = 1; equation y = k*u; end B1;
  model B2 extends B; parameter Real k = 1, o = 3; equation y = k*u + o; end B2;
  model S replaceable B1 b(k = 5) {}; equation b.u = 2; end S;
  model A S c(redeclare B2 b(o = 4)), d; end A;
  model M extends A; end M;
end P;
"""


@pytest.mark.parametrize(("clause", "gain"), [("", 5.0), ("constrainedby B", 1.0)])
def test_modifiers_of_a_component_with_a_constraining_clause_go_with_it(clause: str, gain: float) -> None:
    run = gr.simulate(gr.read_modelica(PART.format(clause), name="P.M"), [0.0, 1.0])
    assert [float(run[n][0]) for n in ("c.b.y", "d.b.y")] == pytest.approx([2.0 * gain + 4.0, 10.0])


def test_modifiers_that_the_flattener_keeps_are_told() -> None:
    with pytest.warns(UserWarning, match=r"modifiers of 'replaceable B1 b\(k = 5\)' where 'b' is redeclared"):
        gr.read_modelica(PART.format("constrainedby B1(k = 7)"), name="P.M")


def test_modifiers_of_a_record_of_parameters_go_with_it() -> None:
    records = "record B Real k = 1; end B; record B1 extends B; end B1; record B2 extends B; Real m = 3; end B2;"
    part = "model S replaceable parameter B1 b(k = 5) constrainedby B; Real y = b.k; end S;"
    used = "model A S c(redeclare parameter B2 b(m = 4)), d; end A; model M extends A; end M;"
    model = gr.read_modelica(f"package P {records} {part} {used} end P;", name="P.M")
    run = gr.simulate(model, [0.0, 1.0])
    assert [float(run[n][0]) for n in ("c.y", "d.y")] == pytest.approx([1.0, 5.0])


NESTED = """
package P
  model A parameter Real k = 2; Real u; Real y; equation y = k*u; end A;
  model C parameter Real k = 5; parameter Real q = 1; Real u, z; Real y; equation y = k*u*q; z = y; end C;
  model Other parameter Real k = 5; Real u; Boolean y; equation y = u > 1; end Other;
  model Host replaceable A a(k = 7); Real x(start = 1, fixed = true); equation der(x) = -a.y; a.u = x; end Host;
  model HostOfClass replaceable model M = A; M a; Real x(start = 1, fixed = true);
  equation der(x) = -a.y; a.u = x; end HostOfClass;
  model Outer Host h; HostOfClass m; end Outer;
  model Later extends Outer; end Later;
  model Direct Host h(redeclare C a(q = 0.5)); Real x = h.x; end Direct;
  model Wrong Host h(redeclare Other a); Real x = h.x; end Wrong;
  model Two parameter Real w = 0.5; Later o(h(redeclare C a(q = w), x(start = 1))); Real x = o.h.x; end Two;
  model Three model T Outer o; end T; T t(o(h(redeclare C a(q = 0.5)))); Real x = t.o.h.x; end Three;
  model Extended extends Outer(h(redeclare C a(q = 0.5))); Real x = h.x; end Extended;
  model Array Outer o[2](h(redeclare C a(q = 0.5))); Real x = o[2].h.x; end Array;
  model Short = Outer(h(redeclare C a(q = 0.5)));
  model Class Outer o(m(redeclare model M = C(q = 0.5))); Real x = o.m.x; end Class;
  model Lost Outer o(absent(redeclare C a)); Real x = o.h.x; end Lost;
end P;
"""


@pytest.mark.parametrize(
    ("name", "rate"),
    [("Direct", 3.5), ("Two", 3.5), ("Three", 3.5), ("Extended", 3.5), ("Array", 3.5), ("Short", 3.5), ("Class", 2.5)],
)
def test_redeclarations_by_subtypes_of_structure_in_modifiers(name: str, rate: float) -> None:
    run = gr.simulate(gr.read_modelica(NESTED, name=f"P.{name}"), [0.0, 0.5], rtol=1e-9)
    assert float(run["h.x" if name == "Short" else "x"][-1]) == pytest.approx(np.exp(-0.5 * rate), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "words"), [("Wrong", "is not a subtype"), ("Lost", "contains 'redeclare C a' inside the modifiers")]
)
def test_redeclarations_that_cannot_be_are_refused(name: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        gr.read_modelica(NESTED, name=f"P.{name}")
