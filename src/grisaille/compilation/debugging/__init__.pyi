"""The names that `grisaille.compilation.debugging` exports."""

from grisaille.compilation.debugging.annotated_source import annotate_source as annotate_source
from grisaille.compilation.debugging.comments import c_comment as c_comment
from grisaille.compilation.debugging.debug_flag import is_debugging as is_debugging
from grisaille.compilation.debugging.readable_source import readable_files as readable_files
