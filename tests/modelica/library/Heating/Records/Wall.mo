within Heating.Records;
record Wall "Data of a wall"
  parameter Real R(unit = "K/W") = 0.005;
  parameter Real C(unit = "J/K") = 2e6;
end Wall;
