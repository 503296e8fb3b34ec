"""Times of records: units, dates with their zones, and the texts in which people write them."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
