"""Maximum likelihood by particle filters."""
