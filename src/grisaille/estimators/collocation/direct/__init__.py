"""Collocation of differential-algebraic models as they stand."""
