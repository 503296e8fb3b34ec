"""Problems with known answers and their sources."""
