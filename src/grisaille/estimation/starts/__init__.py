"""Starts of records, and starts of searches that continue from another fit."""
