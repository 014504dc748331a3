"""Adapters for training frameworks, each in a module of its own that is imported by who uses the framework."""

__all__: list[str] = []
