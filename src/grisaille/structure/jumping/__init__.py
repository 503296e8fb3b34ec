"""Whether formulas jump where one of their relations switches."""
