"""How finely a nonlinear filter steps between samples: chosen once along a record, then kept."""
