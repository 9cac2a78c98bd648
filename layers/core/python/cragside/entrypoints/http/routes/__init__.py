"""The routes, a module a topic."""
