"""Constructs that make up the stacks. They take plain keywords, not the environment."""
