"""Algorithm sections of a model: which variables they set, and what these are worth while the statements run."""
