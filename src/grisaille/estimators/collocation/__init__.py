"""Trajectories and unknowns found together."""
