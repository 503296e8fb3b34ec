"""Maximum likelihood by Kalman filters."""
