"""Compatibility routes, for clients of other services."""
