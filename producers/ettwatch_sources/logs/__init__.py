"""Readers of other tools' logs and traces, one module for each kind."""
