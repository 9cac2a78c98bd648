"""The proxy: bytes pass through to Ollama, commanded requests get evidence on the way."""
