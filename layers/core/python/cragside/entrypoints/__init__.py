"""Where requests come in: HTTP, the Ollama-compatible proxy, the command line."""
