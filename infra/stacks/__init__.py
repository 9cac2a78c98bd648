"""Stacks only compose: what is built lives in `constructs`."""
