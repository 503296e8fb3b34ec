"""Full Modelica: which text it is, how it is made flat, and what the flattener's tree says as Base Modelica."""
