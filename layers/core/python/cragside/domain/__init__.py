"""The rules of corrective RAG, in the standard library alone: queries, documents, verdicts, prompts, errors."""
