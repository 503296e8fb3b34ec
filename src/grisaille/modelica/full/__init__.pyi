"""The names that `grisaille.modelica.full` exports."""

from grisaille.modelica.full.confidence import path_of as path_of, written_before as written_before
from grisaille.modelica.full.conversions import Conversion as Conversion, convert_text as convert_text
from grisaille.modelica.full.derivatives import with_named_derivatives as with_named_derivatives
from grisaille.modelica.full.flat_expressions import Expressions as Expressions
from grisaille.modelica.full.flat_text import UnknownNode as UnknownNode
from grisaille.modelica.full.keeping import CachedFlattening as CachedFlattening
from grisaille.modelica.full.libraries import libraries_in as libraries_in, needed as needed
from grisaille.modelica.full.mending import mend_text as mend_text
from grisaille.modelica.full.outline import main_model as main_model
from grisaille.modelica.full.packages import (
    experiment_of as experiment_of,
    is_flat as is_flat,
    is_full as is_full,
    libraries_of_environment as libraries_of_environment,
    whole as whole,
)
from grisaille.modelica.full.redeclarations import keep_redeclarations as keep_redeclarations
from grisaille.modelica.full.rumoca import is_available as is_available
from grisaille.modelica.full.statements_as_assertions import (
    with_assertions as with_assertions,
    with_entries_set as with_entries_set,
)
