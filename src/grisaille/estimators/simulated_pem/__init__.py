"""Simulated prediction errors: the mean and covariance of many realizations against the data."""
