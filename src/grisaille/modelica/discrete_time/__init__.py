"""What changes at events only: discrete variables and their formulas, delays of them, clocks."""
