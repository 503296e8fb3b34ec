package Plant "A small library, and drives made of it"
  type Law = enumeration(linear, cubic) "How a spring answers";

  connector Flange
    Real phi(unit = "rad");
    flow Real tau(unit = "N.m");
  end Flange;

  function resistance "Torque of a spring"
    input Real c;
    input Real angle;
    input Law law;
    input Integer terms;
    output Real tau;
  algorithm
    tau := c * angle;
    if law == Law.cubic then
      for k in 1:terms loop
        tau := tau + c * angle ^ 3 / terms;
      end for;
    end if;
  end resistance;

  model Inertia
    parameter Real J(min = 0, unit = "kg.m2") = 1 "Moment of inertia";
    Flange a;
    Flange b;
    Real phi(start = 0, unit = "rad") "Angle";
    Real w(start = 0, fixed = true, unit = "rad/s");
  equation
    phi = a.phi;
    phi = b.phi;
    w = der(phi);
    J * der(w) = a.tau + b.tau;
  end Inertia;

  partial model TwoFlanges
    Flange a;
    Flange b;
    Real twist = a.phi - b.phi;
  equation
    a.tau + b.tau = 0;
  end TwoFlanges;

  model Spring
    extends TwoFlanges;
    parameter Real c(unit = "N.m/rad") = 5 "Stiffness";
    parameter Law law = Law.linear;
  equation
    a.tau = resistance(c, twist, law, 2);
  end Spring;

  model Ground
    Flange a;
  equation
    a.phi = 0;
  end Ground;

  model Motor
    parameter Real torque = 1;
    Flange a;
  equation
    a.tau = -torque;
  end Motor;

  model Drive "An inertia on a spring"
    parameter Real slowness = 2;
    Inertia load(J = slowness, phi(start = 1, fixed = true));
    Spring spring(c = 8);
    Ground ground;
    Real both[2] = {load.phi, load.w};
  equation
    connect(load.b, spring.a);
    connect(spring.b, ground.a);
  end Drive;

  model Chain "Two inertias between springs, at rest where the motor holds them"
    parameter Real torque = 3;
    Inertia loads[2](each J = 0.5, each w(fixed = false));
    Spring springs[2](c = {4, 6});
    Ground ground;
    Motor motor(torque = torque);
  initial equation
    der(loads[1].phi) = 0;
    der(loads[2].phi) = 0;
    loads[1].phi = 0.1;
    loads[2].phi = 0.2;
  equation
    connect(ground.a, springs[1].a);
    connect(springs[1].b, loads[1].a);
    connect(loads[1].b, springs[2].a);
    connect(springs[2].b, loads[2].a);
    connect(motor.a, loads[2].b);
  end Chain;

  model Ball "Falls and bounces"
    parameter Real e = 0.5;
    Real h(start = 1, fixed = true);
    Real v(start = 0, fixed = true);
  equation
    der(h) = v;
    der(v) = -9.81;
    when h < 0 then
      reinit(v, -e * pre(v));
    end when;
  end Ball;

  model Silent "What is not supported has its line"
    Real x(start = 1, fixed = true);
    Real y;
  equation
    der(x) = -x;
    y = foreign(x);
  end Silent;

  function foreign
    input Real u;
    output Real y;
    external "C" y = foreign_code(u);
  end foreign;
end Plant;
