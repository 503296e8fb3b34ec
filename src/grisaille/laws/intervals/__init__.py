"""Probabilities and averages over intervals of a law: what rounding, censoring and truncation are made of.

Receives a law with the numbers of each sample, and limits; hands on log-masses, their derivatives by the law's
arguments and the information of values that lie between.
"""
