"""Sparse matrices of a model: patterns, orders of elimination, and their declarations in C."""
