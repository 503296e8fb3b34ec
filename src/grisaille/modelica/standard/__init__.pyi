"""The names that `grisaille.modelica.standard` exports."""

from grisaille.modelica.standard.native import NATIVE as NATIVE
from grisaille.modelica.standard.supplying import supplied as supplied
