"""cragside gives any Ollama prompt the evidence it needs: graded, cited, corrective RAG."""

__version__ = "0.1.0"
