"""The Ollama host: grading, rewriting, extraction and embeddings by its models."""
