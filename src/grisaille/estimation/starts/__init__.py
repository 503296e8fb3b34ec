"""Where records begin, and where searches do that go on from another fit."""
