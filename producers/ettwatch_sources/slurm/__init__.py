"""Slurm: its words, its accounting records as events, and the watcher of a cluster."""
