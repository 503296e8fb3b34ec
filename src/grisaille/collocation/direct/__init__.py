"""Direct collocation: Radau elements, constraints, and the Newton steps over them."""
