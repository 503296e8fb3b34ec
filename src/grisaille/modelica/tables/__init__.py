"""The tables of the Modelica Standard Library, in texts and in files, as formulas."""

from grisaille.modelica.tables.curves import CURVED, interpolate
from grisaille.modelica.tables.native import CONSTRUCTORS, NATIVE, SURFACES, Guarded
from grisaille.modelica.tables.places import Places, files_of

__all__ = ["CONSTRUCTORS", "CURVED", "NATIVE", "SURFACES", "Guarded", "Places", "files_of", "interpolate"]
