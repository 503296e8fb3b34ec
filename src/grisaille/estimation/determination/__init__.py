"""What the data determined: unknowns, directions among them, and combinations where single ones are not told."""
