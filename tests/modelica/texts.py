"""Small Base Modelica texts, written for these tests."""

from __future__ import annotations


def model(body: str, before: str = "") -> str:
    """A package with one model ``M``; ``before`` stands beside it."""
    return f"//! base 0.1.0\npackage 'M'\n{before}\nmodel 'M'\n{body}\nend 'M';\nend 'M';\n"


DRIVE = model(
    """
    parameter Real 'load.J'(min = 0.0, unit = "kg.m2") = 2.0 "Inertia of the load";
    parameter Real 'spring.c'(unit = "N.m/rad", min = 0.0) = 8.0 "Stiffness";
    parameter Real 'spring.d' = 'load.J' / 4.0;
    parameter Integer 'gear.teeth' = 3 "Teeth";
    parameter Boolean 'useDamper' = true;
    Real 'load.phi'(start = 1.0, fixed = true, unit = "rad", nominal = 0.5) "Angle";
    Real 'load.w'(start = 0.0, fixed = true, unit = "rad/s");
    Real 'spring.tau'(unit = "N.m");
    Real 'motor.tau'(unit = "N.m");
    Boolean 'fast';
  equation
    'load.w' = der('load.phi');
    'load.J' * der('load.w') = 'motor.tau' - 'spring.tau';
    'spring.tau' = 'spring.c' * 'load.phi' + (if 'useDamper' then 'spring.d' * 'load.w' else 0.0);
    'motor.tau' = 0.0;
    'fast' = abs('load.w') > 0.5;
    annotation(experiment(StopTime = 2.0));
    """
)
