"""What the data determine: unknowns, directions among them, and combinations where single unknowns are not
determined.
"""
