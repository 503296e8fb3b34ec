"""Generated code for people: with the user's words as comments, kept where a debugger finds it."""

from grisaille.compilation.debugging.annotated import annotated
from grisaille.compilation.debugging.comments import comment
from grisaille.compilation.debugging.switch import is_debugging

__all__ = ["annotated", "comment", "is_debugging"]
