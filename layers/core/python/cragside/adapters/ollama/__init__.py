"""The Ollama host."""
