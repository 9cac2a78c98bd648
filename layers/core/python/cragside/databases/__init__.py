"""Connections to databases and their files, which end well when a server is slow, restarts or is gone."""
