"""Particle filters in C: the functions of a model that they call, and their task.

Receives formulas of one step, of what is seen at a sample and of their derivatives; hands on a library and the arrays
that it reads and fills (kernels/gr_particles.h).
"""

from grisaille.compilation.particles.particle_source import ParticleCode, ParticleFormulas
from grisaille.compilation.particles.particle_task import (
    CHARTS,
    MeasurementLaws,
    ParticleAnswer,
    ParticleRecord,
    ParticleRun,
    Walk,
    particle_lanes,
    run_particles,
)

__all__ = [
    "CHARTS",
    "MeasurementLaws",
    "ParticleAnswer",
    "ParticleCode",
    "ParticleFormulas",
    "ParticleRecord",
    "ParticleRun",
    "Walk",
    "particle_lanes",
    "run_particles",
]
