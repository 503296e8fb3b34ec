"""Filters of models that jump with their states."""
