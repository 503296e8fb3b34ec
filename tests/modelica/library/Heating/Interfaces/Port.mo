within Heating.Interfaces;
connector Port "Temperature, and the heat that flows in"
  Real T(unit = "degC", start = 20.0);
  flow Real Q(unit = "W");
end Port;
