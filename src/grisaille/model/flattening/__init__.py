"""From a class to flat equations: members, connections, names."""
