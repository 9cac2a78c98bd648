"""Runs LightRAG in process, with our models and storages."""
