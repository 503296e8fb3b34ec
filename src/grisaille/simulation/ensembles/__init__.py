"""Many realizations of a disturbed model: their grids, paths, steps and statistics."""
