"""Full Modelica: which text it is, how it is made flat, and what the flattener's tree says as Base Modelica."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
