"""Interfaces that the application needs, with the agent contract's method names."""
