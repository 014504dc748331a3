"""Kubernetes: its words, its objects as facts, and the watcher of a cluster."""
