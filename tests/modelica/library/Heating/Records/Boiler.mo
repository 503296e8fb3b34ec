within Heating.Records;
record Boiler "Data of a boiler"
  parameter Real P(unit = "W") = 4000.0;
  parameter Real curve[4, 2] = [-10.0, 1.0; 0.0, 0.7; 10.0, 0.35; 20.0, 0.0] "Share of P over the outdoor temperature";
end Boiler;
