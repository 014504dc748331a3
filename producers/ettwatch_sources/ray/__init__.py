"""Ray: its jobs as facts, and the watcher of a cluster."""
