"""Vectors and tables of unknowns: what is said of them by their names, their values, priors of how far they bend."""
