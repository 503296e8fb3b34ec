within Heating.Interfaces;
partial model TwoPorts "Heat flows through"
  Port a;
  Port b;
  Real Q(unit = "W") "From a to b";
equation
  a.Q = Q;
  b.Q = -Q;
end TwoPorts;
