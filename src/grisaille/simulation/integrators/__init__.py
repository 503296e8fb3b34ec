"""The integrators as Python, twins of the C headers in ``compilation/kernels``."""
