"""The storages that LightRAG works on."""
