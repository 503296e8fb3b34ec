"""States and predictions of a fit: how far ahead, with which bands."""
