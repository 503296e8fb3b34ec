"""Spectra in, numbers out: discretised processes, and random paths that are functions of their indices.

Receives the spectra, scales and correlations of a model's disturbances; hands on transition matrices, stationary
starts, streams of innovations and values between grid points: what simulation, filtering and collocation share.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
