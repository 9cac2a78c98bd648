"""Repositories, by git's own command."""
