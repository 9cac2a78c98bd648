"""LightRAG's document routes and their models."""
