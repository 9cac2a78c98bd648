"""Grading, rewriting, extraction and embeddings by the models of a host, whichever host it is."""
