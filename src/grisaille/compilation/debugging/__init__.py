"""Generated code that people can read: with the names of the model as comments, kept where a debugger finds it."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
