"""The estimators, one folder each, and how one is chosen and run."""
