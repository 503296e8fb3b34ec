within Heating.Functions;
function lookUp "Straight lines between the rows of a table, held beyond"
  input Real rows[:, 2];
  input Real u;
  output Real y;
algorithm
  y := rows[1, 2];
  for k in 1:size(rows, 1) - 1 loop
    y := y + (rows[k + 1, 2] - rows[k, 2]) * min(max((u - rows[k, 1]) / (rows[k + 1, 1] - rows[k, 1]), 0.0), 1.0);
  end for;
end lookUp;
