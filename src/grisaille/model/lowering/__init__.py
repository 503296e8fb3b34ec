"""From expressions to CasADi formulas."""
