"""Kalman filters in C: what is generated for one model, and how it is called."""
