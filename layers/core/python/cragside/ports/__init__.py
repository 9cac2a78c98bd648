"""Declares the interfaces that the application needs, with the agent contract's method names."""
