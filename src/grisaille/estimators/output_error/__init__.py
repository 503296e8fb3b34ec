"""Output error: the trajectory without disturbances against the data."""
