"""Connections to Qdrant."""
