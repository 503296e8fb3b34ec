"""Fits and their numbers as text."""
