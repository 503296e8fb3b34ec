"""The mesh on which trajectories were solved for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeshResult:
    """How often a mesh was refined, and how large it is: knots of splines, or elements with Radau points.

    What a mesh does not have is zero.
    """

    refinements: int = 0
    knots: int = 0
    coefficients: int = 0
    elements: int = 0
    pieces: int = 0
    """Elements in each interval between samples and kinks."""
