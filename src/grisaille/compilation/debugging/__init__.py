"""Generated code that people can read: with the names of the model as comments, kept where a debugger finds it."""

from grisaille.compilation.debugging.annotated_source import annotate_source
from grisaille.compilation.debugging.comments import c_comment
from grisaille.compilation.debugging.debug_flag import is_debugging

__all__ = ["annotate_source", "c_comment", "is_debugging"]
