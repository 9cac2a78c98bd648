"""The routes below `/v1` and their models."""
