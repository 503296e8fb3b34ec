within Heating.Components;
model Boiler "Follows the outdoor temperature"
  extends Interfaces.OnePort;
  parameter Records.Boiler data;
  Interfaces.Signal outdoor;
equation
  port.Q = -data.P * Functions.lookUp(data.curve, outdoor);
end Boiler;
