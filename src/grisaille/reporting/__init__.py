"""Results in, pictures and pages out; nothing new is computed here."""
