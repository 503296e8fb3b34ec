within Heating.Sources;
model Weather
  extends Interfaces.OnePort;
  parameter Real mean(unit = "degC") = 5.0;
  parameter Real swing(unit = "degC") = 8.0;
  Interfaces.Signal T;
equation
  T = mean - swing * cos(2 * 3.141592653589793 * time / 86400.0);
  port.T = T;
end Weather;
