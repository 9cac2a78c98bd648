"""rag-stack's routes and their models."""
