"""The names that `grisaille.structure` exports."""

from grisaille.structure.analysis import Analysis as Analysis, analyze as analyze
from grisaille.structure.reduction import Structure as Structure, reduce_model as reduce_model
