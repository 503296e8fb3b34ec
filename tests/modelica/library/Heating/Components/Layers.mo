within Heating.Components;
model Layers "A wall of several layers"
  parameter Integer n = 2;
  parameter Records.Wall data;
  Resistance half[n + 1](each R = data.R / (n + 1));
  Capacity mass[n](each C = data.C / n);
  Interfaces.Port inside;
  Interfaces.Port outside;
equation
  connect(inside, half[1].a);
  for k in 1:n loop
    connect(half[k].b, mass[k].port);
    connect(half[k].b, half[k + 1].a);
  end for;
  connect(half[n + 1].b, outside);
end Layers;
