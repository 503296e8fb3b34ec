"""The tables of the Modelica Standard Library, in texts and in files, as formulas."""

from grisaille.modelica.tables.curves import SMOOTH_KINDS, interpolate
from grisaille.modelica.tables.native import OF_EVENTS, SETTLED_ARGUMENTS, SURFACE_FUNCTIONS, TABLE_FUNCTIONS, Guarded
from grisaille.modelica.tables.places import ResourceFolders, files_of

__all__ = [
    "OF_EVENTS",
    "SETTLED_ARGUMENTS",
    "SMOOTH_KINDS",
    "SURFACE_FUNCTIONS",
    "TABLE_FUNCTIONS",
    "Guarded",
    "ResourceFolders",
    "files_of",
    "interpolate",
]
