"""The tables of the Modelica Standard Library, in texts and in files, as formulas."""

from grisaille.modelica.tables.curves import CURVED, interpolate
from grisaille.modelica.tables.native import NATIVE, OF_EVENTS, SETTLED, SURFACES, Guarded
from grisaille.modelica.tables.places import Places, files_of

__all__ = ["CURVED", "NATIVE", "OF_EVENTS", "SETTLED", "SURFACES", "Guarded", "Places", "files_of", "interpolate"]
