"""Dead times: signals and unknowns of earlier instants, and breaks that move with a dead time."""
