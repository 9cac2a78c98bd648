"""Takes requests in: HTTP, the Ollama-compatible proxy, the command line."""
