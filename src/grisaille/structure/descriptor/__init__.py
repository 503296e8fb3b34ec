"""Linear descriptor systems under noise: modes, index, and which variables have finite variance."""
