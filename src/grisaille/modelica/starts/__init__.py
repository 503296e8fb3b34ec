"""At which values variables begin where several starts, or those of other variables, say it."""
