"""Equations whose derivatives cancel in a combination, and what is left of them."""
