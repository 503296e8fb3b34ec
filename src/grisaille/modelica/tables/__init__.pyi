"""The names that `grisaille.modelica.tables` exports."""

from grisaille.modelica.tables.curves import SMOOTH_KINDS as SMOOTH_KINDS, interpolate as interpolate
from grisaille.modelica.tables.files import read_table as read_table
from grisaille.modelica.tables.native import (
    OF_EVENTS as OF_EVENTS,
    SETTLED_ARGUMENTS as SETTLED_ARGUMENTS,
    SURFACE_FUNCTIONS as SURFACE_FUNCTIONS,
    TABLE_FUNCTIONS as TABLE_FUNCTIONS,
    Guarded as Guarded,
)
from grisaille.modelica.tables.places import ResourceFolders as ResourceFolders, files_of as files_of
from grisaille.modelica.tables.surfaces import surface as surface
