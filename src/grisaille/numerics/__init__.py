"""Small dense linear algebra that rooms share: quadratic models between bounds, inverses with flat directions."""
