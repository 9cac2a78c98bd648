"""Grading by a rerank endpoint: TEI, vLLM, llama.cpp's server, Cohere, Jina."""
