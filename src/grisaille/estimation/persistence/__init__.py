"""Fits in files and through pickle: their content as numbers and text, and fits made of that again."""
