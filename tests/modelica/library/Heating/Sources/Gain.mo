within Heating.Sources;
model Gain "People and lamps"
  extends Interfaces.OnePort;
  parameter Real Q(unit = "W") = 200.0;
equation
  port.Q = -(if time < 43200.0 then Q else 2 * Q);
end Gain;
