"""Roots of implicit equations where no steps are taken: Newton's method, and what follows a root where it fails."""
