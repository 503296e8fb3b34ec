"""The exact filter of linear models: matrices and transitions."""
