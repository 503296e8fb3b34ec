within Heating.Components;
model Capacity
  extends Interfaces.OnePort;
  parameter Real C(unit = "J/K") = 1e6;
  Real T(unit = "degC", start = 20.0, fixed = true);
equation
  T = port.T;
  C * der(T) = port.Q;
end Capacity;
