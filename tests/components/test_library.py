"""What every component of the library has: words, units, and as many equations as unknowns."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from components.running import run

import grisaille as gr
from grisaille.components import electrical, rotational, signals, thermal, translational
from grisaille.model import flatten

MODULES = (electrical, translational, rotational, thermal, signals)
BASES = {"OnePort", "Compliant", "Dissipative", "Element"}
"""Classes to inherit from; one equation is left to the heir."""
DIMENSIONLESS = {"N", "alpha", "ratio"}
IN_WORDS = {"PNP", "PMOS", "LuGreFriction", "StepVoltage", "Ramp"}
"""Components whose docstring refers to another one, or says the equation in words."""


def components(module: ModuleType) -> list[type[gr.Model]]:
    found = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, gr.Model)]
    return [c for c in found if c.__module__ == module.__name__]


ALL = [pytest.param(c, id=f"{m.__name__.rpartition('.')[2]}.{c.__name__}") for m in MODULES for c in components(m)]
PHYSICAL = [item for item in ALL if not item.id.startswith("signals.")]
ONE_PORTS = [c for c in components(electrical) if issubclass(c, electrical.OnePort) and c is not electrical.OnePort]


def test_the_promised_components_are_there() -> None:
    names = {item.id for item in ALL}
    promised = """
        electrical.Resistor electrical.Inductor electrical.Capacitor electrical.VoltageSource electrical.CurrentSource
        electrical.Ground electrical.OpAmp electrical.Diode electrical.NPN translational.Mass translational.Spring
        translational.HardeningSpring translational.Damper translational.LuGreFriction translational.Force
        translational.Fixed rotational.Inertia rotational.Spring rotational.HardeningSpring rotational.Damper
        rotational.LuGreFriction rotational.Gear rotational.Torque rotational.Fixed thermal.HeatCapacity
        thermal.Conductance thermal.Radiation thermal.PrescribedTemperature thermal.PrescribedFlow signals.Gain
        signals.Integrator signals.FirstOrder signals.SecondOrder signals.Limiter
    """.split()
    assert set(promised) <= names
    assert callable(signals.Sum) and callable(signals.Table)


@pytest.mark.parametrize("component", ALL)
def test_docstring_states_the_equation(component: type[gr.Model]) -> None:
    text = component.__dict__.get("__doc__") or ""
    assert text.strip().endswith(".")
    assert "=" in text or component.__name__ in IN_WORDS or component.__name__.startswith("Trapezoid")


@pytest.mark.parametrize("component", ALL)
def test_alone_it_has_as_many_equations_as_unknowns(component: type[gr.Model]) -> None:
    """Its own equations and one zero flow for each of its open connectors."""
    flat = flatten(component())
    assert len(flat.variables) - len(flat.equations) == (1 if component.__name__ in BASES else 0)


@pytest.mark.parametrize("component", PHYSICAL)
def test_parameters_variables_and_inputs_have_units(component: type[gr.Model]) -> None:
    flat = flatten(component())
    for name, item in {**flat.parameters, **flat.variables, **flat.inputs}.items():
        assert item.unit or name in DIMENSIONLESS, f"{component.__name__}.{name} has no unit"


@pytest.mark.parametrize("component", ALL)
def test_it_prints_and_is_equal_to_its_twin(component: type[gr.Model]) -> None:
    assert str(component()).startswith(component.__name__)
    assert component() == component()


@pytest.mark.parametrize("kind", ONE_PORTS)
def test_one_ports_work_between_a_resistor_and_ground(kind: type[gr.Model]) -> None:
    values = dict.fromkeys((n for n, p in flatten(kind()).parameters.items() if p.value is None), 0.5)

    class Loop(gr.Model):
        part, r, ground = kind(**values), electrical.Resistor(R=2.0), electrical.Ground()
        equations = [gr.connect(part.p, r.p), gr.connect(part.n, r.n, ground.p)]

    result = run(Loop(), [0.0, 0.1], inputs=dict.fromkeys(flatten(Loop()).inputs, 1.0))
    np.testing.assert_allclose(result["part.v"], -2.0 * result["part.i"], atol=1e-12)
