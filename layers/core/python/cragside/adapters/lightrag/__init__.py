"""The knowledge base on LightRAG. Nothing else in cragside imports LightRAG."""
