"""The JSON API of the monitor, and the server of its page."""
