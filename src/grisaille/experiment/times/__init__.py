"""Times of records: units, dates with their zones, and the texts in which people write them."""
