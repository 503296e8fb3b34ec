"""Particle filters: many simulated states, weighed by the measurements.

Receives a stochastic model and a record; hands on an unbiased estimate of its likelihood, and states.
"""
