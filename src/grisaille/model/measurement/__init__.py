"""How outputs say that measurements scatter: laws around predictions, and noise that outputs share."""
