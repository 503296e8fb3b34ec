"""Vectors and tables of unknowns: options by their names, their values, and priors of their curvature."""
