within Heating.Components;
model Resistance
  extends Interfaces.TwoPorts;
  parameter Real R(unit = "K/W") = 0.01;
equation
  R * Q = a.T - b.T;
end Resistance;
