"""A host with OpenAI's API: grading, rewriting, extraction and embeddings by its models."""
