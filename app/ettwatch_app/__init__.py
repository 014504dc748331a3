"""ettwatch."""
