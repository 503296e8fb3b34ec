"""White noise in the reduced system: where it may stand, its stochastic differential equation, coordinates for it."""
